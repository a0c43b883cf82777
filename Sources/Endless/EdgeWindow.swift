package import Posix

/// Where a viewer enters an endless body.
package struct EdgeEntry: Sendable, Equatable {
    /// The offset of the first byte to send from the body.
    package let offset: Int64
    /// Bytes to send before it: the program tables of a transport stream.
    package let prefix: [UInt8]
}

/// The part of an endless body that is kept, and where viewers may enter it.
package struct EdgeWindow: Sendable {
    /// How much is kept; whichever is reached first bounds it.
    package struct Limits: Sendable, Equatable {
        package var duration: Interval
        package var bytes: Int64

        package init(duration: Interval = .seconds(30), bytes: Int64 = 64_000_000) {
            self.duration = duration
            self.bytes = bytes
        }
    }

    /// An offset and when its bytes arrived.
    private struct Mark {
        let offset: Int64
        let at: Monotonic
    }

    /// A viewer enters where at least so much has arrived since, if it can: a player that starts
    /// without a reserve stops at the first delay.
    static let reserve = Interval.seconds(1)
    /// The most marks of a kind, however long the window is.
    private static let mostMarks: Int64 = 512
    /// Bytes behind the window that stay readable, for a reader that was offered them just before.
    static let margin: Int64 = 1 << 20

    private let limits: Limits
    private let spacing: Interval
    private var points: [Mark] = []
    private var ticks: [Mark] = []
    /// The first offset that viewers may read.
    package private(set) var start: Int64 = 0
    /// The end of the bytes that have arrived.
    package private(set) var end: Int64 = 0
    /// The tables that precede an access point.
    package private(set) var tables: [UInt8] = []
    /// The offset of any packet; nil if the stream has none.
    private var packet: Int64?

    package init(_ limits: Limits) {
        self.limits = limits
        spacing = max(
            .milliseconds(100), Interval(nanoseconds: limits.duration.nanoseconds / Self.mostMarks))
    }

    /// Takes what has arrived.
    ///
    /// - Parameters:
    ///   - end: the end of the bytes.
    ///   - accessPoints: offsets at which decoding can begin, in ascending order.
    ///   - tables: the current tables.
    ///   - packet: the offset of any packet.
    ///   - now: the time.
    package mutating func advance(
        to end: Int64, accessPoints: [Int64], tables: [UInt8], packet: Int64?, now: Monotonic
    ) {
        self.end = max(self.end, end)
        self.packet = packet ?? self.packet
        if !tables.isEmpty, tables != self.tables { self.tables = tables }
        for offset in accessPoints { Self.add(offset, to: &points, now, spacing) }
        Self.add(self.end, to: &ticks, now, spacing)
        moveStart(now)
    }

    private static func add(
        _ offset: Int64, to marks: inout [Mark], _ now: Monotonic, _ spacing: Interval
    ) {
        if let last = marks.last {
            guard offset > last.offset, now - last.at >= spacing else { return }
        }
        marks.append(Mark(offset: offset, at: now))
    }

    /// Moves the start by time and by bytes, and drops the marks before it.
    private mutating func moveStart(_ now: Monotonic) {
        start = max(start, end - limits.bytes)
        var aged = 0
        while aged + 1 < ticks.count, now - ticks[aged].at > limits.duration {
            start = max(start, ticks[aged].offset)
            aged += 1
        }
        // Removed in bulk, so that each mark is moved a bounded number of times.
        if aged > ticks.count / 2 { ticks.removeFirst(aged) }
        let gone = points.prefix { $0.offset < start }.count
        if gone > points.count / 2 { points.removeFirst(gone) }
    }

    /// Returns where a viewer enters that comes now.
    ///
    /// The newest access point with a reserve behind it; without one the oldest that is kept;
    /// without any the beginning of a packet.
    package func entry(now: Monotonic) -> EdgeEntry {
        let kept = points.drop { $0.offset < start }
        if let point = kept.last(where: { now - $0.at >= Self.reserve }) ?? kept.first {
            return EdgeEntry(offset: point.offset, prefix: tables)
        }
        let tick = ticks.last { $0.offset >= start && now - $0.at >= Self.reserve }
        return EdgeEntry(offset: boundary(from: tick?.offset ?? start), prefix: tables)
    }

    /// Returns where a viewer goes on that was reading at an offset which is not kept any more.
    ///
    /// The packet that was cut is completed with bytes of no meaning, so that its player finds the
    /// next one.
    package func entry(after offset: Int64, now: Monotonic) -> EdgeEntry {
        let next = entry(now: now)
        let rest = [UInt8](repeating: 0xFF, count: Int(boundary(from: offset) - offset))
        return EdgeEntry(offset: next.offset, prefix: rest + next.prefix)
    }

    /// Returns the end of the bytes that nobody needs any more.
    ///
    /// - Parameters:
    ///   - slowest: the position of the reader that is farthest behind; nil for none.
    ///   - now: the time.
    /// - Returns: the offset before which everything can be freed.
    package func disposable(slowest: Int64?, now: Monotonic) -> Int64 {
        let needed = min(entry(now: now).offset, slowest ?? .max)
        return max(0, max(start, needed) - Self.margin)
    }

    private func boundary(from offset: Int64) -> Int64 {
        guard let packet else { return offset }
        let length = Int64(TransportScanner.packetLength)
        let over = ((offset - packet) % length + length) % length
        return over == 0 ? offset : offset + length - over
    }
}
