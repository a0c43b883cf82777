// A semaphore with an express lane: decides which transfer may start now.
//
// Pure: reports of waiting, ended and cancelled transfers go in, actions come out.
//
//     enqueue ──▶ waiting ──next()──▶ admitted (holds a SlotToken) ──release──▶ gone
//                    └──── cancel ──────────────────────────────────────────────▶ gone
//
// Rules:
// - at most `slots` transfers hold a slot; express ones hold one of `expressCap` places besides the
//   slots, or a slot like the others once those places are taken;
// - requests that an origin holds on purpose, such as blocking playlist reloads, have separate
//   places and count against neither slots nor express places nor the limit of a host;
// - a transfer that turns out to have no end, or to be a stream of events, gives its slot back
//   while it runs, and counts against the limit of its host only;
// - `extraSlots` keep a slow host that holds all slots from starving the others: an express or
//   playback transfer that finds no slot, and none to preempt, gets an extra one if its host holds
//   fewer slots than extra ones are free. No more are used than hosts hold slots beyond their
//   first, so that none is while each host holds one. They are paid back first: other transfers
//   wait until fewer than `slots` are in use. A slot counts for the host that its transfer was sent
//   to first, since a redirect must not hide who holds it;
// - a freed slot goes to the most urgent lane; inside a lane sessions take turns, and the transfers
//   of a session start in the order of arrival;
// - inside a lane, transfers that return after a redirect, or in place of one that had a slot and
//   failed, precede those that had none, as if they had kept it;
// - no host ever has more than `perHost` transfers, express included; transfers that wait for their
//   host do not block others;
// - a host with a limit of its own has no more than that, in place of `perHost`; those that it has
//   redirected to another host count as its own, and one that has to wait for the other host also
//   waits for room at the first;
// - a host that was found to refuse a second transfer gets one (`SingleHosts`), and one that it has
//   redirected to another host counts as its own: none for look-ahead, which the next request of a
//   player would only have to cut off, but longer windows, whose segments are lost otherwise, get
//   it while it is free; the same holds for a host whose own limit is one;
// - while a request is repeated since its host may have noticed the end of another transfer late
//   (`RecentEnds`), that host gets no prefetch or background transfer;
// - in the prefetch lane, transfers that go first (those of recordings) precede all others;
// - prefetch and background transfers have separate limits in `ahead`, in all and per host, which
//   the controller of concurrency may change at any time; what goes first counts against the limit
//   in all but is not held back by it, and each session may always have one such transfer a host;
//   where it is redirected to a host that is at its limit for look-ahead, it waits for that host;
// - an express or playback transfer that finds no slot preempts the newest background or prefetch
//   transfer; one at a time, so that it never takes more than it needs, and one at each of its two
//   hosts if it was redirected and both are full;
// - `obstacles` names the transfers whose end lets an express or playback transfer start, of those
//   that the caller could end without loss, such as paused ones; where that frees but one of its
//   two hosts, with one at the other that is to be preempted.

/// The right to run a transfer; must be released exactly once, a second release traps.
package struct SlotToken: Sendable, Hashable {
    /// The transfer that holds it.
    package let id: UInt64
    fileprivate let serial: UInt64
}

/// Admits transfers by the rules at the head of this file.
package struct AdmissionQueue {
    package struct Limits: Sendable {
        package var slots: Int
        package var expressCap: Int
        /// The most requests that origins hold on purpose.
        ///
        /// Default 512, one for each rendition of as many streams.
        package var heldCap = 512
        /// The most transfers to one host; 0 for no limit.
        package var perHost: Int
        /// The most waiters in players' lanes, and the most in the others: thousands of downloads
        /// that wait must not shut a player out.
        package var waiting: Int
        /// The most slots besides `slots`, for players' transfers to hosts that hold few while
        /// others hold many: a quarter, at least two; none if a host cannot hold more than one.
        package var extraSlots: Int { min(max(2, slots / 4), slots - 1) }

        package init(slots: Int = 32, expressCap: Int = 16, perHost: Int = 0, waiting: Int = 4096) {
            self.slots = slots
            self.expressCap = expressCap
            self.perHost = perHost
            self.waiting = waiting
        }
    }

    /// A waiter.
    package struct Entry: Sendable {
        package let id: UInt64
        package var lane: Lane
        package let session: UInt64
        package let host: String
        /// The host that the request was sent to first; another one after a redirect.
        package var firstHost: String
        /// The most transfers to its host by a limit of that host's own; 0 without one.
        package var hostLimit = 0
        /// The same of the host that it was sent to first.
        package var firstHostLimit = 0
        /// True if the origin will hold it on purpose; such requests wait in the express lane.
        package var isLongPoll = false
        /// True if it precedes all others of the prefetch lane while it waits there.
        package var goesFirst = false
        /// True if it is for a longer window: a prefetch that a host which gets one transfer at a
        /// time serves, too.
        package var fillsWindow = false
        /// True if it had a slot before; the limit of waiters does not apply to it.
        package var isReturning = false
        /// True for a prefetch that goes first.
        var isFirst: Bool { goesFirst && lane == .prefetch }

        package init(id: UInt64, lane: Lane, session: UInt64, host: String) {
            self.id = id
            self.lane = lane
            self.session = session
            self.host = host
            firstHost = host
        }
    }

    package enum Action: Sendable, Hashable {
        /// The transfer starts now and holds the token.
        case admit(SlotToken)
        /// This running transfer must end and release its token.
        case preempt(UInt64)
    }

    private struct Holder {
        var entry: Entry
        var host: String
        let serial: UInt64
        let usesExpressPlace: Bool
        var isPreempted = false
        /// True once it was found to have no end.
        var isExempt = false
        /// False if it has another place than a slot, or has given its slot back.
        var holdsSlot: Bool { !usesExpressPlace && !isExempt && !entry.isLongPoll }
    }

    package let limits: Limits
    /// One for each lane, by its raw value, one for what goes first in the prefetch lane, and one
    /// for what returns to each lane.
    private var lanes = Array(
        repeating: LaneQueue<UInt64>(), count: AdmissionQueue.firstPlace + 1 + Lane.allCases.count)
    private static var firstPlace: Int { Lane.background.rawValue + 1 }
    private static func returningPlace(_ lane: Lane) -> Int { firstPlace + 1 + lane.rawValue }
    /// The waiters in players' lanes, without long polls, by the host that they were sent to first;
    /// one queue for each of these lanes, by its raw value.
    ///
    /// Built when `takeForExtraSlot` first looks for a waiter, and kept until nothing waits;
    /// nil otherwise, so that a transfer that finds a slot is not lined up here.
    private var playersByHost: [LaneQueue<String>]?
    private var waiters: [UInt64: Entry] = [:]
    private var holders: [UInt64: Holder] = [:]
    /// The slots in use, extra ones included, by the host that a transfer was sent to first.
    private var slotCounts = Tally<String>()
    private var nextSerial: UInt64 = 0
    private var preempting = 0
    private var preemptible = 0
    /// The transfers that are to be preempted together with one that was named by `next`: nothing
    /// is admitted before all have been named, since it could take the place of the first.
    private var alsoPreempted: [UInt64] = []
    /// True from when `next` has found nothing to do until a change after which it may: it is asked
    /// in each round, and looks at every waiter.
    private var isSettled = false
    /// Slots in use, extra ones included, express places not.
    package private(set) var slotsInUse = 0 {
        didSet { peakSlotsInUse = max(peakSlotsInUse, slotsInUse) }
    }
    /// The share of transfers that no player waits for.
    private(set) var ahead = AheadShare()
    /// The running transfers of hosts, and the room that they have for more.
    var hosts: HostRoom {
        didSet { isSettled = false }
    }
    /// The highest number of slots ever in use, extra ones included.
    package private(set) var peakSlotsInUse = 0
    /// Running requests that origins hold on purpose.
    package private(set) var heldInUse = 0
    /// Express places in use.
    package private(set) var expressInUse = 0

    package init(limits: Limits) {
        precondition(limits.slots > 0 && limits.expressCap >= 0, "a queue needs slots")
        self.limits = limits
        hosts = HostRoom(perHost: limits.perHost)
    }

    /// Running transfers, express included.
    package var inFlight: Int { holders.count }
    /// Waiters of all lanes.
    package var waiting: Int { waiters.count }

    /// Waiters of one lane.
    package func waiting(in lane: Lane) -> Int {
        lanes[lane.rawValue].count + lanes[Self.returningPlace(lane)].count
            + (lane == .prefetch ? lanes[Self.firstPlace].count : 0)
    }

    /// Running transfers to a host, without requests that it holds on purpose.
    package func inFlight(to host: String) -> Int { hosts.inFlight(to: host) }

    /// Entries kept for waiters, removed ones included; for leak tests.
    package var footprint: Int {
        let inLanes = lanes.reduce(waiters.count) { $0 + $1.footprint }
        return (playersByHost ?? []).reduce(inLanes) { $0 + $1.footprint }
    }
}

// MARK: - Changes

extension AdmissionQueue {
    /// Adds a waiter.
    ///
    /// - Returns: false, and nothing is added, when the queue is full.
    package mutating func enqueue(_ entry: Entry) -> Bool {
        precondition(
            waiters[entry.id] == nil && holders[entry.id] == nil, "id \(entry.id) is known")
        guard entry.isReturning || hasWaitingRoom(in: entry.lane) else { return false }
        isSettled = false
        waiters[entry.id] = entry
        addToLanes(entry)
        return true
    }

    /// True if one more may wait in a lane.
    ///
    /// Fetches ahead that were raised for players count among these; no other fetch ahead may wait
    /// once both shares together are used up.
    private func hasWaitingRoom(in lane: Lane) -> Bool {
        let ahead = waiting(in: .prefetch) + waiting(in: .background)
        guard lane >= .prefetch else { return waiters.count - ahead < limits.waiting }
        return ahead < limits.waiting && waiters.count - limits.waiting < limits.waiting
    }

    /// Removes a waiter; returns false if it does not wait.
    package mutating func cancel(_ id: UInt64) -> Bool {
        removeWaiter(id) != nil
    }

    /// Removes and returns a waiter; nil if it does not wait.
    private mutating func removeWaiter(_ id: UInt64) -> Entry? {
        guard let entry = waiters.removeValue(forKey: id) else { return nil }
        removeFromLanes(entry)
        if waiters.isEmpty { playersByHost = nil }
        return entry
    }

    private mutating func addToLanes(_ entry: Entry) {
        lanes[Self.place(of: entry)].add(entry.id, of: entry.session)
        guard Self.mayHaveExtraSlot(entry) else { return }
        playersByHost?[entry.lane.rawValue].add(entry.id, of: entry.firstHost)
    }

    /// Has no effect on a queue that the waiter was taken from already.
    private mutating func removeFromLanes(_ entry: Entry) {
        _ = lanes[Self.place(of: entry)].remove(entry.id)
        guard Self.mayHaveExtraSlot(entry) else { return }
        _ = playersByHost?[entry.lane.rawValue].remove(entry.id)
    }

    /// True for a waiter that belongs in `playersByHost`.
    private static func mayHaveExtraSlot(_ entry: Entry) -> Bool {
        entry.lane <= .playback && !entry.isLongPoll
    }

    /// Lines up all who wait now, in the order of their ids, which is that of first arrival.
    ///
    /// - Returns: the value of `playersByHost`.
    private func linedUpByHost() -> [LaneQueue<String>] {
        var queues = Array(repeating: LaneQueue<String>(), count: Lane.playback.rawValue + 1)
        let players = waiters.values.filter(Self.mayHaveExtraSlot)
        for entry in players.sorted(by: { $0.id < $1.id }) {
            queues[entry.lane.rawValue].add(entry.id, of: entry.firstHost)
        }
        return queues
    }

    /// The index in `lanes` of the queue that a waiter is in.
    private static func place(of entry: Entry) -> Int {
        if entry.isFirst { return firstPlace }
        return entry.isReturning ? returningPlace(entry.lane) : entry.lane.rawValue
    }

    /// Moves a waiter, or a running transfer, to another lane.
    ///
    /// For a running transfer, this only decides whether it may be preempted.
    package mutating func move(_ id: UInt64, to lane: Lane) {
        isSettled = false
        if var entry = waiters[id], entry.lane != lane {
            // A long poll is admitted from its own lane only, which precedes all others.
            guard !entry.isLongPoll else { return }
            removeFromLanes(entry)
            entry.lane = lane
            // It was not admitted from that lane, whose waiters it would overtake.
            entry.isReturning = false
            waiters[id] = entry
            addToLanes(entry)
        } else if let holder = holders[id] {
            change(holder) { $0.entry.lane = lane }
        }
    }

    /// Has a waiter precede all others of the prefetch lane from now on, as if it had been added
    /// so.
    ///
    /// It has no effect on one that does so already or does not wait.
    package mutating func putFirst(_ id: UInt64) {
        guard var entry = waiters[id], !entry.goesFirst else { return }
        let former = entry
        entry.goesFirst = true
        waiters[id] = entry
        // In the other lanes it keeps its turn.
        guard Self.place(of: entry) != Self.place(of: former) else { return }
        isSettled = false
        removeFromLanes(former)
        addToLanes(entry)
    }

    /// Notes that a waiter is for a longer window, too.
    package mutating func noteWindow(_ id: UInt64) {
        guard waiters[id]?.fillsWindow == false else { return }
        waiters[id]?.fillsWindow = true
        isSettled = false
    }

    /// Releases the slot of a transfer that ended, however it ended.
    ///
    /// Traps on a token that was released before.
    package mutating func release(_ token: SlotToken) {
        guard let holder = holders[token.id], holder.serial == token.serial else {
            preconditionFailure("the slot of transfer \(token.id) was given back twice")
        }
        isSettled = false
        holders[token.id] = nil
        count(holder, by: -1)
    }

    /// Gives back the slot of a running transfer that has no end, which would be held for ever; it
    /// still counts against the limit of its host.
    package mutating func exempt(_ token: SlotToken) {
        guard let holder = holders[token.id], holder.serial == token.serial, !holder.isExempt
        else { return }
        isSettled = false
        change(holder) { $0.isExempt = true }
    }

    /// Counts a running transfer against the host that it was redirected to.
    ///
    /// - Parameters:
    ///   - token: its slot.
    ///   - host: the host.
    ///   - hostLimit: the most transfers to that host by a limit of its own; 0 without one.
    /// - Returns: false, with no change, if that host has reached its limit, or if this one goes
    ///   first and the host has reached the limit for look-ahead; release the slot and enqueue
    ///   again then.
    package mutating func redirect(
        _ token: SlotToken, to host: String, hostLimit: Int = 0
    ) -> Bool {
        guard let holder = holders[token.id], holder.serial == token.serial else {
            preconditionFailure("transfer \(token.id) holds no slot")
        }
        guard holder.host != host, !holder.entry.isLongPoll else { return true }
        // The limit in all bounds what else is redirected, but not what goes first.
        let entry = holder.entry
        guard hosts.hasRoom(host, own: hostLimit),
            !hosts.isHeldBack(entry, at: host, own: hostLimit),
            !entry.isFirst || ahead.hasRoom(for: entry, at: host)
        else { return false }
        isSettled = false
        change(holder) { $0.host = host }
        return true
    }

    /// Changes the limits of prefetch and background transfers; running ones continue.
    package mutating func limitAhead(
        _ all: Int, background: Int = .max, hosts: [String: Int] = [:]
    ) {
        isSettled = false
        ahead.limit = max(1, all)
        ahead.backgroundLimit = max(1, background)
        ahead.hostLimits = hosts
    }
}

// MARK: - Decisions

extension AdmissionQueue {
    /// Returns the next action; nil if there is none.
    ///
    /// Call until nil after every change.
    package mutating func next() -> Action? {
        guard !isSettled else { return nil }
        while let id = alsoPreempted.popLast() {
            // It may have ended meanwhile.
            if holders[id]?.isPreempted == true { return .preempt(id) }
        }
        if heldInUse < limits.heldCap, let entry = take(from: .express, isLongPoll: true) {
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
        if let action = preemption() { return action }
        if preempting == 0, let entry = takeForExtraSlot() {
            return admit(entry, usesExpressPlace: false)
        }
        isSettled = true
        return nil
    }

    /// Admits an optional transfer that must not delay others: only if nothing waits, a slot is
    /// left for a player, and the host has room, also under the limit measured for look-ahead.
    ///
    /// - Returns: nil, with no change, if it may not run now.
    package mutating func admitAtOnce(_ entry: Entry) -> SlotToken? {
        var ahead = entry
        ahead.lane = .prefetch
        guard waiters.isEmpty, slotsInUse + 1 < limits.slots, hosts.hasRoom(for: entry),
            self.ahead.hasRoom(in: .prefetch), self.ahead.hasRoom(for: ahead),
            case .admit(let token) = admit(entry, usesExpressPlace: false)
        else { return nil }
        return token
    }

    private mutating func take(from lane: Lane, isLongPoll: Bool = false) -> Entry? {
        guard waiting(in: lane) > 0 else { return nil }
        if lane == .prefetch, let entry = take(at: Self.firstPlace) { return entry }
        guard ahead.hasRoom(in: lane) else { return nil }
        return take(at: Self.returningPlace(lane), isLongPoll: isLongPoll)
            ?? take(at: lane.rawValue, isLongPoll: isLongPoll)
    }

    private mutating func take(at place: Int, isLongPoll: Bool = false) -> Entry? {
        guard lanes[place].count > 0 else { return nil }
        // Swapped out for the call, since the closure reads the rest of this value.
        var queue = LaneQueue<UInt64>()
        swap(&queue, &lanes[place])
        let id = queue.take { id in
            waiters[id].map {
                $0.isLongPoll == isLongPoll && (isLongPoll || hosts.hasRoom(for: $0))
                    && ahead.hasRoom(for: $0)
                    && !hosts.isHeldBack($0, at: $0.host, own: $0.hostLimit)
            } ?? false
        }
        swap(&queue, &lanes[place])
        return id.flatMap { removeWaiter($0) }
    }

    /// Takes a player's waiter to a host that holds fewer slots than extra ones are free.
    ///
    /// Hosts take turns. One host gets no more than about half of the extra slots that are left, so
    /// that a second slow one does not use them up.
    private mutating func takeForExtraSlot() -> Entry? {
        let beyondFirst = slotsInUse - slotCounts.all.count
        let free = min(limits.extraSlots, beyondFirst) - (slotsInUse - limits.slots)
        guard slotsInUse >= limits.slots, free > 0, hasPlayersWaiting else { return nil }
        // Moved out for the calls, since the closures read the rest of this value.
        var queues = playersByHost.take() ?? linedUpByHost()
        var taken: UInt64?
        for lane in queues.indices where taken == nil {
            taken = queues[lane].take(of: { slotCounts[$0] < free }) { id in
                waiters[id].map { hosts.hasRoom(for: $0) } ?? false
            }
        }
        playersByHost = queues
        return taken.flatMap { removeWaiter($0) }
    }

    private mutating func admit(_ entry: Entry, usesExpressPlace: Bool) -> Action {
        isSettled = false
        nextSerial += 1
        let holder = Holder(
            entry: entry, host: entry.host, serial: nextSerial, usesExpressPlace: usesExpressPlace)
        holders[entry.id] = holder
        count(holder, by: 1)
        return .admit(SlotToken(id: entry.id, serial: nextSerial))
    }

    /// Changes a running transfer, and what is counted of it.
    private mutating func change(_ holder: Holder, _ body: (inout Holder) -> Void) {
        count(holder, by: -1)
        var changed = holder
        body(&changed)
        holders[holder.entry.id] = changed
        count(changed, by: 1)
    }

    /// Counts a transfer that runs from now on, or no longer.
    private mutating func count(_ holder: Holder, by change: Int) {
        countPlace(of: holder, by: change)
        hosts.count(holder.entry, at: holder.host, by: change)
        ahead.count(holder.entry, to: holder.host, by: change)
        if Self.isPreemptible(holder) { preemptible += change }
        if holder.isPreempted { preempting += change }
    }

    private mutating func countPlace(of holder: Holder, by change: Int) {
        if holder.isExempt { return }
        if holder.entry.isLongPoll {
            heldInUse += change
        } else if holder.usesExpressPlace {
            expressInUse += change
        } else {
            slotsInUse += change
            slotCounts.change(holder.entry.firstHost, by: change)
        }
    }

    /// Returns the preemption of the least urgent and newest transfer whose end lets an express or
    /// playback waiter start; the end of one at each host for a waiter whose two hosts are full.
    private mutating func preemption() -> Action? {
        guard preempting == 0, preemptible > 0, hasPlayersWaiting else { return nil }
        let victims = obstacles(among: preemptibleHolders)
        guard let first = victims.first else { return nil }
        for victim in victims.compactMap({ holders[$0] }) {
            change(victim) { $0.isPreempted = true }
        }
        alsoPreempted = Array(victims.dropFirst())
        return .preempt(first)
    }

    /// The transfers that may be preempted, the least urgent and newest first.
    private var preemptibleHolders: [Holder] {
        holders.values.filter(Self.isPreemptible).sorted { a, b in
            (a.entry.lane.rawValue, a.serial) > (b.entry.lane.rawValue, b.serial)
        }
    }

    /// Returns the first of several transfers whose end lets an express or playback waiter start.
    ///
    /// - Parameter ids: the transfers; those that are not running are ignored.
    /// - Returns: two for a waiter whose two hosts are full and of which none ends at both: one of
    ///   them may be another transfer, which is to be preempted; empty if there is none, or while a
    ///   preempted one is about to make room.
    package func obstacles(among ids: [UInt64]) -> [UInt64] {
        guard preempting == 0 else { return [] }
        let given = ids.compactMap { holders[$0] }
        let found = obstacles(among: given)
        guard found.isEmpty, !given.isEmpty, preemptible > 0 else { return found }
        let known = Set(ids)
        let others = preemptibleHolders.filter { !known.contains($0.entry.id) }
        let mixed = obstacles(among: given + others)
        // `next` preempts others alone.
        return mixed.contains(where: known.contains) ? mixed : []
    }

    var hasPlayersWaiting: Bool { waiting(in: .express) + waiting(in: .playback) > 0 }

    private func obstacles(among candidates: [Holder]) -> [UInt64] {
        guard !candidates.isEmpty else { return [] }
        let places = [Lane.express, .playback].flatMap { [Self.returningPlace($0), $0.rawValue] }
        for place in places where lanes[place].count > 0 {
            var found: [UInt64] = []
            // The same holders are in the way of all that wait for a host, and of all others.
            var hopeless: Set<[String]> = []
            _ = lanes[place].first { id in
                // A request that is held waits for another such one to end.
                guard let entry = waiters[id], !entry.isLongPoll else { return false }
                let full = hosts.fullHosts(of: entry)
                guard !hopeless.contains(full.map(\.name)) else { return false }
                found = obstacles(among: candidates, to: entry, full)
                if found.isEmpty { hopeless.insert(full.map(\.name)) }
                return !found.isEmpty
            }
            if !found.isEmpty { return found }
        }
        return []
    }

    private func obstacles(
        among candidates: [Holder], to entry: Entry, _ full: [HostRoom.Full]
    ) -> [UInt64] {
        if let one = candidates.first(where: { isObstacle($0, to: entry, full) }) {
            return [one.entry.id]
        }
        guard full.count > 1 else { return [] }
        // The end of one alone would let another transfer take its place.
        let each = full.compactMap { host in
            candidates.first { isObstacle($0, to: entry, [host]) }?.entry.id
        }
        return each.count == full.count ? each : []
    }

    /// True if the end of a transfer lets a waiter start that cannot start now.
    private func isObstacle(_ holder: Holder, to entry: Entry, _ full: [HostRoom.Full]) -> Bool {
        let hasPlace =
            slotsInUse < limits.slots
            || (entry.lane == .express && expressInUse < limits.expressCap)
        guard !full.isEmpty || !hasPlace else { return false }
        let isAtAll = full.allSatisfy { host in
            holder.host == host.name
                || host.countsRedirected && holder.entry.firstHost == host.name
        }
        return isAtAll && (hasPlace || holder.holdsSlot)
    }

    private static func isPreemptible(_ holder: Holder) -> Bool {
        holder.entry.lane >= .prefetch && !holder.isPreempted
    }
}
