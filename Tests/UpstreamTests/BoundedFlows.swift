@testable import Upstream

/// Transfers of one purpose, sampled and bounded as the upstream client does.
struct BoundedFlows {
    private(set) var window: QueueWindow
    private let flows: [Int]
    private var received: [Int64]
    private var lost = 0
    /// What bodies may lack to be at their end; 0 before their first sample.
    private var ends: [Int]
    private var isEnding: [Bool]
    private var begun: [Int]
    private var bounds: [Int]
    private var opensSlowly: [Bool]
    private var boundedAt = 0.0
    private let hasEdges: Bool
    /// The round trip of handshakes, in seconds; nil if it is not measured.
    private let handshake: Double?

    init(
        _ purpose: YieldPurpose, _ count: Int, on line: inout SimulatedLine,
        from begin: Double, responses: SimulatedLine.Responses? = nil, hasEdges: Bool = false,
        handshake: Double? = nil
    ) {
        self.hasEdges = hasEdges
        self.handshake = handshake
        // Linux advertises 64 KiB before it knows more.
        flows = (0..<count).map { place in
            let began = responses == nil ? begin : begin + 0.137 * Double(place)
            return line.add(.init(began: began, window: 65_536, responses: responses))
        }
        received = flows.map { _ in 0 }
        ends = flows.map { _ in 0 }
        isEnding = flows.map { _ in false }
        begun = flows.map { _ in 0 }
        bounds = flows.map { _ in 65_536 }
        opensSlowly = flows.map { _ in true }
        window = QueueWindow(purpose)
    }

    /// Returns the bytes of all transfers so far.
    func bytes(of line: SimulatedLine) -> Int64 {
        flows.reduce(0) { $0 + line.flows[$1].received }
    }

    /// True while a response is awaited or arrives.
    func isBusy(on line: SimulatedLine) -> Bool {
        flows.contains {
            line.flows[$0].isWaiting
                || (line.flows[$0].responses == nil && line.flows[$0].received > 0)
        }
    }

    /// The number of requests so far; one for each response without an end.
    func requests(on line: SimulatedLine) -> Int {
        flows.reduce(0) {
            $0 + line.flows[$1].responseTimes.count + (line.flows[$1].isWaiting ? 1 : 0)
        }
    }

    /// The times of all responses so far, in seconds.
    func responseTimes(on line: SimulatedLine) -> [Double] {
        flows.flatMap { line.flows[$0].responseTimes }
    }

    func roundTrip(on line: SimulatedLine) -> Double? { line.flows[flows[0]].roundTrip }

    func removeBounds(on line: inout SimulatedLine) {
        for flow in flows { line.limit(flow, to: nil) }
    }

    mutating func sample(
        _ line: inout SimulatedLine, _ lowest: inout LowestDelay, lineRate: Double? = nil
    ) {
        var sample = QueueWindow.Sample(handshake: handshake)
        sample.lineRate = lineRate
        sample.connections = hasEdges ? max(1, waiting(on: line)) : flows.count
        var lostNow = 0
        for (place, flow) in flows.enumerated() {
            let state = line.flows[flow]
            lostNow += state.lostPackets
            guard state.received > received[place], let roundTrip = state.roundTrip else {
                continue
            }
            sample.bytes += state.received - received[place]
            received[place] = state.received
            sample.roundTrip = min(sample.roundTrip ?? roundTrip, roundTrip)
        }
        sample.isLossy = lostNow > lost
        lost = lostNow
        window.note(sample, of: &lowest, at: line.now)
        bound(&line)
    }

    /// Bounds the beginnings and the ends of bodies, as often as bytes are delivered; for responses
    /// with an end.
    mutating func noteEdges(of line: inout SimulatedLine) {
        guard hasEdges, window.isBound else { return }
        for (place, flow) in flows.enumerated() {
            let state = line.flows[flow]
            let requests = state.responseTimes.count + (state.isWaiting ? 1 : 0)
            let isNew = requests > begun[place]
            let isAtEnd = !isEnding[place] && (state.lacking ?? .max) <= Int64(ends[place])
            guard isNew || isAtEnd else { continue }
            begun[place] = requests
            isEnding[place] = !isNew
            ends[place] = 0
            let bytes = isNew ? share(on: line) : bounds[place]
            let isWhole = isNew && !opensSlowly[place]
            limit(place, to: isWhole ? bytes : BodyBound.edge(of: bytes), on: &line)
        }
    }

    /// Bounds the bodies that arrive: those that are not at their end in steps.
    private mutating func boundShares(of line: inout SimulatedLine) {
        let bytes = share(on: line)
        let opening = window.opening(in: min(0.1, line.now - boundedAt), at: line.now)
        boundedAt = line.now
        let bodies = flows.indices.filter { line.flows[flows[$0]].lacking != nil }
        let rising = bodies.count {
            !isEnding[$0]
                && BodyBound.rises(after: bounds[$0], share: bytes, length: length($0, on: line))
        }
        let step = opening.map { Int($0) / max(1, rising) }
        for place in bodies {
            isEnding[place] = isEnding[place] && window.isBound
            guard !isEnding[place] else {
                limit(place, to: BodyBound.edge(of: bytes), on: &line)
                continue
            }
            opensSlowly[place] = BodyBound.isLong(length(place, on: line), share: bytes)
            let isLong = opensSlowly[place] && window.isBound
            let next =
                isLong ? BodyBound.next(after: bounds[place], share: bytes, step: step) : bytes
            ends[place] = isLong ? next : 0
            limit(place, to: next, on: &line)
        }
    }

    /// The length of the responses of a flow, in bytes; nil without an end.
    private func length(_ place: Int, on line: SimulatedLine) -> Int64? {
        let packets = line.flows[flows[place]].responses?.packets
        return packets.map { $0 * Int64(SimulatedLine.payload) }
    }

    private mutating func limit(_ place: Int, to bytes: Int, on line: inout SimulatedLine) {
        bounds[place] = bytes
        line.limit(flows[place], to: Double(bytes))
    }

    /// The share of each response that is awaited or arrives.
    private func share(on line: SimulatedLine) -> Int {
        let count = max(1, waiting(on: line))
        return Int(max(QueueWindow.leastWindow, window.window / Double(count)))
    }

    private func waiting(on line: SimulatedLine) -> Int {
        flows.count { line.flows[$0].isWaiting }
    }

    private mutating func bound(_ line: inout SimulatedLine) {
        if hasEdges { return boundShares(of: &line) }
        let share = max(QueueWindow.leastWindow, window.window / Double(flows.count))
        for flow in flows { line.limit(flow, to: share) }
    }

    /// Gives way to transfers of players that begin, and goes on when they have ended.
    mutating func notePlayers(begin: Bool, areBusy: Bool, on line: inout SimulatedLine) {
        if begin { window.giveWay(at: line.now) }
        if !areBusy { window.playersEnded(at: line.now) }
        if begin || !areBusy { bound(&line) }
    }
}

/// Transfers of one purpose alone on a simulated line.
struct Yielding {
    var line: SimulatedLine
    private var lowest = LowestDelay()
    private var flows: BoundedFlows

    /// Makes transfers that each have one response without an end, or `responses`.
    init(
        _ line: SimulatedLine, _ purpose: YieldPurpose, transfers: Int = 2,
        responses: SimulatedLine.Responses? = nil, handshake: Double? = nil
    ) {
        var line = line
        flows = BoundedFlows(
            purpose, transfers, on: &line, from: 0, responses: responses,
            hasEdges: responses != nil, handshake: handshake)
        self.line = line
    }

    var window: QueueWindow { flows.window }
    /// The times of all responses so far, in seconds.
    var responseTimes: [Double] { flows.responseTimes(on: line) }

    /// Runs for some seconds, sampling as the upstream client does.
    ///
    /// - Returns: bytes a second of the transfers, and the 50th and 99th percentiles of the queue.
    mutating func run(
        for seconds: Double, isBounded: Bool = true
    ) -> (rate: Double, median: Double, p99: Double) {
        let end = line.now + seconds
        let before = flows.bytes(of: line)
        _ = line.takeWaits()
        while line.now < end {
            let roundTrip = flows.roundTrip(on: line) ?? 0.04
            let next = line.now + min(0.1, max(0.02, roundTrip / 2))
            while line.now < next {
                line.run(until: min(next, line.now + 0.002))
                flows.noteEdges(of: &line)
            }
            if isBounded { flows.sample(&line, &lowest) } else { flows.removeBounds(on: &line) }
        }
        let waits = line.takeWaits().sorted()
        let rate = Double(flows.bytes(of: line) - before) / seconds
        return (rate, waits[waits.count / 2], waits[waits.count * 99 / 100])
    }
}

/// Transfers of players and background transfers over one line, each kind under its window.
struct Household {
    var line: SimulatedLine
    private var lowest = LowestDelay()
    private var players: BoundedFlows
    private var background: BoundedFlows
    private var requests = 0

    init(
        _ line: SimulatedLine, players: Int, background: Int, from begin: Double,
        segments: SimulatedLine.Responses? = nil, handshake: Double? = nil
    ) {
        var line = line
        self.players = BoundedFlows(
            .players, players, on: &line, from: 0, responses: segments, handshake: handshake)
        self.background = BoundedFlows(
            .background, background, on: &line, from: begin, handshake: handshake)
        self.line = line
    }

    var window: QueueWindow { players.window }
    /// Bytes that players have received.
    var bytes: Int64 { players.bytes(of: line) }
    var backgroundBytes: Int64 { background.bytes(of: line) }
    /// The median time of players' responses, in seconds.
    var responseTime: Double {
        let times = players.responseTimes(on: line).sorted()
        return times.isEmpty ? .infinity : times[times.count / 2]
    }

    mutating func run(for seconds: Double) {
        let end = line.now + seconds
        while line.now < end {
            for _ in 0..<10 {
                line.run(until: line.now + 0.002)
                let begun = players.requests(on: line)
                background.notePlayers(
                    begin: begun > requests, areBusy: players.isBusy(on: line), on: &line)
                requests = begun
            }
            let now = line.now
            let lineRate = [players.window, background.window]
                .compactMap { $0.highestRate(at: now) }.max()
            players.sample(&line, &lowest, lineRate: lineRate)
            background.sample(&line, &lowest, lineRate: lineRate)
        }
    }
}
