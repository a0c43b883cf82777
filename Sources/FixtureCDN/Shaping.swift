import Synchronization

/// A link between the sample CDN and its clients, made in user space.
///
/// It has a rate shared by all connections, a rate per connection, round trips, and outages.
///
/// The throughput of a single connection on a real link that loses packets is bounded by round trip
/// and loss (Mathis et al., 1997: about 1.2 segments per round trip, divided by the square root of
/// the loss rate); `single` models that bound, or a host that limits each connection.
package struct LinkShape: Sendable, Equatable {
    /// Bytes a second of all connections together; nil for no limit.
    package var shared: Int?
    /// Bytes a second of one connection; nil for no limit.
    package var single: Int?
    /// Milliseconds added to the first response on a connection: its handshake.
    package var connectDelay = 0
    /// Milliseconds between a request and the first byte of its answer.
    package var responseDelay = 0
    /// Milliseconds from the start of one outage to the start of the next; 0 for none.
    package var outageEvery = 0
    /// Length of an outage in milliseconds, during which no byte is sent.
    package var outage = 0

    package init(
        shared: Int? = nil, single: Int? = nil, connectDelay: Int = 0, responseDelay: Int = 0
    ) {
        self.shared = shared
        self.single = single
        self.connectDelay = connectDelay
        self.responseDelay = responseDelay
    }

    /// The profiles by their names.
    ///
    /// | name | shared, Mbit/s | one connection | round trip |
    /// |---|---|---|---|
    /// | `3g` | 1.6 | 1.0 | 300 ms |
    /// | `4g` | 7 | 4.5 (0.1 % loss) | 100 ms |
    /// | `wifi` | 124 | 48 | 60 ms |
    /// | `fibre` | 500 | 250 | 8 ms |
    /// | `burst` | as `4g`, and 1.5 s of every 8 s nothing comes through | | |
    package static func profile(_ name: String) -> LinkShape? {
        switch name {
        case "3g":
            return LinkShape(
                shared: 200_000, single: 125_000, connectDelay: 300, responseDelay: 300)
        case "4g":
            return LinkShape(
                shared: 875_000, single: 560_000, connectDelay: 100, responseDelay: 100)
        case "wifi":
            return LinkShape(
                shared: 15_500_000, single: 6_000_000, connectDelay: 60, responseDelay: 60)
        case "fibre":
            return LinkShape(
                shared: 62_500_000, single: 31_250_000, connectDelay: 8, responseDelay: 8)
        case "burst":
            var shape = profile("4g")
            shape?.outageEvery = 8_000
            shape?.outage = 1_500
            return shape
        default: return nil
        }
    }

    /// The shape that arguments describe: `profile=NAME`, and then each of `shared`, `single` (bytes
    /// a second), `connect`, `latency`, `every` and `outage` (milliseconds) that is given.
    ///
    /// Nil for an unknown profile.
    init?(_ arguments: QueryArguments) {
        self.init()
        if let name = arguments["profile"] {
            guard let profile = Self.profile(name) else { return nil }
            self = profile
        }
        let number = { (name: String) in arguments[name].flatMap { Int($0) } }
        if let value = number("shared") { shared = value > 0 ? value : nil }
        if let value = number("single") { single = value > 0 ? value : nil }
        connectDelay = number("connect") ?? connectDelay
        responseDelay = number("latency") ?? responseDelay
        outageEvery = number("every") ?? outageEvery
        outage = number("outage") ?? outage
    }

    /// Bytes sent at a time; small enough that connections share the link fairly.
    var piece: Int {
        guard let rate = slowest else { return 64 << 10 }
        return max(1_024, min(16 << 10, rate / 100))
    }

    /// Bytes that the kernel may buffer for a peer that does not read; nil for the kernel's
    /// default.
    ///
    /// Buffered bytes are accounted for as if they had crossed the link; on a real link they would
    /// still be on the sender's side.
    var sendBuffer: Int? { slowest.map { max(8 << 10, $0 / 50) } }

    private var slowest: Int? { [shared, single].compactMap { $0 }.min() }
}

/// Allocates the link's transmission time.
///
/// Any thread may use it.
final class Shaper: Sendable {
    private struct State {
        var shape: LinkShape?
        var since: Int64 = 0
        /// When the link will have sent everything allocated so far.
        var free: Int64 = 0
    }

    /// Threads wake late: the link makes up for at most this much idle time, in nanoseconds.
    private static let slack: Int64 = 20_000_000

    private let state = Mutex(State())

    /// The shape now; nil for a link without limits.
    var shape: LinkShape? { state.withLock { $0.shape } }

    func set(_ shape: LinkShape?) {
        state.withLock { $0 = State(shape: shape, since: Sockets.now(), free: 0) }
    }

    /// The time at which bytes sent now have crossed the link, in monotonic nanoseconds.
    ///
    /// - Parameters:
    ///   - count: bytes.
    ///   - free: when the connection will have sent all of its bytes; updated.
    /// - Returns: The time; now if there is no limit.
    func arrival(of count: Int, on free: inout Int64) -> Int64 {
        let now = Sockets.now()
        return state.withLock { state in
            guard let shape = state.shape else { return now }
            var end = now
            if let rate = shape.shared {
                state.free = max(state.free, now - Self.slack) + Self.time(count, rate)
                end = max(end, state.free)
            }
            if let rate = shape.single {
                free = max(free, now - Self.slack) + Self.time(count, rate)
                end = max(end, free)
            }
            return Self.afterOutage(end, shape, state.since)
        }
    }

    private static func time(_ count: Int, _ rate: Int) -> Int64 {
        Int64(Double(count) / Double(rate) * 1e9)
    }

    private static func afterOutage(_ time: Int64, _ shape: LinkShape, _ since: Int64) -> Int64 {
        guard shape.outageEvery > 0, shape.outage > 0 else { return time }
        let period = Int64(shape.outageEvery) * 1_000_000
        // The first outage comes at the end of the first period.
        let place = (time - since) % period
        let start = period - Int64(shape.outage) * 1_000_000
        return place >= start ? time + period - place : time
    }
}

extension FixtureCDN {
    /// Puts a link in front of the CDN; nil removes it.
    ///
    /// Open connections adopt it with their next piece.
    package func shape(_ shape: LinkShape?) { shaper.set(shape) }

    /// Answers `/__shape?profile=wifi`, or `/__shape`, which removes the link.
    func setShape(_ query: QueryArguments) -> String {
        guard !query.pairs.isEmpty else {
            shaper.set(nil)
            return "{\"ok\":true}\n"
        }
        guard let shape = LinkShape(query) else {
            return "{\"error\":\"profile= is 3g, 4g, wifi, fibre or burst\"}\n"
        }
        shaper.set(shape)
        return "{\"ok\":true}\n"
    }
}

extension Connection {
    /// Waits for the round trip of a request; false if the peer has closed meanwhile.
    func waitForLink() -> Bool {
        guard let shape = cdn.shaper.shape else { return true }
        let isFirst = !didShake
        didShake = true
        if let count = shape.sendBuffer { Sockets.limitSendBuffer(descriptor, to: count) }
        let delay = shape.responseDelay + (isFirst ? shape.connectDelay : 0)
        guard delay > 0 else { return true }
        return Sockets.pause(descriptor, milliseconds: delay)
    }

    /// Waits until `bytes` bytes have crossed the link; false if the peer has closed meanwhile.
    func waitForLink(bytes: Int) -> Bool {
        guard cdn.shaper.shape != nil else { return true }
        let due = cdn.shaper.arrival(of: bytes, on: &linkFree)
        let wait = Int((due - Sockets.now()) / 1_000_000)
        return wait <= 0 || Sockets.pause(descriptor, milliseconds: wait)
    }
}
