import Testing
import Upstream

/// The admission rules, case by case and under random load.
@Suite struct AdmissionQueueTests {
    private typealias Entry = AdmissionQueue.Entry

    private func queue(
        slots: Int = 32, express: Int = 16, perHost: Int = 0, waiting: Int = 4096
    ) -> AdmissionQueue {
        AdmissionQueue(
            limits: AdmissionQueue.Limits(
                slots: slots, expressCap: express, perHost: perHost, waiting: waiting))
    }

    private func entry(
        _ id: UInt64, _ lane: Lane = .playback, session: UInt64 = 0, host: String = "h"
    ) -> Entry {
        Entry(id: id, lane: lane, session: session, host: host)
    }

    /// Admits as many transfers as possible.
    private func drain(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    private func drained(_ queue: inout AdmissionQueue) -> [UInt64] { drain(&queue).map(\.id) }

    @Test func `an optional transfer is admitted only if it delays no other`() {
        var queue = queue(slots: 2, perHost: 1)
        let first = queue.admitAtOnce(entry(1))
        #expect(first != nil && queue.inFlight(to: "h") == 1)
        // Only the last slot is left, and the host allows one connection only.
        #expect(queue.admitAtOnce(entry(2, host: "other")) == nil)
        _ = queue.enqueue(entry(3))
        #expect(drained(&queue).isEmpty)
        if let first { queue.release(first) }
        #expect(queue.admitAtOnce(entry(4, host: "other")) == nil)
        #expect(drained(&queue) == [3])
    }

    @Test func `an optional transfer respects the limit measured for its host`() {
        var queue = queue()
        queue.limitAhead(8, hosts: ["h": 1])
        _ = queue.enqueue(entry(1, .prefetch))
        #expect(drained(&queue) == [1])
        #expect(queue.admitAtOnce(entry(2)) == nil)
        #expect(queue.admitAtOnce(entry(3, host: "other")) != nil)
    }

    @Test func `lanes are admitted by priority, and within a lane in order of arrival`() {
        var queue = queue(slots: 1, express: 0)
        let lanes: [Lane] = [.background, .prefetch, .playback, .playback, .express, .prefetch]
        for (id, lane) in lanes.enumerated() { _ = queue.enqueue(entry(UInt64(id), lane)) }
        #expect(order(&queue) == [4, 2, 3, 1, 5, 0])
    }

    @Test func `sessions take turns within a lane`() {
        var queue = queue(slots: 1)
        for id in 0..<4 { _ = queue.enqueue(entry(UInt64(id), session: 1)) }
        for id in 4..<6 { _ = queue.enqueue(entry(UInt64(id), session: 2)) }
        _ = queue.enqueue(entry(6, session: 3))
        #expect(order(&queue) == [0, 4, 6, 1, 5, 2, 3])
    }

    /// Admits and ends all that wait, one at a time; returns them in this order.
    private func order(_ queue: inout AdmissionQueue, after running: [SlotToken] = []) -> [UInt64] {
        running.forEach { queue.release($0) }
        var order: [UInt64] = []
        while case .admit(let token)? = queue.next() {
            order.append(token.id)
            queue.release(token)
        }
        return order
    }

    private func returning(
        _ id: UInt64, _ lane: Lane = .playback, session: UInt64 = 0
    ) -> Entry {
        var entry = entry(id, lane, session: session)
        entry.isReturning = true
        return entry
    }

    @Test func `what had a slot precedes what had none, though as many wait as may`() {
        var queue = queue(slots: 1, waiting: 2)
        _ = queue.enqueue(entry(0))
        let running = drain(&queue)
        for id in 1..<3 as Range<UInt64> { _ = queue.enqueue(entry(id, session: id)) }
        let isTaken = queue.enqueue(entry(3))
        #expect(!isTaken)
        for id in 4..<7 as Range<UInt64> {
            let isTaken = queue.enqueue(returning(id, session: id == 6 ? 2 : 1))
            #expect(isTaken)
        }
        #expect(queue.waiting == 5 && queue.waiting(in: .playback) == 5)
        // Sessions take turns among those that return too.
        let order = order(&queue, after: running)
        #expect(order == [4, 6, 5, 1, 2])
        #expect(queue.waiting == 0 && queue.inFlight == 0)
    }

    @Test func `what returns overtakes no other lane, no recording and no lane it is raised to`() {
        var queue = queue(slots: 1)
        _ = queue.enqueue(entry(0))
        let running = drain(&queue)
        var recording = entry(1, .prefetch)
        recording.goesFirst = true
        _ = queue.enqueue(recording)
        for id in 2..<4 as Range<UInt64> { _ = queue.enqueue(returning(id, .prefetch)) }
        _ = queue.enqueue(entry(4))
        queue.move(3, to: .playback)
        let order = order(&queue, after: running)
        #expect(order == [4, 3, 1, 2])
    }

    @Test func `what returns and finds no slot preempts a prefetch`() {
        var queue = queue(slots: 1)
        _ = queue.enqueue(entry(0, .prefetch))
        _ = drain(&queue)
        _ = queue.enqueue(returning(1))
        let action = queue.next()
        #expect(action == .preempt(0))
    }

    @Test func `a long poll takes no slot, no express slot and none of its host's`() {
        var queue = queue(slots: 1, express: 1, perHost: 2)
        for id in 0..<5 {
            var held = entry(UInt64(id), .express)
            held.isLongPoll = true
            _ = queue.enqueue(held)
        }
        let tokens = drain(&queue)
        #expect(tokens.count == 5 && queue.heldInUse == 5)
        for id in 5..<9 { _ = queue.enqueue(entry(UInt64(id), id < 7 ? .express : .playback)) }
        #expect(drained(&queue) == [5, 6])
        #expect(queue.slotsInUse == 1 && queue.expressInUse == 1)
        for token in tokens { queue.release(token) }
        #expect(queue.heldInUse == 0 && queue.inFlight(to: "h") == 2)
    }

    @Test func `a long poll is admitted although its lane was changed while it waited`() {
        var queue = queue(slots: 1, express: 0)
        var held = entry(1, .express)
        held.isLongPoll = true
        _ = queue.enqueue(held)
        queue.move(1, to: .playback)
        #expect(drained(&queue) == [1] && queue.heldInUse == 1)
    }

    @Test func `an endless transfer gives its slot back once and counts for its host`() {
        var queue = queue(slots: 2, express: 0, perHost: 2)
        for id in 1...3 as ClosedRange<UInt64> { _ = queue.enqueue(entry(id)) }
        let first = drain(&queue)
        #expect(first.map(\.id) == [1, 2] && queue.slotsInUse == 2)
        queue.exempt(first[0])
        #expect(queue.slotsInUse == 1 && queue.inFlight(to: "h") == 2)
        // Exempt once only: else the other transfer's slot would be given away too.
        queue.exempt(first[0])
        #expect(queue.slotsInUse == 1)
        // A slot is free again, but the host has both its transfers.
        _ = queue.enqueue(entry(4, host: "other"))
        #expect(drained(&queue) == [4] && queue.slotsInUse == 2)
        queue.release(first[0])
        #expect(queue.slotsInUse == 2 && queue.inFlight(to: "h") == 1 && queue.inFlight == 2)
        // A token of a transfer that is over changes nothing.
        queue.exempt(first[0])
        #expect(queue.slotsInUse == 2)
    }

    @Test func `an exempt transfer that used an express place gives that back`() {
        var queue = queue(slots: 1, express: 1)
        _ = queue.enqueue(entry(1, .express))
        let first = drain(&queue)
        queue.exempt(first[0])
        #expect(queue.expressInUse == 0 && queue.slotsInUse == 0 && queue.inFlight == 1)
        queue.release(first[0])
        #expect(queue.expressInUse == 0 && queue.slotsInUse == 0 && queue.inFlight == 0)
    }

    @Test func `express has its own limited slots`() {
        var queue = queue(slots: 2, express: 2)
        for id in 0..<4 { _ = queue.enqueue(entry(UInt64(id))) }
        #expect(drained(&queue) == [0, 1])
        for id in 10..<14 { _ = queue.enqueue(entry(UInt64(id), .express)) }
        #expect(drained(&queue) == [10, 11])
        #expect(queue.slotsInUse == 2 && queue.expressInUse == 2 && queue.waiting == 4)
    }

    @Test func `express transfers beyond them are first in the queue for a slot`() {
        var queue = queue(slots: 1, express: 1)
        _ = queue.enqueue(entry(0))
        let held = drain(&queue)
        _ = queue.enqueue(entry(1))
        for id in 2..<4 { _ = queue.enqueue(entry(UInt64(id), .express)) }
        #expect(drained(&queue) == [2])
        held.forEach { queue.release($0) }
        #expect(drained(&queue) == [3])
    }

    @Test func `a host at its limit delays no other host, and express respects its limit`() {
        var queue = queue(slots: 8, express: 8, perHost: 1)
        _ = queue.enqueue(entry(0, host: "a"))
        _ = queue.enqueue(entry(1, host: "a"))
        _ = queue.enqueue(entry(2, .express, host: "a"))
        _ = queue.enqueue(entry(3, .prefetch, host: "b"))
        let tokens = drain(&queue)
        #expect(tokens.map(\.id) == [2, 3])
        tokens.forEach { queue.release($0) }
        #expect(drained(&queue) == [0])
    }

    @Test func `playback preempts one slot, from the newest transfer of the lowest lane`() {
        var queue = queue(slots: 3)
        _ = queue.enqueue(entry(0, .background))
        _ = queue.enqueue(entry(1, .prefetch))
        _ = queue.enqueue(entry(2, .background))
        let tokens = drain(&queue)
        _ = queue.enqueue(entry(3))
        let actions = [queue.next(), queue.next()]
        #expect(actions == [.preempt(2), nil])
        for token in tokens where token.id == 2 { queue.release(token) }
        #expect(drained(&queue) == [3])
        let action = queue.next()
        #expect(action == nil)
    }

    @Test func `playback that waits for its host preempts a transfer to that host`() {
        var queue = queue(slots: 8, perHost: 1)
        _ = queue.enqueue(entry(0, .prefetch, host: "a"))
        _ = queue.enqueue(entry(1, .prefetch, host: "b"))
        _ = drain(&queue)
        _ = queue.enqueue(entry(2, host: "a"))
        let action = queue.next()
        #expect(action == .preempt(0))
    }

    @Test func `a transfer is in the way only of players that its end lets start`() {
        var queue = queue(slots: 2, perHost: 1)
        _ = queue.enqueue(entry(0, host: "a"))
        _ = queue.enqueue(entry(1, host: "b"))
        let tokens = drain(&queue)
        #expect(queue.obstacles(among: [0, 1]).isEmpty)
        _ = queue.enqueue(entry(2, .prefetch, host: "b"))
        #expect(drained(&queue).isEmpty)
        #expect(queue.obstacles(among: [0, 1]).isEmpty)
        // One that waits for its host, and one that waits for any slot.
        _ = queue.enqueue(entry(3, host: "b"))
        #expect(drained(&queue).isEmpty)
        #expect(queue.obstacles(among: [0, 1]) == [1])
        #expect(queue.obstacles(among: [0]).isEmpty)
        _ = queue.enqueue(entry(4, host: "c"))
        #expect(drained(&queue).isEmpty)
        #expect(queue.obstacles(among: [0, 1]) == [1])
        #expect(queue.obstacles(among: [0]) == [0])
        // Both can start now, one after the other.
        tokens.forEach { queue.release($0) }
        #expect(queue.obstacles(among: [0, 1]).isEmpty)
        #expect(drained(&queue) == [3, 4])
    }

    @Test func `while a preempted transfer makes room, nothing else is in the way`() {
        var queue = queue(slots: 2)
        _ = queue.enqueue(entry(0))
        _ = queue.enqueue(entry(1, .prefetch))
        _ = drain(&queue)
        _ = queue.enqueue(entry(2))
        let action = queue.next()
        #expect(action == .preempt(1))
        #expect(queue.obstacles(among: [0]).isEmpty)
    }

    @Test func `prefetch and background preempt nothing`() {
        var queue = queue(slots: 1)
        _ = queue.enqueue(entry(0, .background))
        _ = drain(&queue)
        _ = queue.enqueue(entry(1, .prefetch))
        let action = queue.next()
        #expect(action == nil)
    }

    @Test func `a redirect counts for the new host, or waits for it`() throws {
        var queue = queue(perHost: 1)
        _ = queue.enqueue(entry(0, host: "a"))
        _ = queue.enqueue(entry(1, host: "b"))
        let tokens = drain(&queue)
        let moves = ["b", "c"].map { queue.redirect(tokens[0], to: $0) }
        #expect(moves == [false, true])
        #expect(queue.inFlight(to: "a") == 0 && queue.inFlight(to: "c") == 1)
        tokens.forEach { queue.release($0) }
        #expect(queue.inFlight(to: "c") == 0)
    }

    @Test func `a full queue rejects further transfers`() {
        var queue = queue(slots: 1, waiting: 2)
        let accepted = (0..<3).map { queue.enqueue(entry($0)) }
        #expect(accepted == [true, true, false])
        let first = queue.cancel(1)
        let afterwards = queue.enqueue(entry(2))
        let second = queue.cancel(1)
        #expect(first && afterwards && !second)
    }

    @Test(arguments: [Lane.prefetch, .background])
    func `fetches ahead that wait shut no player out, nor a player one of them`(_ lane: Lane) {
        var queue = queue(slots: 1, waiting: 2)
        let ahead = (0..<3).map { queue.enqueue(entry($0, lane)) }
        let players = (3..<6).map { queue.enqueue(entry($0, $0 == 3 ? .express : .playback)) }
        #expect(ahead == [true, true, false])
        #expect(players == [true, true, false])
        #expect(queue.waiting == 4)
    }

    @Test func `fetches ahead that were raised for players let no more wait than the sum`() {
        var queue = queue(slots: 1, waiting: 2)
        for id in 0..<6 as Range<UInt64> where queue.enqueue(entry(id, .prefetch)) {
            queue.move(id, to: .playback)
        }
        #expect(queue.waiting == 4)
        let player = queue.enqueue(entry(6))
        #expect(!player)
    }

    @Test func `a slot released twice traps`() async {
        await #expect(processExitsWith: .failure) {
            var queue = AdmissionQueue(limits: AdmissionQueue.Limits())
            _ = queue.enqueue(
                AdmissionQueue.Entry(id: 1, lane: .playback, session: 0, host: "h"))
            guard case .admit(let token)? = queue.next() else { return }
            queue.release(token)
            queue.release(token)
        }
    }

    @Test func `a million cancelled waiters leave no memory in use`() {
        var queue = queue(slots: 1, waiting: 100)
        _ = queue.enqueue(entry(0))
        let held = drain(&queue)
        for id in 1...1_000_000 as ClosedRange<UInt64> {
            _ = queue.enqueue(entry(id, .playback, session: id % 5000, host: "h"))
            guard queue.cancel(id) else {
                Issue.record("\(id) did not leave")
                return
            }
        }
        #expect(queue.waiting == 0 && queue.footprint < 100 && queue.slotsInUse == 1)
        held.forEach { queue.release($0) }
        #expect(queue.inFlight == 0)
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `random load exceeds no limit, loses no transfer and starves none`(seed: UInt64) {
        var load = RandomLoad(seed: seed)
        for _ in 0..<60_000 { load.step() }
        load.finish()
        #expect(load.problems.isEmpty, "\(load.problems.prefix(3))")
        #expect(load.ended == load.admitted && load.admitted + load.cancelled == load.enqueued)
        #expect(load.queue.inFlight == 0 && load.queue.waiting == 0 && load.queue.footprint < 200)
    }
}

/// Random arrivals and releases, with the rules checked after each.
private struct RandomLoad {
    var queue = AdmissionQueue(
        limits: AdmissionQueue.Limits(slots: 32, expressCap: 16, perHost: 12, waiting: 500))
    /// Some hosts have a limit of their own.
    private static let ownLimits = ["h0": 8, "h1": 20]
    var problems: [String] = []
    var enqueued = 0, admitted = 0, cancelled = 0, ended = 0
    private var state: UInt64
    private var nextID: UInt64 = 0
    private var flying: [UInt64: (token: SlotToken, host: String)] = [:]
    private var waiting: [UInt64: AdmissionQueue.Entry] = [:]
    private var newestAdmitted: [String: UInt64] = [:]

    init(seed: UInt64) { state = seed }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    private mutating func random(_ bound: UInt64) -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return (mixed ^ (mixed >> 31)) % bound
    }

    mutating func step() {
        switch random(10) {
        case 0..<4: enqueue()
        case 4..<8: endOne()
        case 8: cancelOne()
        default: break
        }
        act()
        check()
    }

    mutating func finish() {
        while queue.inFlight > 0 || queue.waiting > 0 {
            endOne()
            act()
            check()
            if !problems.isEmpty { return }
        }
    }

    private mutating func enqueue() {
        nextID += 1
        let lane = Lane(rawValue: Int(random(4))) ?? .playback
        var entry = AdmissionQueue.Entry(
            id: nextID, lane: lane, session: random(6), host: "h\(random(6))")
        entry.hostLimit = Self.ownLimits[entry.host] ?? 0
        entry.firstHostLimit = entry.hostLimit
        guard queue.enqueue(entry) else { return }
        waiting[nextID] = entry
        enqueued += 1
    }

    private mutating func endOne() {
        guard
            let id = flying.keys.sorted().dropFirst(Int(random(UInt64(max(1, flying.count))))).first
        else { return }
        end(id)
    }

    private mutating func end(_ id: UInt64) {
        guard let flight = flying.removeValue(forKey: id) else {
            problems.append("\(id) was named and does not fly")
            return
        }
        queue.release(flight.token)
        ended += 1
    }

    private mutating func cancelOne() {
        guard let id = waiting.keys.min() else { return }
        waiting[id] = nil
        if !queue.cancel(id) { problems.append("\(id) could not be cancelled") }
        cancelled += 1
    }

    private mutating func act() {
        while let action = queue.next() {
            switch action {
            case .preempt(let id): end(id)
            case .admit(let token):
                guard let entry = waiting.removeValue(forKey: token.id) else {
                    problems.append("\(token.id) was admitted and does not wait")
                    return
                }
                admitted += 1
                flying[token.id] = (token, entry.host)
                // No transfer overtakes another of the same lane, session and host.
                let kind = "\(entry.lane) \(entry.session) \(entry.host)"
                if let newest = newestAdmitted[kind], newest > token.id {
                    problems.append("\(token.id) was overtaken by \(newest)")
                }
                newestAdmitted[kind] = token.id
            }
        }
    }

    private mutating func check() {
        if queue.slotsInUse > 40 { problems.append("\(queue.slotsInUse) slots in use") }
        if queue.expressInUse > 16 {
            problems.append("\(queue.expressInUse) express places in use")
        }
        if queue.inFlight != flying.count { problems.append("flights are lost") }
        if queue.waiting != waiting.count { problems.append("waiters are lost") }
        var hosts: [String: Int] = [:]
        for flight in flying.values { hosts[flight.host, default: 0] += 1 }
        for (host, count) in hosts where count > Self.ownLimits[host] ?? 12 {
            problems.append("\(host) has \(count)")
        }
    }
}
