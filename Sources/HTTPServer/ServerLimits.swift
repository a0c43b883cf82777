// The limits that the server sets its clients: times, sizes and counts, in one table.
package import HTTP
package import Posix

/// The limits of one server.
///
/// | limit | unit | default | range | reason |
/// |---|---|---|---|---|
/// | `headTimeout` | time | 10 s | 50 ms to 1 h | a head sent slowly holds a descriptor |
/// | `bodyTimeout` | time | 30 s | 50 ms to 1 h | the same for 4 KiB of a request body |
/// | `idleTimeout` | time | 75 s | 50 ms to 1 h | players pause between segments |
/// | `writeTimeout` | time | 60 s | 50 ms to 1 h | a client that reads nothing is gone |
/// | `halfCloseTimeout` | time | 500 ms | 50 ms to 1 h | a closed client looks half-closed |
/// | `lingerTimeout` | time | 2 s | 0 to 1 min | lets a client read the response before the end |
/// | `lingerBytes` | bytes | 1 MiB | 0 to 1 GiB | bounds the input discarded meanwhile |
/// | `drainTimeout` | time | 10 s | 0 to 1 h | how long a stop waits for responses in flight |
/// | `bodyBytes` | bytes | 16 GiB | 0 to 1 TiB | bodies are passed on, not held in memory |
/// | `connections` | count, all loops | 20000 | 1 to 1 million | up to two descriptors each; |
/// | | | | | HTTP/2 streams besides the first count too |
/// | `roundBytes` | bytes | 2 MiB | 4 KiB to 64 MiB | one reader's turn before the others' |
/// | `request` | see `RequestLimits` | | | |
package struct ServerLimits: Sendable, Hashable {
    /// The time from the first byte of a head to its end; also from the accept to the first byte.
    package var headTimeout = Interval.milliseconds(10_000)
    /// The time for each step of a body that is waited for, or for the rest of a discarded one.
    package var bodyTimeout = Interval.milliseconds(30_000)
    /// The time from the end of a response to the first byte of the next request.
    package var idleTimeout = Interval.milliseconds(75_000)
    /// How long the client of a full socket may read nothing; slow readers are kept.
    ///
    /// Compared when it has passed: such a client is disconnected after at most twice as long.
    package var writeTimeout = Interval.milliseconds(60_000)
    /// How long a client that shut its sending side is kept while there is nothing to send to it.
    package var halfCloseTimeout = Interval.milliseconds(500)
    /// How long the client may take to read more of the last response, and to close after it.
    package var lingerTimeout = Interval.milliseconds(2_000)
    /// The bytes that a client may still send after the last response, or of a discarded body.
    package var lingerBytes = 1 << 20
    /// How long a stop waits for responses in flight; used by callers of `HTTPServer.drain`.
    package var drainTimeout = Interval.milliseconds(10_000)
    /// The maximum length of a request body; a longer one gets 413.
    package var bodyBytes = 16 << 30
    /// The maximum number of connections over all loops; a further one takes the place of an idle
    /// one, or gets 503 and is closed.
    package var connections = 20_000
    /// The number of bytes that one connection may send before the loop turns to others.
    package var roundBytes = 2 << 20
    /// The limits of a request head.
    package var request = RequestLimits()

    package init() {}

    /// Returns the same limits, each clamped to its range.
    package func clamped() -> ServerLimits {
        let times = Interval.milliseconds(50)...Interval.milliseconds(3_600_000)
        var limits = self
        limits.headTimeout = headTimeout.clamped(to: times)
        limits.bodyTimeout = bodyTimeout.clamped(to: times)
        limits.idleTimeout = idleTimeout.clamped(to: times)
        limits.writeTimeout = writeTimeout.clamped(to: times)
        limits.halfCloseTimeout = halfCloseTimeout.clamped(to: times)
        limits.lingerTimeout = lingerTimeout.clamped(to: .zero ... .milliseconds(60_000))
        limits.lingerBytes = lingerBytes.clamped(to: 0...1 << 30)
        limits.drainTimeout = drainTimeout.clamped(to: .zero ... .milliseconds(3_600_000))
        limits.bodyBytes = bodyBytes.clamped(to: 0...1 << 40)
        limits.connections = connections.clamped(to: 1...1_000_000)
        limits.roundBytes = roundBytes.clamped(to: 4096...64 << 20)
        return limits
    }
}

extension Comparable {
    fileprivate func clamped(to range: ClosedRange<Self>) -> Self {
        min(max(self, range.lowerBound), range.upperBound)
    }
}
