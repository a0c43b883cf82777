// How fast stored media goes to players: not faster than the line, where that is asked for.
//
// A player that adapts takes the time of a segment for the speed of the line. What comes from the
// store at the speed of memory makes it choose a rendition that the line cannot carry, and the next
// segment that is not stored stalls it.
import CachePolicy
import HLS
import HTTPServer
import Lookahead
import Posix
import Reactor
import Synchronization
import Upstream
import URISyntax

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
final class LineSpeeds: Sendable {
    /// Transfers shorter than this say more of round trips than of the line, in bytes.
    private static let shortest: Int64 = 1 << 16
    /// Seconds of transfer after which a sample weighs half: a few segments.
    private static let halfLife = 4.0

    private let speeds = Mutex(RecentMap<String, Goodput>(capacity: 512))

    /// Takes note of a body that came for a player.
    func note(_ bytes: Int64, within time: Interval, from host: String) {
        guard bytes >= Self.shortest, time > .zero else { return }
        speeds.withLock { speeds in
            var speed = speeds[host] ?? Goodput(halfLife: Self.halfLife)
            speed.add(bytes: bytes, seconds: time.inSeconds)
            speeds[host] = speed
        }
    }

    /// Bytes a second; nil where nothing was measured.
    func speed(to host: String) -> Double? {
        speeds.withLock { $0[host]?.bytesPerSecond }
    }
}

extension Flight {
    /// Notes how fast the line was, where a body came for a player and was never held back.
    func measureLine(_ timings: TransferTimings) {
        guard table.settings.pace == .line, !wasAhead, resource.role?.isExpress != true,
            timings.bytes <= table.settings.readAhead
        else { return }
        let body = timings.total.nanoseconds - timings.firstByte.nanoseconds
        table.lines.note(
            timings.bytes, within: Interval(nanoseconds: body), from: resource.url.host)
    }
}

extension ProxyCore {
    /// The rate at which a stored body may go out, in bytes a second; nil for no limit.
    ///
    /// Playlists, keys and initialization sections tell a player nothing about its line.
    func pace(of resource: Resource) -> Double? {
        guard settings.pace != .off, resource.kind == nil, resource.role?.isExpress != true else {
            return nil
        }
        switch settings.pace {
        case .off: return nil
        case .rate(let rate): return Double(rate)
        case .line:
            guard health.state(of: resource.url.origin) == .up else { return nil }
            return lines.speed(to: resource.url.host)
        }
    }
}

/// A body that goes out no faster than a rate.
///
/// Bound to its server loop.
final class PacedSource: BodySource {
    private let source: any BodySource
    private let loop: EventLoop
    private var budget: PaceBudget
    private var isHeld = false
    private var isOver = false

    /// - Parameters:
    ///   - source: what is sent.
    ///   - rate: bytes a second, above 0.
    ///   - loop: the server loop that sends it.
    init(_ source: any BodySource, rate: Double, on loop: EventLoop) {
        self.source = source
        self.loop = loop
        budget = PaceBudget(rate: rate, start: Monotonic.now().inSeconds)
    }

    var wake: ((EventLoop) -> Void)? {
        didSet {
            guard let wake else { return }
            guard isHeld else { return source.wake = wake }
            let wait = max(0.001, budget.wait(at: Monotonic.now().inSeconds))
            loop.schedule(after: Interval(seconds: wait)) { [weak self] loop in
                self?.goOn(loop)
            }
        }
    }

    private func goOn(_ loop: EventLoop) {
        guard !isOver, let wake else { return }
        isHeld = false
        self.wake = nil
        wake(loop)
    }

    func next(limit: Int) -> BodyStep {
        let allowed = budget.allowance(at: Monotonic.now().inSeconds)
        guard allowed > 0 else {
            isHeld = true
            return .wait
        }
        return source.next(limit: min(limit, allowed))
    }

    func advance(by count: Int) {
        budget.take(count)
        source.advance(by: count)
    }

    func recover(fromReadError code: CInt) -> Bool { source.recover(fromReadError: code) }

    func cancel() {
        isOver = true
        wake = nil
        source.cancel()
    }
}
