// Orders that a node cannot begin, and those whose seal nodes cannot open for much longer.
package import Posix

extension OrderBoard {
    private static let shortestRefusal = Interval.seconds(10 as Int64)
    private static let longestRefusal = Interval.seconds(60 as Int64)

    /// Notes that an order cannot be carried out here now.
    ///
    /// It is offered again after 10 seconds, after twice as long for each further refusal until that
    /// is a minute, and at once when it is changed.
    package mutating func refuse(_ id: SharedOrderID, now: Monotonic) {
        guard var entry = entries[id] else { return }
        entry.isHere = false
        entry.applied = nil
        if let given = entry.order?.given {
            var pause = Self.shortestRefusal
            if let before = entry.refusal, before.given == given {
                pause = min(
                    Self.longestRefusal, Interval(nanoseconds: before.pause.nanoseconds * 2))
            }
            entry.refusal = Refusal(given: given, pause: pause, until: now + pause)
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
        for (id, entry) in entries where entry.order != nil && entry.listed != nil {
            entries[id]?.hasFormerSeal = true
        }
    }
}
