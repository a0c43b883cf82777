// How fast stored media goes to players: not faster than the line, where that is asked for.
//
// A player that adapts takes the time of a segment for the speed of the line. What comes from the
// store at the speed of memory makes it choose a rendition that the line cannot carry, and the next
// segment that is not stored stalls it.
import CachePolicy
import Lookahead
package import Posix
import Synchronization

/// What decides how fast stored media is sent.
package enum Pace: Sendable, Hashable {
    /// As fast as players take it.
    case off
    /// As fast as the line to its origin was seen to be; at once where that is not known, or where
    /// the origin cannot be reached.
    case line
    /// So many bytes a second for each answer.
    case rate(Int64)
}

/// How fast single transfers for players were of late, by origin.
///
/// Any thread may use it.
package final class LineSpeeds: Sendable {
    /// Transfers shorter than this say more of round trips than of the line, in bytes.
    private static let shortest: Int64 = 1 << 16
    /// Seconds of transfer after which a sample weighs half: a few segments.
    private static let halfLife = 4.0

    private let speeds = Mutex(RecentMap<String, Goodput>(capacity: 512))

    package init() {}

    /// Takes note of a body that came for a player.
    package func note(_ bytes: Int64, within time: Interval, from host: String) {
        guard bytes >= Self.shortest, time > .zero else { return }
        speeds.withLock { speeds in
            var speed = speeds[host] ?? Goodput(halfLife: Self.halfLife)
            speed.add(bytes: bytes, seconds: time.inSeconds)
            speeds[host] = speed
        }
    }

    /// Bytes a second; nil where nothing was measured.
    package func speed(to host: String) -> Double? {
        speeds.withLock { $0[host]?.bytesPerSecond }
    }
}
