// How fast stored media is sent to players: no faster than the line to the origin, if so
// configured.
//
// An adaptive player takes the download time of a segment as the speed of the line. Segments from
// the store, at the speed of memory, make it choose a rendition that the line cannot carry, and the
// next segment that is not stored stalls it.
import CachePolicy
import Lookahead
package import Posix
import Synchronization

/// What decides how fast stored media is sent.
package enum Pace: Sendable, Hashable {
    /// As fast as players take it.
    case off
    /// As fast as the measured line to its origin; unlimited where that is unknown, as it is after a
    /// start, or the origin is unreachable.
    case line
    /// This many bytes a second for each response.
    case rate(Int64)
}

/// The recent speed of single transfers for players, by origin.
///
/// Any thread may use it.
package final class LineSpeeds: Sendable {
    /// Shorter transfers measure round trips rather than the line; in bytes.
    private static let shortest: Int64 = 1 << 16
    /// Seconds of transfer after which the weight of a sample has halved: a few segments.
    private static let halfLife = 4.0

    private let speeds = Mutex(RecentMap<String, Goodput>(capacity: 512))

    package init() {}

    /// Adds the measurement of a body that was transferred for a player.
    package func note(_ bytes: Int64, within time: Interval, from host: String) {
        guard bytes >= Self.shortest, time > .zero else { return }
        speeds.withLock { speeds in
            var speed = speeds[host] ?? Goodput(halfLife: Self.halfLife)
            speed.add(bytes: bytes, seconds: time.inSeconds)
            speeds[host] = speed
        }
    }

    /// Returns bytes a second; nil if nothing was measured.
    package func speed(to host: String) -> Double? {
        speeds.withLock { $0[host]?.bytesPerSecond }
    }
}
