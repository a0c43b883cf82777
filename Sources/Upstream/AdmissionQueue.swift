// The semaphore with an express lane: decides which transfer may go to its origin now.
//
// Pure: it is told what waits, what ends and what is given up, and answers with actions.
//
//     enqueue ──▶ waiting ──next()──▶ admitted (holds a SlotToken) ──release──▶ gone
//                    └──── cancel ──────────────────────────────────────────────▶ gone
//
// Rules:
// - at most `slots` transfers hold a slot; express ones hold one of `expressCap` places beside
//   the slots, and a slot as everybody does once those places are taken;
// - what an origin holds on purpose, such as a blocking playlist reload, has places of its own and
//   takes neither slots nor express places, nor any of what a host may have;
// - a freed slot goes to the most urgent lane; inside a lane sessions take turns and a session's
//   transfers go in the order they came;
// - no host ever has more than `perHost` transfers, express included; those that wait for their
//   host hold up nobody else;
// - of prefetch and background transfers there are no more at once, in all and to one host, than
//   `ahead` says, which whoever measures the link may change at any time;
// - an express or playback transfer that finds no slot takes one from the newest background or
//   prefetch transfer; one at a time, so that it never takes more than it needs.

/// The right to be in flight; given back exactly once, a second time traps.
package struct SlotToken: Sendable, Hashable {
    /// The transfer it was given to.
    package let id: UInt64
    fileprivate let serial: UInt64
}

package struct AdmissionQueue {
    package struct Limits: Sendable {
        package var slots: Int
        package var expressCap: Int
        /// The most requests that origins hold on purpose.
        ///
        /// Default 512, one for each rendition of as many streams.
        package var heldCap = 512
        /// 0: none.
        package var perHost: Int
        /// The most waiters, all lanes together.
        package var waiting: Int

        package init(slots: Int = 32, expressCap: Int = 16, perHost: Int = 0, waiting: Int = 4096) {
            self.slots = slots
            self.expressCap = expressCap
            self.perHost = perHost
            self.waiting = waiting
        }
    }

    /// What waits.
    package struct Entry: Sendable {
        package let id: UInt64
        package var lane: Lane
        package let session: UInt64
        package let host: String
        /// Whether the origin will hold it on purpose; such ones wait in the express lane.
        package var isHeld = false

        package init(id: UInt64, lane: Lane, session: UInt64, host: String) {
            self.id = id
            self.lane = lane
            self.session = session
            self.host = host
        }
    }

    package enum Action: Sendable, Hashable {
        /// The transfer goes out now and holds the token.
        case admit(SlotToken)
        /// This transfer in flight has to end and give its token back.
        case preempt(UInt64)
    }

    private struct Holder {
        var entry: Entry
        var host: String
        let serial: UInt64
        let usesExpressPlace: Bool
        var isPreempted = false
    }

    package private(set) var limits: Limits
    private var lanes = Array(repeating: LaneQueue(), count: Lane.allCases.count)
    private var waiters: [UInt64: Entry] = [:]
    private var holders: [UInt64: Holder] = [:]
    private var hostCounts: [String: Int] = [:]
    private var nextSerial: UInt64 = 0
    private var preempting = 0
    private var preemptible = 0
    /// Slots in use, express places not counted.
    package private(set) var slotsInUse = 0 {
        didSet { peakSlotsInUse = max(peakSlotsInUse, slotsInUse) }
    }
    /// The transfers that no player waits for.
    private(set) var ahead = AheadShare()
    /// The most slots that were ever held at once.
    package private(set) var peakSlotsInUse = 0
    /// Requests in flight that origins hold on purpose.
    package private(set) var heldInUse = 0
    /// Express places in use.
    package private(set) var expressInUse = 0

    package init(limits: Limits) {
        precondition(limits.slots > 0 && limits.expressCap >= 0, "a queue needs slots")
        self.limits = limits
    }

    /// Transfers in flight, express included.
    package var inFlight: Int { holders.count }
    /// Waiters of all lanes.
    package var waiting: Int { waiters.count }

    /// Waiters of one lane.
    package func waiting(in lane: Lane) -> Int { lanes[lane.rawValue].count }

    /// Transfers in flight to a host, without those that it holds on purpose.
    package func inFlight(to host: String) -> Int { hostCounts[host] ?? 0 }

    /// Entries kept for waiters, dead ones included; for tests of leaks.
    package var footprint: Int { lanes.reduce(waiters.count) { $0 + $1.footprint } }
}

// MARK: - Coming and going

extension AdmissionQueue {
    /// Adds a waiter.
    ///
    /// `isReturning` is true for one that was admitted before and comes back in the course of a
    /// redirect: it goes first in its session, and the limit on waiters does not hold it.
    ///
    /// - Returns: false, and nothing is added, when the queue is full.
    package mutating func enqueue(_ entry: Entry, isReturning: Bool = false) -> Bool {
        precondition(
            waiters[entry.id] == nil && holders[entry.id] == nil, "id \(entry.id) is known")
        guard isReturning || waiters.count < limits.waiting else { return false }
        waiters[entry.id] = entry
        lanes[entry.lane.rawValue].add(entry.id, session: entry.session, atFront: isReturning)
        return true
    }

    /// Removes a waiter at once; false if it does not wait.
    package mutating func cancel(_ id: UInt64) -> Bool {
        guard let entry = waiters.removeValue(forKey: id) else { return false }
        return lanes[entry.lane.rawValue].remove(id)
    }

    /// Moves a waiter, or a transfer in flight, to another lane.
    ///
    /// In flight this decides only whether its slot may be taken back.
    package mutating func move(_ id: UInt64, to lane: Lane) {
        if var entry = waiters[id], entry.lane != lane {
            _ = lanes[entry.lane.rawValue].remove(id)
            entry.lane = lane
            waiters[id] = entry
            lanes[lane.rawValue].add(id, session: entry.session)
        } else if var holder = holders[id] {
            preemptible -= Self.isPreemptible(holder) ? 1 : 0
            ahead.count(holder.entry.lane, to: holder.host, by: -1)
            holder.entry.lane = lane
            ahead.count(lane, to: holder.host, by: 1)
            preemptible += Self.isPreemptible(holder) ? 1 : 0
            holders[id] = holder
        }
    }

    /// Takes a slot back from a transfer that ended, whatever the way.
    ///
    /// Traps on a token that was given back before.
    package mutating func release(_ token: SlotToken) {
        guard let holder = holders[token.id], holder.serial == token.serial else {
            preconditionFailure("the slot of transfer \(token.id) was given back twice")
        }
        holders[token.id] = nil
        count(holder, by: -1)
        if holder.isPreempted { preempting -= 1 }
        preemptible -= Self.isPreemptible(holder) ? 1 : 0
        ahead.count(holder.entry.lane, to: holder.host, by: -1)
        if !holder.entry.isHeld { leave(holder.host) }
    }

    /// Counts a transfer in flight to another host, to which it was redirected.
    ///
    /// - Returns: false, and nothing changes, where that host has as many as it may; release the
    ///   slot and enqueue again then.
    package mutating func redirect(_ token: SlotToken, to host: String) -> Bool {
        guard var holder = holders[token.id], holder.serial == token.serial else {
            preconditionFailure("transfer \(token.id) holds no slot")
        }
        guard holder.host != host, !holder.entry.isHeld else { return true }
        guard hasRoom(host) else { return false }
        leave(holder.host)
        hostCounts[host, default: 0] += 1
        ahead.count(holder.entry.lane, to: holder.host, by: -1)
        ahead.count(holder.entry.lane, to: host, by: 1)
        holder.host = host
        holders[token.id] = holder
        return true
    }

    /// Changes how many prefetch and background transfers may run; those in flight are left alone.
    package mutating func limitAhead(
        _ all: Int, background: Int = .max, hosts: [String: Int] = [:]
    ) {
        ahead.limit = max(1, all)
        ahead.backgroundLimit = max(1, background)
        ahead.hostLimits = hosts
    }

    /// Changes the number of slots; transfers in flight are left alone.
    package mutating func resize(slots: Int) {
        limits.slots = max(1, slots)
    }
}

// MARK: - Deciding

extension AdmissionQueue {
    /// What to do next; nil when nothing can be done.
    ///
    /// Call until nil after every change.
    package mutating func next() -> Action? {
        if heldInUse < limits.heldCap, let entry = take(from: .express, isHeld: true) {
            return admit(entry, usesExpressPlace: false)
        }
        if expressInUse < limits.expressCap, let entry = take(from: .express) {
            return admit(entry, usesExpressPlace: true)
        }
        if slotsInUse < limits.slots {
            for lane in Lane.allCases {
                if let entry = take(from: lane) { return admit(entry, usesExpressPlace: false) }
            }
        }
        return preemption()
    }

    /// Admits a transfer that need not run and must keep nobody waiting: only where nobody waits, a
    /// slot is left for a player, and the host has room, also by the limit measured for look-ahead.
    ///
    /// - Returns: nil, and nothing changes, where it may not run now.
    package mutating func admitAtOnce(_ entry: Entry) -> SlotToken? {
        var ahead = entry
        ahead.lane = .prefetch
        guard waiters.isEmpty, slotsInUse + 1 < limits.slots, hasRoom(entry.host),
            self.ahead.hasRoom(in: .prefetch), self.ahead.hasRoom(for: ahead),
            case .admit(let token) = admit(entry, usesExpressPlace: false)
        else { return nil }
        return token
    }

    private mutating func take(from lane: Lane, isHeld: Bool = false) -> Entry? {
        guard lanes[lane.rawValue].count > 0, ahead.hasRoom(in: lane) else { return nil }
        // Moved out for the call, since the closure reads the rest of this value.
        var queue = LaneQueue()
        swap(&queue, &lanes[lane.rawValue])
        let id = queue.take { id in
            waiters[id].map {
                $0.isHeld == isHeld && (isHeld || hasRoom($0.host)) && ahead.hasRoom(for: $0)
            } ?? false
        }
        swap(&queue, &lanes[lane.rawValue])
        return id.flatMap { waiters.removeValue(forKey: $0) }
    }

    private mutating func admit(_ entry: Entry, usesExpressPlace: Bool) -> Action {
        nextSerial += 1
        let holder = Holder(
            entry: entry, host: entry.host, serial: nextSerial, usesExpressPlace: usesExpressPlace)
        holders[entry.id] = holder
        if !entry.isHeld { hostCounts[entry.host, default: 0] += 1 }
        count(holder, by: 1)
        preemptible += Self.isPreemptible(holder) ? 1 : 0
        ahead.count(entry.lane, to: entry.host, by: 1)
        return .admit(SlotToken(id: entry.id, serial: nextSerial))
    }

    private mutating func count(_ holder: Holder, by change: Int) {
        if holder.entry.isHeld {
            heldInUse += change
        } else if holder.usesExpressPlace {
            expressInUse += change
        } else {
            slotsInUse += change
        }
    }

    /// A transfer whose end would let an express or playback waiter go.
    private mutating func preemption() -> Action? {
        guard preempting == 0, preemptible > 0 else { return nil }
        for lane in [Lane.express, .playback] where lanes[lane.rawValue].count > 0 {
            var victim: UInt64?
            _ = lanes[lane.rawValue].first { id in
                guard let entry = waiters[id] else { return false }
                victim = self.victim(for: entry)
                return victim != nil
            }
            if let victim {
                holders[victim]?.isPreempted = true
                preempting += 1
                preemptible -= 1
                return .preempt(victim)
            }
        }
        return nil
    }

    /// The least urgent and newest transfer whose end makes room for `entry`.
    private func victim(for entry: Entry) -> UInt64? {
        let needsHost = !hasRoom(entry.host)
        let hasPlace =
            slotsInUse < limits.slots
            || (entry.lane == .express && expressInUse < limits.expressCap)
        let candidates = holders.values.filter { holder in
            Self.isPreemptible(holder) && (!needsHost || holder.host == entry.host)
                && (hasPlace || !holder.usesExpressPlace)
        }
        return candidates.max { a, b in
            (a.entry.lane.rawValue, a.serial) < (b.entry.lane.rawValue, b.serial)
        }?.entry.id
    }

    private static func isPreemptible(_ holder: Holder) -> Bool {
        holder.entry.lane >= .prefetch && !holder.isPreempted
    }

    private func hasRoom(_ host: String) -> Bool {
        limits.perHost == 0 || (hostCounts[host] ?? 0) < limits.perHost
    }

    private mutating func leave(_ host: String) {
        guard let count = hostCounts[host] else { preconditionFailure("no transfer to \(host)") }
        hostCounts[host] = count == 1 ? nil : count - 1
    }
}
