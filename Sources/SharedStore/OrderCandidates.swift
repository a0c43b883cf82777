// Which of the living nodes takes an order over (rendezvous hashing).
import Numbers

/// The living nodes, of which each order has its own.
///
/// Orders that no node holds are all decided in one turn, and whoever can write to the bucket decides how
/// many nodes and orders there are: the name of a node is hashed once, and not once for each order.
struct OrderCandidates {
    private struct Candidate {
        let node: String
        /// The part of its weights that all orders share.
        let hash: StableHash
    }

    private var all: [Candidate] = []

    var isEmpty: Bool { all.isEmpty }

    mutating func add(_ node: String) {
        all.append(Candidate(node: node, hash: StableHash("\(node) ")))
    }

    /// Returns the node with the greatest weight that is not left out; nil without one.
    func choice(for id: SharedOrderID, without excluded: Set<String> = []) -> String? {
        let text = id.text
        var best: Candidate?
        var greatest: UInt64 = 0
        for candidate in all where excluded.isEmpty || !excluded.contains(candidate.node) {
            var hash = candidate.hash
            hash.add(text)
            let weight = hash.value
            if let best, (weight, candidate.node) <= (greatest, best.node) { continue }
            best = candidate
            greatest = weight
        }
        return best?.node
    }
}
