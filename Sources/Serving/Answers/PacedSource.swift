import HLS
import HTTPServer
import Lookahead
import Model
import Posix
import Reactor
import URISyntax

extension ProxyCore {
    /// Returns the rate limit of a stored body in bytes a second; nil for no limit.
    ///
    /// Playlists, keys and initialization sections do not affect a player's estimate of its line.
    func pace(of resource: Resource) -> Double? {
        let pace = settings.pace
        if case .off = pace { return nil }
        guard !resource.followsHTTP, resource.role?.isExpress != true else { return nil }
        switch pace {
        case .off: return nil
        case .rate(let rate): return Double(rate)
        case .line:
            guard origins.state(of: resource) == .up else { return nil }
            return lines.speed(to: resource.url.host)
        }
    }
}

/// A body that is sent no faster than a given rate.
///
/// Bound to its server loop.
final class PacedSource: BodySource {
    private let source: any BodySource
    private let loop: EventLoop
    private var budget: PaceBudget
    private var waitsForBudget = false
    private var isOver = false

    /// - Parameters:
    ///   - source: the body.
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
            guard waitsForBudget else { return source.wake = wake }
            let wait = max(0.001, budget.wait(at: Monotonic.now().inSeconds))
            loop.schedule(after: Interval(seconds: wait)) { [weak self] loop in
                self?.goOn(loop)
            }
        }
    }

    private func goOn(_ loop: EventLoop) {
        guard !isOver, let wake else { return }
        waitsForBudget = false
        self.wake = nil
        wake(loop)
    }

    func next(limit: Int) -> BodyStep {
        let allowed = budget.allowance(at: Monotonic.now().inSeconds)
        guard allowed > 0 else {
            waitsForBudget = true
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
