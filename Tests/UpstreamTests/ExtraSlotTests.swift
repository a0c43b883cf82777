import Testing
import Upstream

/// The slots beyond the limit, which keep a slow host from starving the others.
@Suite struct ExtraSlotTests {
    private typealias Entry = AdmissionQueue.Entry

    private func queue(slots: Int = 32, express: Int = 0, perHost: Int = 0) -> AdmissionQueue {
        AdmissionQueue(
            limits: AdmissionQueue.Limits(slots: slots, expressCap: express, perHost: perHost))
    }

    /// Adds transfers to a host with the IDs from `first` on.
    private func add(
        _ count: Int, to host: String, from first: UInt64, _ lane: Lane = .playback,
        in queue: inout AdmissionQueue
    ) {
        for id in first..<first + UInt64(count) {
            _ = queue.enqueue(Entry(id: id, lane: lane, session: 0, host: host))
        }
    }

    /// Admits as many transfers as possible.
    private func drain(_ queue: inout AdmissionQueue) -> [SlotToken] {
        var tokens: [SlotToken] = []
        while case .admit(let token)? = queue.next() { tokens.append(token) }
        return tokens
    }

    private func drained(_ queue: inout AdmissionQueue) -> [UInt64] { drain(&queue).map(\.id) }

    @Test func `a single host uses all slots and no extra one`() {
        var queue = queue()
        add(40, to: "slow", from: 0, in: &queue)
        let tokens = drain(&queue)
        #expect(tokens.count == 32 && queue.slotsInUse == 32)
        queue.release(tokens[0])
        #expect(drained(&queue) == [32])
    }

    @Test func `each further host gets about half of the extra slots that are left`() {
        var queue = queue()
        add(40, to: "slow", from: 0, in: &queue)
        #expect(drained(&queue).count == 32)
        var counts: [Int] = []
        for (index, host) in ["a", "b", "c", "d", "e"].enumerated() {
            add(10, to: host, from: UInt64(100 * (index + 1)), in: &queue)
            counts.append(drained(&queue).count)
        }
        #expect(counts == [4, 2, 1, 1, 0])
        #expect(queue.slotsInUse == 40)
    }

    @Test(arguments: [(1, 0), (2, 1), (3, 2), (4, 2), (8, 2), (16, 4), (32, 8), (256, 64)])
    func `there is a quarter more, at least two, and never as many as slots`(
        slots: Int, extra: Int
    ) {
        var queue = queue(slots: slots)
        add(slots, to: "slow", from: 0, in: &queue)
        #expect(drained(&queue).count == slots)
        // One request of each host.
        for host in 0..<100 { add(1, to: "h\(host)", from: UInt64(1_000 + host), in: &queue) }
        #expect(drained(&queue).count == extra)
        var configuration = UpstreamConfiguration()
        configuration.slots = slots
        #expect(configuration.extraSlots == extra)
    }

    @Test func `extra slots are paid back before a slot is given away`() {
        var queue = queue()
        add(40, to: "slow", from: 0, in: &queue)
        let slow = drain(&queue)
        add(2, to: "a", from: 100, in: &queue)
        #expect(drained(&queue) == [100, 101])
        for token in slow[..<2] {
            queue.release(token)
            #expect(drained(&queue).isEmpty)
        }
        #expect(queue.slotsInUse == 32)
        queue.release(slow[2])
        #expect(drained(&queue) == [32])
    }

    @Test func `where each host holds one slot, none is added`() {
        var queue = queue(slots: 8)
        for host in 0..<12 { add(1, to: "h\(host)", from: UInt64(host), in: &queue) }
        #expect(drained(&queue).count == 8)
    }

    @Test func `a playlist passes the playlists of a slow host, and a fetch ahead does not`() {
        var queue = queue(slots: 4, express: 2)
        add(10, to: "slow", from: 0, .express, in: &queue)
        #expect(drained(&queue).count == 6)
        add(1, to: "a", from: 100, .prefetch, in: &queue)
        add(1, to: "b", from: 101, .background, in: &queue)
        #expect(drained(&queue).isEmpty)
        add(1, to: "c", from: 102, .playback, in: &queue)
        add(1, to: "c", from: 103, .express, in: &queue)
        #expect(drained(&queue) == [103])
        #expect(queue.slotsInUse == 5 && queue.expressInUse == 2)
    }

    @Test func `a fetch ahead is ended before an extra slot is used`() {
        var queue = queue(slots: 4)
        add(3, to: "slow", from: 0, in: &queue)
        add(1, to: "slow", from: 3, .prefetch, in: &queue)
        let tokens = drain(&queue)
        add(1, to: "a", from: 100, in: &queue)
        let actions = [queue.next(), queue.next()]
        #expect(actions == [.preempt(3), nil])
        for token in tokens where token.id == 3 { queue.release(token) }
        #expect(drained(&queue) == [100])
        #expect(queue.slotsInUse == 4)
    }

    @Test func `a request raised for a player gets an extra slot, and one that left does not`() {
        var queue = queue(slots: 4)
        add(4, to: "slow", from: 0, in: &queue)
        _ = drain(&queue)
        add(1, to: "a", from: 100, .prefetch, in: &queue)
        #expect(drained(&queue).isEmpty)
        queue.move(100, to: .playback)
        queue.move(100, to: .prefetch)
        #expect(drained(&queue).isEmpty)
        queue.move(100, to: .playback)
        let isGone = queue.cancel(100)
        #expect(isGone)
        #expect(drained(&queue).isEmpty)
        add(1, to: "a", from: 101, .prefetch, in: &queue)
        queue.move(101, to: .playback)
        #expect(drained(&queue) == [101])
    }

    @Test func `a slot counts for the host that redirected its transfer`() {
        var queue = queue(slots: 4)
        add(4, to: "panel", from: 0, in: &queue)
        for token in drain(&queue) {
            let isMoved = queue.redirect(token, to: "node")
            #expect(isMoved)
        }
        add(1, to: "panel", from: 100, in: &queue)
        #expect(drained(&queue).isEmpty)
        var returning = Entry(id: 101, lane: .playback, session: 0, host: "node")
        returning.firstHost = "panel"
        returning.isReturning = true
        _ = queue.enqueue(returning)
        #expect(drained(&queue).isEmpty)
        add(1, to: "node", from: 102, in: &queue)
        #expect(drained(&queue) == [102])
    }

    @Test func `the limit of a host holds for extra slots`() {
        var queue = queue(slots: 16, perHost: 1)
        for host in 0..<16 {
            var entry = Entry(id: UInt64(host), lane: .playback, session: 0, host: "edge\(host)")
            entry.firstHost = "slow"
            _ = queue.enqueue(entry)
        }
        #expect(drained(&queue).count == 16)
        add(2, to: "a", from: 100, in: &queue)
        add(1, to: "edge0", from: 102, in: &queue)
        #expect(drained(&queue) == [100])
    }

    @Test func `waiters are lined up by host only from when no slot is free until none waits`() {
        var queue = queue(slots: 4, perHost: 3)
        add(5, to: "slow", from: 0, in: &queue)
        let slow = drain(&queue)
        #expect(slow.map(\.id) == [0, 1, 2])
        // Each waiter itself and in its lane, and the turn of the session.
        #expect(queue.footprint == 2 * queue.waiting + 1)
        add(2, to: "a", from: 100, in: &queue)
        #expect(drained(&queue) == [100, 101])
        for token in slow { queue.release(token) }
        #expect(drained(&queue) == [3, 4])
        #expect(queue.footprint == 0)
        add(2, to: "b", from: 200, in: &queue)
        #expect(drained(&queue) == [200])
    }

    @Test(arguments: [2, 4, 32], [0, 12])
    func `under random load a slow host starves no other, and no slot is idle`(
        slots: Int, perHost: Int
    ) {
        var load = SlowHostLoad(slots: slots, perHost: perHost)
        for _ in 0..<20_000 where load.problems.isEmpty { load.step() }
        load.finish()
        #expect(load.problems.isEmpty, "\(load.problems.prefix(3))")
        #expect(load.served > 200)
    }
}

/// Random arrivals and ends at four hosts, of which one never ends a transfer.
private struct SlowHostLoad {
    private static let slowHost = "slow"
    private static let hosts = [slowHost, "a", "b", "c"]

    var problems: [String] = []
    /// Players' transfers to other hosts that were admitted.
    var served = 0
    private let slots: Int
    private let perHost: Int
    private var queue: AdmissionQueue
    private var state: UInt64
    private var nextID: UInt64 = 0
    private var flying: [UInt64: (token: SlotToken, host: String)] = [:]
    private var waiting: [UInt64: AdmissionQueue.Entry] = [:]

    init(slots: Int, perHost: Int) {
        self.slots = slots
        self.perHost = perHost
        state = UInt64(slots + perHost)
        // Without express places, each transfer holds a slot.
        queue = AdmissionQueue(
            limits: AdmissionQueue.Limits(
                slots: slots, expressCap: 0, perHost: perHost, waiting: 500))
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    private mutating func random(_ bound: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ (mixed >> 31)) % UInt64(bound))
    }

    mutating func step() {
        switch random(10) {
        case 0..<4: enqueue()
        case 4..<8: endOne()
        case 8: cancelOne()
        default: moveOne()
        }
        act()
        check()
    }

    /// Ends transfers to other hosts only, until no player of these waits.
    mutating func finish() {
        while problems.isEmpty, isPlayerWaiting {
            endOne()
            act()
            check()
        }
    }

    private var isPlayerWaiting: Bool {
        waiting.values.contains { $0.lane <= .playback && $0.host != Self.slowHost }
    }

    private mutating func enqueue() {
        nextID += 1
        let entry = AdmissionQueue.Entry(
            id: nextID, lane: Lane(rawValue: random(4)) ?? .playback,
            session: UInt64(random(6)), host: Self.hosts[random(Self.hosts.count)])
        if queue.enqueue(entry) { waiting[nextID] = entry }
    }

    private mutating func endOne() {
        let ids = flying.filter { $0.value.host != Self.slowHost }.keys.sorted()
        if !ids.isEmpty { end(ids[random(ids.count)]) }
    }

    private mutating func end(_ id: UInt64) {
        guard let flight = flying.removeValue(forKey: id) else {
            problems.append("\(id) was named and does not run")
            return
        }
        queue.release(flight.token)
    }

    private mutating func cancelOne() {
        guard let id = waiting.keys.min() else { return }
        waiting[id] = nil
        if !queue.cancel(id) { problems.append("\(id) could not be cancelled") }
    }

    private mutating func moveOne() {
        let ids = waiting.keys.sorted()
        guard !ids.isEmpty else { return }
        let id = ids[random(ids.count)]
        let lane = Lane(rawValue: random(4)) ?? .playback
        waiting[id]?.lane = lane
        queue.move(id, to: lane)
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
                flying[token.id] = (token, entry.host)
                if entry.lane <= .playback, entry.host != Self.slowHost { served += 1 }
            }
        }
    }

    private mutating func check() {
        var held: [String: Int] = [:]
        for flight in flying.values { held[flight.host, default: 0] += 1 }
        let extra = queue.slotsInUse - slots
        let slow = held[Self.slowHost] ?? 0
        if queue.slotsInUse != flying.count || queue.waiting != waiting.count {
            problems.append("transfers are lost")
        }
        if extra > queue.limits.extraSlots || slow > slots {
            problems.append("\(queue.slotsInUse) slots in use, \(slow) of them by the slow host")
        }
        if extra > max(0, queue.slotsInUse - held.count) {
            problems.append("\(extra) extra slots in use, by \(held)")
        }
        if perHost != 0, held.values.contains(where: { $0 > perHost }) {
            problems.append("the limit of a host is exceeded: \(held)")
        }
        if extra < 0, waiting.values.contains(where: { perHost == 0 || held[$0.host] != perHost }) {
            problems.append("a slot is idle while a transfer waits that may run")
        }
        if slow == flying.count, isPlayerWaiting {
            problems.append("the slow host holds all \(slow) slots while a player waits")
        }
    }
}
