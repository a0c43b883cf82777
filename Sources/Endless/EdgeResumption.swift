package import Posix

/// Joins the bytes of a new connection to an endless body whose connection broke.
///
/// What arrives before the first access point is dropped, so that viewers go on where decoding can
/// begin. Holds the reach of the scanner.
package struct EdgeResumption: Sendable {
    /// Without an access point in this time, viewers go on at any packet.
    static let patience = Interval.seconds(10)

    private var scanner: StreamScanner
    private var tail: [UInt8] = []
    private var received: Int64 = 0
    private let awaitsPoint: Bool
    private let begunAt: Monotonic

    /// Starts with a new connection.
    ///
    /// - Parameters:
    ///   - format: the format of the body.
    ///   - awaitsPoint: false if the body has no access points, so that any packet will do.
    ///   - now: the time.
    package init(_ format: StreamFormat, awaitsPoint: Bool = true, now: Monotonic) {
        scanner = StreamScanner(format)
        self.awaitsPoint = awaitsPoint
        begunAt = now
    }

    /// The bytes to append to the body, and the scanner that goes on after them.
    package struct Junction: Sendable {
        package let bytes: [UInt8]
        package let scanner: StreamScanner
        /// True if decoding can begin at the junction.
        package let isAccessPoint: Bool
        /// The offset of its first byte of the new connection.
        package let offset: Int64
    }

    /// Takes bytes of the new connection.
    ///
    /// - Parameters:
    ///   - bytes: the bytes.
    ///   - end: the end of the body.
    ///   - boundary: the bytes that complete its last packet.
    ///   - now: the time.
    /// - Returns: what to append, once an access point has arrived or was waited for too long.
    package mutating func take(
        _ bytes: Span<UInt8>, end: Int64, boundary: Int, now: Monotonic
    ) -> Junction? {
        scanner.take(bytes)
        for index in 0..<bytes.count { tail.append(bytes[index]) }
        received += Int64(bytes.count)
        let tailStart = received - Int64(tail.count)
        let points = scanner.takeAccessPoints()
        var start = points.first
        if start == nil, now - begunAt >= Self.patience {
            start = max(tailStart, scanner.lastPacket ?? tailStart)
        } else if start == nil, !awaitsPoint {
            start = scanner.lastPacket.map { max(tailStart, $0) }
        }
        guard let start else {
            tail.removeFirst(max(0, tail.count - Int(StreamScanner.reach)))
            return nil
        }
        let cut = max(0, min(tail.count, Int(start - tailStart)))
        let padding = [UInt8](repeating: 0xFF, count: boundary)
        let ahead = padding + scanner.tables
        let offset = end + Int64(ahead.count)
        scanner.shift(by: offset - (tailStart + Int64(cut)))
        return Junction(
            bytes: ahead + tail[cut...], scanner: scanner, isAccessPoint: !points.isEmpty,
            offset: offset)
    }
}
