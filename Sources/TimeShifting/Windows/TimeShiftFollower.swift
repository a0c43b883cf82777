// Follows one live playlist as a player would, so that no segment is missed.
import CachePolicy
import Synchronization
import HLS
import HTTP
import Library
import Model
import Playlists
import Posix
import Reactor
import Upstream
import URISyntax

/// Reloads a playlist at the pace of its target duration and merges the results.
///
/// Confined to the keeper's loop.
final class TimeShiftFollower {
    package let list: ShiftedList
    package let resource: Resource
    let fetches: TimeShiftFetches
    private let services: TimeShiftServices
    private let loop: EventLoop
    private var timer: TimerID?
    private var isStopped = false
    private(set) var target = Duration.seconds(2)
    private var pace = RenewalPace()

    /// The URL that the playlist is reloaded from: that of the list, or the one that its entry now
    /// names in its place.
    var source: AbsoluteURL
    /// Called if the playlist's URL is refused, at a bounded pace.
    var didRefuse: (() -> Void)?

    /// True if segments are fetched, and not only the playlist.
    var bringsSegments = true
    private(set) var hasEnded = false
    /// True for a playlist that was complete when first read, or is not a media playlist.
    private(set) var hasNoWindow = false
    package private(set) var failure: ProxyFailure?
    /// The time of the first failure since the last success.
    private var failingSince: Monotonic?
    /// Called after each reload.
    var didReload: (() -> Void)?

    init(
        _ list: ShiftedList, of resource: Resource, services: TimeShiftServices, loop: EventLoop,
        yields: Bool
    ) {
        self.list = list
        self.resource = resource
        source = list.url
        self.services = services
        self.loop = loop
        fetches = TimeShiftFetches(
            services, loop, of: list, for: resource, yields: yields)
    }

    /// True if only pages of other sites have requested the list: no private host gets a request
    /// for its sake.
    private var isForPage: Bool {
        list.session.shift.recording == nil && !list.state.withLock { $0.isOfPlayer }
    }

    /// Reloads the playlist, now and then periodically.
    package func reload() {
        guard !isStopped else { return }
        let wanted = FetchedPlaylist.Request(
            url: source, session: list.session,
            variables: services.playlistMemory.variables(of: list.session.id, in: source),
            forwardedFields: resource.forwardedFields, lane: .express, isForPage: isForPage)
        let bound = LoopBound(self, to: loop)
        services.playlists.read(wanted) { result in
            bound.enqueue { follower, _ in follower.receive(result) }
        }
    }

    private func receive(_ result: Result<FetchedPlaylist, ProxyFailure>) {
        guard !isStopped else { return }
        var hasChanged = false
        switch result {
        case .failure(let failure):
            self.failure = failure
            failingSince = failingSince ?? loop.now
            let status = failure.originStatus
            if pace.begins(after: status, target: Interval(target), now: loop.now) { didRefuse?() }
        case .success(let found):
            pace.ends()
            failingSince = nil
            failure =
                found.isStale
                ? ProxyFailure(.origin, .badGateway, "the origin does not answer for the playlist")
                : nil
            if let duration = Self.target(of: found.list.summary) { target = duration }
            hasChanged = take(found)
        }
        guard !isStopped else {
            didReload?()
            return
        }
        list.lookForKept(services.timeShift)
        let (shift, readAt) = list.state.withLock { ($0.shift, $0.received?.steady) }
        if bringsSegments {
            fetches.isForPage = isForPage
            fetches.want(shift, readAt: readAt)
            if failure == nil { fetches.tryLapsed(from: shift.windowStart) }
        }
        hasEnded = shift.isEnded
        // As players do (RFC 8216, 6.3.4), but without a longer delay after the origin failed: a
        // short window may be gone in a few target durations.
        if !hasEnded { schedule(hasChanged || failure != nil ? target : target / 2) }
        didReload?()
    }

    /// Returns the target duration of a list; the mean duration of its segments if it states one
    /// that is taken for a mistake, with which segments would leave between two reloads.
    ///
    /// - Returns: nil if the list does not tell.
    static func target(of summary: PlaylistSummary) -> Duration? {
        guard let stated = summary.targetDuration,
            Interval(stated) > PlaylistFacts.longestTarget
        else { return summary.targetDuration }
        guard summary.segmentCount > 0 else { return nil }
        return summary.totalDuration / summary.segmentCount
    }

    /// True if the origin has said for some target durations that the playlist does not exist.
    var isGone: Bool {
        guard [.notFound, .gone].contains(failure?.originStatus), let failingSince else {
            return false
        }
        return loop.now - failingSince >= Interval(target * 3)
    }

    /// Merges a window; if it cannot be merged, `failure` says why.
    ///
    /// - Returns: true if the list has changed.
    private func take(_ found: FetchedPlaylist) -> Bool {
        let outcome: ShiftedList.Outcome
        do throws(PlaylistError) {
            outcome = try list.merge(
                .init(
                    body: found.list.source, base: found.base, key: found.resource.listKey,
                    facts: found.facts),
                services.timeShift)
        } catch {
            failure = ProxyFailure(
                .origin, .badGateway, "\(source.redacted): \(error.description)")
            return false
        }
        // A playlist that is not live need not be followed.
        guard outcome.isShifted else {
            hasNoWindow = true
            stop()
            return false
        }
        return outcome.relation != .unchanged && outcome.relation != .stale
    }

    private func schedule(_ delay: Duration) {
        let nanoseconds = Int64(delay / .nanoseconds(1))
        let pace = Interval(nanoseconds: min(max(nanoseconds, 200_000_000), 30_000_000_000))
        timer = loop.schedule(after: pace) { [weak self] _ in self?.reload() }
    }

    /// Stops reloading and cancels all fetches.
    package func stop() {
        isStopped = true
        if let timer { loop.cancel(timer) }
        fetches.stop()
    }

    /// Stops reloading; fetches in flight continue, and those that lapsed are tried once more.
    func finish() {
        isStopped = true
        if let timer { loop.cancel(timer) }
        fetches.tryLapsed(from: list.shift.windowStart, all: true)
    }
}
