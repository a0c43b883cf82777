// Which node holds which order, decided from the bucket's listing.
//
//     given here ──▶ order and claim 0 are written ──▶ held here
//     listed, its node silent ──▶ the node that the hash names writes the next claim
//     listed, claimed by another living node, held here ──▶ released here
//
// A claim is written on the condition that nobody has (If-None-Match, RFC 9110 section 13.1.2). Where
// the store refuses or ignores the condition, the last claim that was written counts, which each node
// reads with its next listing: an order may then run twice for that time, and is never lost.
import Numbers
package import Posix

/// The orders of all nodes, as one of them sees them.
///
/// A value without access to the bucket: it receives listings and texts together with the time, and
/// returns actions.
package struct OrderBoard {
    /// What is to be done; names are those after the prefix of the location.
    package enum Action: Equatable {
        /// Read an object and report it by `read`.
        case read(String)
        /// Write an order and report it by `wrote`.
        case writeOrder(SharedOrder)
        /// Write a claim and report it by `claimed`.
        case writeClaim(SharedOrderID, turn: Int, isConditional: Bool)
        case delete(String)
        /// Begin here, where another node has left it.
        case take(SharedOrder)
        /// Stop here, since another node has it.
        case release(SharedOrder, holder: String)
        /// Do here what was ordered at another node, if there is something of the order here.
        case change(SharedOrder)
    }

    /// How a write of a claim ended.
    package enum ClaimResult: Equatable {
        case won
        /// Another node has written it before.
        case lost
        /// The store has no conditional writes.
        case unsupported
        case failed
    }

    /// An order as any node lists it.
    package struct View: Equatable, Sendable {
        package let order: SharedOrder
        /// The node that holds it; nil until one does.
        package let holder: String?
        /// The name of that node.
        package let holderName: String?
        package let progress: SharedOrderProgress?
        /// True while its node is heard.
        package let isHeard: Bool
        /// True if this node holds it.
        package let isHere: Bool
        /// True if its node cannot begin it.
        package let isRefused: Bool

        /// Why it does not go on, as a listing tells people; nil while a node that is heard has it.
        package var obstacle: String? {
            guard let holderName else { return "no node has it yet" }
            guard isHeard else { return "node \(holderName) is silent; another one takes it over" }
            return isRefused ? "node \(holderName) cannot begin it; it tries again" : nil
        }
    }

    struct Entry {
        var order: SharedOrder?
        /// The latest version in the bucket.
        var listed: WallTime?
        /// Names of older versions in the bucket.
        var older: [String] = []
        /// True until the bucket has the version that was given here.
        var isUnwritten = false
        var isWriting = false
        /// The number of the seal that its latest write began with.
        var seal = 0
        /// The version that is carried out here.
        var applied: WallTime?
        var isHere = false
        /// The greatest claim; -1 for none.
        var turn = -1
        var holder: String?
        var claimTag: String?
        var olderClaims: [String] = []
        var isClaiming = false
        /// True if the bucket has the order sealed with a key that seals no more.
        var hasFormerSeal = false
        var refusal: Postponed?
        /// The version that could not be read.
        var unread: Postponed?
    }

    struct Node {
        var tag: String
        var changed: Monotonic
        var name: String?
    }

    package let node: String
    let silence: Interval
    var entries: [SharedOrderID: Entry] = [:]
    var nodes: [String: Node] = [:]
    var progress: [String: (tag: String, orders: [SharedOrderID: SharedOrderProgress])] =
        [:]
    /// The versions that other nodes cannot begin.
    var refusals: [SharedOrderID: [String: WallTime]] = [:]
    /// The names of the latest versions in the bucket.
    var newest: [SharedOrderID: String] = [:]
    var isConditional = true
    var listedAt: Monotonic?
    /// The number of the key that seals: how many sealed before it in this run.
    var seal = 0

    /// The most orders that are followed; more are not seen on other nodes.
    package static let most = 2_000
    /// The most nodes.
    static let mostNodes = 1_024
    /// A node that holds a complete title may be away for so long: a restart must not move it.
    package static let longSilence = Interval.seconds(86_400)
    /// Cancelled orders are remembered for so long, for nodes that are away.
    private static let memory: Int64 = 30 * 86_400
    /// After this further time any node removes them.
    private static let grace: Int64 = 86_400

    /// - Parameters:
    ///   - node: hexadecimal digits, the same after a restart.
    ///   - silence: the time without a heartbeat after which another node takes over.
    package init(node: String, silence: Interval) {
        self.node = node
        self.silence = silence
    }

    // MARK: Orders given here

    /// Notes an order that was given to this node.
    ///
    /// - Parameters:
    ///   - new: the order; its time is moved on if there is a later version.
    ///   - isHere: true if this node carries it out.
    /// - Returns: what is to be written.
    package mutating func give(_ new: SharedOrder, isHere: Bool) -> [Action] {
        let (id, wish) = (new.id, new.wish)
        guard entries[id] != nil || entries.count < Self.most else { return [] }
        var entry = entries[id] ?? Entry()
        let before = max(entry.order?.given.nanoseconds ?? 0, entry.listed?.nanoseconds ?? 0)
        let given = max(new.given, WallTime(nanoseconds: before.addingSaturated(1)))
        let order = Self.dated(new, given)
        // What was over begins anew, at this node.
        let isNew = entry.order.map { !$0.wish.needsNode } ?? true
        entry.order = order
        entry.isUnwritten = true
        (entry.isWriting, entry.seal) = (true, seal)
        entry.applied = isHere || !wish.needsNode ? given : entry.applied
        entry.isHere = isHere && wish.needsNode
        entries[id] = entry
        var actions = [Action.writeOrder(order)]
        if entry.isHere, isNew || entry.turn < 0 { actions += claim(id) }
        return actions
    }

    /// Notes an order that an earlier run was given and has not written; to be called before `hold`.
    package mutating func restore(_ order: SharedOrder) {
        let id = order.id
        guard entries[id] != nil || entries.count < Self.most else { return }
        var entry = entries[id] ?? Entry()
        guard order.given > entry.order?.given ?? .init(nanoseconds: 0) else { return }
        entry.order = order
        entry.isUnwritten = true
        // The run that was given it has ended it here.
        if !order.wish.needsNode { entry.applied = order.given }
        entries[id] = entry
    }

    /// The version of an order that the bucket is still to get; nil if it has the latest.
    package func unwritten(_ id: SharedOrderID) -> WallTime? {
        guard let entry = entries[id], entry.isUnwritten else { return nil }
        return entry.order?.given
    }

    /// Notes an order that this node has held since an earlier run.
    ///
    /// The next listing tells whether another node has taken it over.
    package mutating func hold(
        _ id: SharedOrderID, _ wish: SharedOrder.Wish, query: String, now: WallTime
    ) {
        guard entries[id]?.isHere != true, entries.count < Self.most,
            let order = SharedOrder(id, wish, query: query, given: now, node: node)
        else { return }
        var entry = entries[id] ?? Entry()
        // Any version in the bucket is later: this one is written only if there is none.
        entry.order = entry.order ?? Self.dated(order, WallTime(nanoseconds: 1))
        entry.applied = entry.order?.given
        entry.isHere = true
        entries[id] = entry
    }

    private static func dated(_ order: SharedOrder, _ given: WallTime) -> SharedOrder {
        var dated = order
        dated.given = given
        return dated
    }

    // MARK: Deciding

    /// Decides, once all that was to be read is reported.
    package mutating func settle(now: Monotonic, wall: WallTime) -> [Action] {
        var actions: [Action] = []
        var candidates = OrderCandidates()
        for id in entries.keys.sorted() {
            if let entry = entries[id], isForgotten(entry) {
                // Deleted in the bucket, by a node that has remembered it for long enough.
                entries[id] = nil
                newest[id] = nil
                refusals[id] = nil
                continue
            }
            actions += settle(id, now, wall, &candidates)
        }
        return actions + forgetNodes(now)
    }

    private func isForgotten(_ entry: Entry) -> Bool {
        entry.listed == nil && !entry.isHere && !entry.isUnwritten && !entry.isWriting
    }

    /// Removes what is left of nodes that have been silent for very long and hold nothing.
    private mutating func forgetNodes(_ now: Monotonic) -> [Action] {
        let held = entries.values.filter { $0.order?.wish.needsNode ?? true }
        let holders = Set(held.compactMap(\.holder))
        let gone = nodes.keys.filter {
            $0 != node && !holders.contains($0) && !isHeard($0, within: Self.longSilence, now)
        }
        return gone.sorted().flatMap { id -> [Action] in
            nodes[id] = nil
            progress[id] = nil
            note(refusals: [], of: id)
            return [
                .delete(SharedOrderNames.node(id)), .delete(SharedOrderNames.progress(of: id)),
            ]
        }
    }

    private mutating func settle(
        _ id: SharedOrderID, _ now: Monotonic, _ wall: WallTime, _ candidates: inout OrderCandidates
    ) -> [Action] {
        guard let entry = entries[id], let order = entry.order else { return [] }
        var actions = writeAgain(id, order, wall)
        if isMine(entry, order) {
            actions += (entry.older + entry.olderClaims).map { .delete($0) }
        }
        return actions
            + (order.wish.needsNode
                ? assign(id, now, &candidates) : settleEnded(id, now, wall, &candidates))
    }

    /// True for the node that removes what is left of an order.
    private func isMine(_ entry: Entry, _ order: SharedOrder) -> Bool {
        order.node == node || entry.holder == node
    }

    /// Writes an order that was given here and is not written yet, or that the bucket has lost.
    private mutating func writeAgain(
        _ id: SharedOrderID, _ order: SharedOrder, _ wall: WallTime
    ) -> [Action] {
        guard var entry = entries[id], !entry.isWriting else { return [] }
        guard entry.isUnwritten || entry.listed == nil && entry.isHere else {
            guard entry.hasFormerSeal, entry.listed == order.given, isMine(entry, order) else {
                return []
            }
            (entry.isWriting, entry.seal) = (true, seal)
            entries[id] = entry
            return [.writeOrder(order)]
        }
        let dated = order.given.nanoseconds <= 1 ? Self.dated(order, wall) : order
        entry.order = dated
        if entry.isHere { entry.applied = dated.given }
        entry.isUnwritten = true
        (entry.isWriting, entry.seal) = (true, seal)
        entries[id] = entry
        return [.writeOrder(dated)]
    }

    /// Decides on an order that no node shall carry out any more.
    private mutating func settleEnded(
        _ id: SharedOrderID, _ now: Monotonic, _ wall: WallTime, _ candidates: inout OrderCandidates
    ) -> [Action] {
        guard var entry = entries[id], let order = entry.order else { return [] }
        var actions: [Action] = []
        // Also where another node has it: this one may have kept a complete copy when it left it.
        if entry.applied != order.given { actions.append(.change(order)) }
        entry.isHere = false
        entry.applied = order.given
        entries[id] = entry
        let age = wall.seconds.subtractingSaturated(order.given.seconds)
        guard age > Self.memory, !entry.isUnwritten else { return actions }
        if !isMine(entry, order) {
            // The nodes that had it may be gone for good.
            guard age > Self.memory + Self.grace, chosen(for: id, now, &candidates) == node else {
                return actions
            }
            actions += (entry.older + entry.olderClaims).map { .delete($0) }
        }
        actions.append(.delete(order.name))
        if entry.turn >= 0 {
            actions.append(.delete(SharedOrderNames.claim(id, turn: entry.turn)))
        }
        return actions
    }

    /// Decides which node has an order, and does here what that asks of this one.
    private mutating func assign(
        _ id: SharedOrderID, _ now: Monotonic, _ candidates: inout OrderCandidates
    ) -> [Action] {
        // A claim whose text is not known yet decides nothing.
        guard let entry = entries[id], let order = entry.order, !entry.isClaiming,
            entry.turn < 0 || entry.holder != nil
        else { return [] }
        if entry.holder == node {
            guard entry.applied != order.given || !entry.isHere else { return [] }
            if let refusal = entry.refusal, refusal.given == order.given, now < refusal.until {
                return []
            }
            entries[id]?.isHere = true
            entries[id]?.applied = order.given
            return [entry.isHere ? .change(order) : .take(order)]
        }
        let former = entry.holder ?? order.node
        // A node whose heartbeat is still to come, or is gone, has as long as one that falls silent.
        if nodes[former] == nil, nodes.count < Self.mostNodes {
            nodes[former] = Node(tag: "", changed: now)
            if !candidates.isEmpty { candidates.add(former) }
        }
        let unable = unable(entry, order)
        let isDone = progress[former]?.orders[id]?.isDone == true
        guard former != node, isHeard(former, within: isDone ? Self.longSilence : silence, now)
        else {
            let isOurs =
                former == node
                || (chosen(for: id, now, &candidates, without: unable)
                    ?? chosen(for: id, now, &candidates)) == node
            return isOurs ? claim(id) : []
        }
        if unable.contains(former), chosen(for: id, now, &candidates, without: unable) == node {
            return claim(id)
        }
        guard entry.isHere, entry.holder != nil else { return [] }
        entries[id]?.isHere = false
        entries[id]?.applied = nil
        // It began at last.
        entries[id]?.refusal = nil
        return [.release(order, holder: former)]
    }

    /// True if a node was heard lately.
    func isHeard(_ node: String, within limit: Interval, _ now: Monotonic) -> Bool {
        guard let known = nodes[node] else { return false }
        return now - known.changed <= limit
    }

    /// Returns the living node that takes an order over; this node lives.
    ///
    /// - Parameters:
    ///   - id: the order.
    ///   - now: the time.
    ///   - candidates: the living nodes, found at the first call.
    ///   - excluded: nodes that do not take it.
    /// - Returns: the node; nil if all are left out.
    private func chosen(
        for id: SharedOrderID, _ now: Monotonic, _ candidates: inout OrderCandidates,
        without excluded: Set<String> = []
    ) -> String? {
        if candidates.isEmpty {
            for other in nodes.keys where isHeard(other, within: silence, now) {
                candidates.add(other)
            }
            candidates.add(node)
        }
        return candidates.choice(for: id, without: excluded)
    }

    private mutating func claim(_ id: SharedOrderID) -> [Action] {
        guard var entry = entries[id], !entry.isClaiming,
            entry.turn < SharedOrderNames.lastTurn
        else { return [] }
        entry.isClaiming = true
        entries[id] = entry
        return [.writeClaim(id, turn: entry.turn + 1, isConditional: isConditional)]
    }
}
