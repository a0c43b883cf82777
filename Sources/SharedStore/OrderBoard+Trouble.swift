// Orders that a node cannot begin, and those whose seal nodes cannot open for much longer.
package import Posix

extension OrderBoard {
    /// A version that this node could not begin, though it has its claim, or could not read.
    struct Postponed {
        let given: WallTime
        let pause: Interval
        let until: Monotonic

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
    package mutating func refuse(_ id: SharedOrderID, now: Monotonic) {
        guard var entry = entries[id] else { return }
        entry.isHere = false
        entry.applied = nil
        if let given = entry.order?.given {
            entry.refusal = Postponed(
                given, after: entry.refusal, atMost: Self.longestRefusal, now: now)
        }
        entries[id] = entry
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
