// What a server does while all places for connections are taken: reported at the beginning, and
// summed up at the end.
import Posix
import Reactor
import Synchronization

/// How many connections were closed or refused because all places were taken.
package struct CrowdCounts: Sendable, Equatable {
    /// Idle connections that were closed for new connections and streams.
    package var closed = 0
    /// Connections and streams that were refused, since no connection was idle.
    package var refused = 0

    package init(closed: Int = 0, refused: Int = 0) {
        self.closed = closed
        self.refused = refused
    }
}

/// The beginning or the end of a time in which all places for connections are taken.
package enum CrowdReport: Sendable, Equatable {
    case began
    /// Nothing was closed or refused for `CrowdEpisode.quiet` at least; what was before.
    case ended(CrowdCounts)

    /// Called on one of the server's loops.
    package typealias Observer = @Sendable (CrowdReport) -> Void
}

/// An episode from the first connection that is closed or refused to a minute without one; pure.
struct CrowdEpisode {
    enum Event {
        case closed, refused
    }

    /// How long nothing is closed or refused before an episode is over.
    static let quiet = Interval.seconds(60 as Int64)

    /// The counts since the episode began; nil between episodes.
    private var counts: CrowdCounts?
    /// True if anything was counted since the last look.
    private var hasNews = false

    /// Counts an event; returns true if an episode begins with it.
    mutating func note(_ event: Event) -> Bool {
        var counts = self.counts ?? CrowdCounts()
        switch event {
        case .closed: counts.closed += 1
        case .refused: counts.refused += 1
        }
        let begins = self.counts == nil
        self.counts = counts
        hasNews = true
        return begins
    }

    /// Ends the episode if nothing has happened since the last look; must be called once each
    /// `quiet` from its beginning to its end.
    ///
    /// - Returns: what was counted if the episode is over; nil while it goes on.
    mutating func look() -> CrowdCounts? {
        guard !hasNews else {
            hasNews = false
            return nil
        }
        defer { counts = nil }
        return counts
    }
}

/// The episode of a server, shared by its loops.
final class CrowdWatch: Sendable {
    private let episode = Mutex(CrowdEpisode())
    private let observer: CrowdReport.Observer?

    init(_ observer: CrowdReport.Observer?) { self.observer = observer }

    /// Counts an event on a loop, which watches for the end of an episode that begins with it.
    func note(_ event: CrowdEpisode.Event, on loop: EventLoop) {
        guard let observer, episode.withLock({ $0.note(event) }) else { return }
        observer(.began)
        lookLater(observer, on: loop)
    }

    private func lookLater(_ observer: @escaping CrowdReport.Observer, on loop: EventLoop) {
        loop.schedule(after: CrowdEpisode.quiet) { loop in
            if let counts = self.episode.withLock({ $0.look() }) {
                observer(.ended(counts))
            } else {
                self.lookLater(observer, on: loop)
            }
        }
    }
}
