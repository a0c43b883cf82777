// Orders that a node cannot begin, and those whose seal nodes cannot open for much longer.
package import Posix

extension OrderBoard {
    /// A version that this node could not begin, though it has its claim, or could not read.
    struct Postponed {
        let given: WallTime
        let pause: Interval
        let until: Monotonic
        /// True if only room was missing, which another order may leave.
        var lacksRoom = false

        /// Starts with 10 seconds, and twice as long each further time for the same version.
        init(
            _ given: WallTime, after before: Postponed?, atMost longest: Interval, now: Monotonic
        ) {
            self.given = given
            if let before, before.given == given {
                pause = min(longest, Interval(nanoseconds: before.pause.nanoseconds * 2))
            } else {
                pause = .seconds(10 as Int64)
            }
            until = now + pause
        }
    }

    private static let longestRefusal = Interval.seconds(60 as Int64)
    private static let longestUnread = Interval.seconds(600 as Int64)

    /// Notes that a version in the bucket says nothing to this node: its text is damaged, or sealed
    /// with a key that this node does not have.
    mutating func cannotRead(_ id: SharedOrderID, _ given: WallTime, now: Monotonic) {
        guard var entry = entries[id] else { return }
        entry.unread = Postponed(given, after: entry.unread, atMost: Self.longestUnread, now: now)
        entries[id] = entry
    }

    /// Notes that an order cannot be carried out here now.
    ///
    /// It is offered again after 10 seconds, after twice as long for each further refusal until that
    /// is a minute, and at once when it is changed.
    ///
    /// - Parameters:
    ///   - id: the order.
    ///   - now: the monotonic time.
    ///   - lacksRoom: true if as many are carried out here as may be; `hasRoom` ends the refusal.
    /// - Returns: true the first time for this version.
    @discardableResult
    package mutating func refuse(
        _ id: SharedOrderID, now: Monotonic, lacksRoom: Bool = false
    ) -> Bool {
        guard var entry = entries[id] else { return false }
        let isFirst = entry.refusal == nil || entry.refusal?.given != entry.order?.given
        entry.isHere = false
        entry.applied = nil
        if let given = entry.order?.given {
            entry.refusal = Postponed(
                given, after: entry.refusal, atMost: Self.longestRefusal, now: now)
            entry.refusal?.lacksRoom = lacksRoom
        }
        entries[id] = entry
        return isFirst
    }

    /// Notes that there is room for another order of a kind.
    ///
    /// What was refused for want of it may be begun here, unless the node that holds it can. What
    /// this node holds is offered again in any case.
    package mutating func hasRoom(for kind: SharedOrderID.Kind) {
        for (id, entry) in entries
        where id.kind == kind && entry.refusal?.lacksRoom == true && entry.holder != node {
            entries[id]?.refusal = nil
        }
    }

    /// What this node tells of the orders that it cannot begin, so that others take them.
    package var refused: [SharedOrderProgress] {
        entries.compactMap { id, entry in
            guard let order = entry.order, order.wish.needsNode, isUnable(entry, order) else {
                return nil
            }
            return SharedOrderProgress(refused: order.given, id)
        }
    }

    private func isUnable(_ entry: Entry, _ order: SharedOrder) -> Bool {
        !entry.isHere && entry.refusal?.given == order.given
    }

    /// The nodes that cannot begin this version of an order.
    func unable(_ entry: Entry, _ order: SharedOrder) -> Set<String> {
        var nodes: Set<String> = []
        for (node, given) in refusals[order.id] ?? [:] where given == order.given {
            nodes.insert(node)
        }
        if isUnable(entry, order) { nodes.insert(node) }
        return nodes
    }

    /// Notes which orders another node cannot begin, according to all that it tells.
    mutating func note(refusals told: [SharedOrderProgress], of node: String) {
        for (id, nodes) in refusals where nodes[node] != nil {
            refusals[id]?[node] = nil
            if nodes.count == 1 { refusals[id] = nil }
        }
        for one in told where entries[one.id] != nil {
            if let given = one.refused { refusals[one.id, default: [:]][node] = given }
        }
    }

    /// True if this node has refused this version of an order before.
    package func hasRefused(_ order: SharedOrder) -> Bool {
        entries[order.id]?.refusal?.given == order.given
    }

    /// Notes that another key seals from now on: the nodes that have them write the orders anew, since
    /// the former key may be retired as soon as nobody plays its links.
    package mutating func sealAnew() {
        seal += 1
        // What could not be read may be sealed with the new key.
        for id in entries.keys { entries[id]?.unread = nil }
        for (id, entry) in entries where entry.order != nil && entry.listed != nil {
            entries[id]?.hasFormerSeal = true
        }
    }
}
