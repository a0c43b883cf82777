/// A line with one queue, and transfers over it, in simulated time: for controllers of transfers.
///
/// Senders use Reno (RFC 5681) within the receiver's window, whose right edge never moves back. A
/// window that may grow does so by two packets for each that arrives, as that of Linux.
/// Receivers measure the round trip as Linux does for `tcpi_rcv_rtt`: smoothed over eight packets.
///
/// A sender keeps its congestion window between responses.
struct SimulatedLine {
    struct Flow {
        var began: Double
        /// The receive window; nil for a large one, as Linux comes to by itself.
        var window: Double?
        fileprivate(set) var received: Int64 = 0
        /// The smoothed round trip; nil before the first packet.
        fileprivate(set) var roundTrip: Double?
        fileprivate(set) var lostPackets = 0
        /// Nil for one response without an end.
        let responses: Responses?
        /// The time from each request to the end of its response, in seconds.
        fileprivate(set) var responseTimes: [Double] = []
        /// True from a request to the end of its response.
        fileprivate(set) var isWaiting = false
        fileprivate var requestedAt = 0.0
        /// Where the last response ends whose request has reached the sender.
        fileprivate var offered: Int64
        fileprivate var sent: Int64 = 0
        fileprivate var edge: Double = 14_480
        /// What of the window is open.
        fileprivate var opened = 65_536.0
        fileprivate var congestion = 14_480.0
        fileprivate var threshold = Double.infinity
        fileprivate var recovers: Int64 = 0
        /// False for one that has ended.
        var isOpen = true

        /// Bytes of the response that are to come; nil before its first packet, and without an end.
        var lacking: Int64? {
            guard responses != nil, isWaiting, received > receivedBefore else { return nil }
            return offered - received
        }
        fileprivate var receivedBefore: Int64 = 0

        init(began: Double, window: Double? = nil, responses: Responses? = nil) {
            self.began = began
            self.window = window
            self.responses = responses
            offered = responses == nil ? .max : 0
        }
    }

    /// Responses of one length, each requested a pause after the end of the one before.
    struct Responses {
        let packets: Int64
        var pause = 0.0
    }

    private enum Event {
        case start(Int)
        case requests(Int)
        case requestArrives(Int)
        case arrives(Int, sentAt: Double)
        case acknowledged(Int, isLost: Bool, total: Int64, edge: Double)
    }

    static let payload = 1_448.0
    private static let packet = 1_500.0
    private static let largeWindow = 250e3

    /// Bytes a second.
    let rate: Double
    /// The round trip of the empty line, in seconds.
    let delay: Double
    /// What the queue holds, in bytes.
    let capacity: Double
    /// Each packet is late by up to so many seconds.
    let jitter: Double
    private(set) var flows: [Flow] = []
    private(set) var now = 0.0
    /// The waits in the queue since `takeWaits`, in seconds, one a packet.
    private(set) var waits: [Double] = []
    private var heap: [(time: Double, serial: Int, event: Event)] = []
    private var serial = 0
    private var freeAt = 0.0
    private var lastArrival = 0.0
    private var random: UInt64 = 0x9E37_79B9_7F4A_7C15

    init(megabits: Double, delay: Double, queue: Double, jitter: Double = 0) {
        rate = megabits * 125_000
        self.delay = delay
        capacity = max(3_000, rate * queue)
        self.jitter = jitter
    }

    mutating func add(_ flow: Flow) -> Int {
        flows.append(flow)
        schedule(max(now, flow.began), .start(flows.count - 1))
        return flows.count - 1
    }

    /// Sets the receive window of a flow; it takes effect with the next acknowledgement.
    mutating func limit(_ flow: Int, to window: Double?) { flows[flow].window = window }

    mutating func close(_ flow: Int) { flows[flow].isOpen = false }

    mutating func takeWaits() -> [Double] {
        defer { waits = [] }
        return waits
    }

    /// Runs until a time.
    mutating func run(until end: Double) {
        while let first = heap.first, first.time <= end {
            pop()
            now = first.time
            handle(first.event)
        }
        now = end
    }

    private mutating func handle(_ event: Event) {
        switch event {
        case .start(let flow):
            if flows[flow].responses == nil { send(flow) } else { handle(.requests(flow)) }
        case .requests(let flow):
            guard flows[flow].isOpen else { return }
            flows[flow].isWaiting = true
            flows[flow].requestedAt = now
            flows[flow].receivedBefore = flows[flow].received
            schedule(now + delay / 2, .requestArrives(flow))
        case .requestArrives(let flow):
            flows[flow].offered += (flows[flow].responses?.packets ?? 0) * Int64(Self.payload)
            send(flow)
        case .arrives(let flow, let sentAt): arrive(flow, sentAt)
        case .acknowledged(let flow, let isLost, let total, let edge):
            acknowledge(flow, isLost: isLost, total: total, edge: edge)
        }
    }

    private mutating func send(_ flow: Int) {
        guard flows[flow].isOpen else { return }
        while true {
            let state = flows[flow]
            let underWay = Double(state.sent - state.received)
            guard state.sent < state.offered,
                underWay + Self.payload <= max(state.congestion, Self.payload),
                Double(state.sent) + Self.payload <= max(state.edge, Double(state.received) + 1_448)
            else { return }
            flows[flow].sent += Int64(Self.payload)
            if freeAt < now { freeAt = now }
            let wait = freeAt - now
            if wait * rate + Self.packet > capacity {
                // Noticed by the acknowledgements of what follows, a round trip later.
                flows[flow].lostPackets += 1
                schedule(
                    now + delay + wait,
                    .acknowledged(flow, isLost: true, total: state.received, edge: state.edge))
                continue
            }
            waits.append(wait)
            freeAt += Self.packet / rate
            let arrival = max(lastArrival, freeAt + delay / 2 + jitter * nextRandom())
            lastArrival = arrival
            schedule(arrival, .arrives(flow, sentAt: now))
        }
    }

    private mutating func arrive(_ flow: Int, _ sentAt: Double) {
        flows[flow].received += Int64(Self.payload)
        let sample = now - sentAt + delay / 2
        let former = flows[flow].roundTrip
        flows[flow].roundTrip = former.map { $0 + (sample - $0) / 8 } ?? sample
        flows[flow].opened = min(
            flows[flow].window ?? Self.largeWindow, flows[flow].opened + 2 * Self.payload)
        let edge = Double(flows[flow].received) + flows[flow].opened
        schedule(
            now + delay / 2,
            .acknowledged(flow, isLost: false, total: flows[flow].received, edge: edge))
        guard flows[flow].received >= flows[flow].offered, let responses = flows[flow].responses
        else { return }
        flows[flow].isWaiting = false
        flows[flow].responseTimes.append(now - flows[flow].requestedAt)
        schedule(now + responses.pause, .requests(flow))
    }

    private mutating func acknowledge(_ flow: Int, isLost: Bool, total: Int64, edge: Double) {
        var state = flows[flow]
        if isLost {
            // The lost packet is sent again.
            state.sent -= Int64(Self.payload)
            if total >= state.recovers {
                state.threshold = max(2 * Self.payload, state.congestion / 2)
                state.congestion = state.threshold
                state.recovers = state.sent
            }
        } else {
            state.edge = max(state.edge, edge)
            state.congestion +=
                state.congestion < state.threshold
                ? Self.payload : Self.payload * Self.payload / state.congestion
        }
        flows[flow] = state
        send(flow)
    }

    // MARK: Time

    private mutating func nextRandom() -> Double {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return Double(random >> 11) / 9_007_199_254_740_992
    }

    private mutating func schedule(_ time: Double, _ event: Event) {
        serial += 1
        heap.append((time, serial, event))
        var place = heap.count - 1
        while place > 0, isEarlier(place, (place - 1) / 2) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func pop() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var place = 0
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
                if isEarlier(child, least) { least = child }
            }
            guard least != place else { return }
            heap.swapAt(place, least)
            place = least
        }
    }

    private func isEarlier(_ a: Int, _ b: Int) -> Bool {
        (heap[a].time, heap[a].serial) < (heap[b].time, heap[b].serial)
    }
}
