// Reports players' requests to the look-ahead planner; costs each request a table look-up.
import HLS
import HTTP
package import HTTPServer
import Lookahead
package import Model
import Posix
package import Reactor
import Routing
package import Store
import Synchronization
import URISyntax

/// The reporter of player activity; one for all loops, usable from any thread.
package final class LookaheadObserver: Sendable {
    private let lately = Mutex(RecentReports())
    private let listed = Mutex(ReportedSessions())
    private let driver = Mutex<LoopBound<LookaheadDriver>?>(nil)
    private let services: AheadServices
    private let thread: LoopThread
    private let isAhead: Atomic<Bool>
    private let hasFeeds = Atomic(false)

    /// - Parameters:
    ///   - services: the services for the planner's driver.
    ///   - thread: the thread of the driver.
    ///   - runsAhead: true if anything may be fetched ahead of any player.
    package init(_ services: AheadServices, thread: LoopThread, runsAhead: Bool) {
        self.services = services
        self.thread = thread
        isAhead = Atomic(runsAhead)
    }

    /// True if reports are needed.
    package var isOn: Bool { runsAhead || hasFeeds.load(ordering: .relaxed) }

    /// True if anything may be fetched ahead of any player; changes with the configuration.
    package var runsAhead: Bool {
        get { isAhead.load(ordering: .relaxed) }
        set { isAhead.store(newValue, ordering: .relaxed) }
    }

    /// Enables reports for feeds permanently.
    func turnOn() { hasFeeds.store(true, ordering: .relaxed) }

    /// Runs `body` on the planner's thread, in the order of the calls.
    package func enqueue(_ body: @escaping @Sendable (LookaheadDriver, EventLoop) -> Void) {
        thread.handle.enqueue { [self] loop in
            let bound = driver.withLock { driver in
                if let driver { return driver }
                let made = LoopBound(LookaheadDriver(services, self, loop: loop), to: loop)
                driver = made
                return made
            }
            body(bound.value(on: loop), loop)
        }
    }

    // MARK: Requests of players

    /// Reports that a player, or a page of another site, got media, from this byte on.
    package func read(
        _ resource: Resource, from start: Int64, _ exchange: Exchange, isForPage: Bool
    ) {
        guard isOn, !resource.followsHTTP, resource.role != .part, concernsPlanner(resource)
        else { return }
        var mark = resource.key.hashValue ^ Int(truncatingIfNeeded: start)
        // A page's report must not stand for a player's.
        if isForPage { mark = ~mark }
        guard isNews(mark, exchange) else { return }
        let (player, hints) = identify(resource, exchange, isForPage: isForPage)
        enqueue { driver, _ in driver.read(resource, from: start, by: player, hints) }
    }

    /// True if a playlist that is read for a player is also to be sketched, so that it need not be
    /// read again; false if it was reported recently.
    package func wantsSketch(
        _ resource: Resource, generation: UInt64, _ exchange: Exchange
    ) -> Bool {
        guard runsAhead, mayBeList(resource) else { return false }
        let news = RecentReports.News(
            Self.mark(resource, generation), at: exchange.receivedAt)
        return lately.withLock { !$0.has(news) }
    }

    private func mayBeList(_ resource: Resource) -> Bool {
        !resource.followsHTTP && (resource.role == .playlist || resource.role.isOpen)
    }

    /// Returns a hash of a list as one session reads it: sessions share the stored list, but each
    /// reading must be reported.
    private static func mark(_ resource: Resource, _ generation: UInt64) -> Int {
        var hasher = Hasher()
        hasher.combine(resource.key)
        hasher.combine(generation)
        hasher.combine(resource.session.id.number)
        return hasher.finalize()
    }

    /// Reports that a player got a playlist; `sketched` is its sketch if the origin's text was read
    /// for the player.
    package func list(
        _ resource: Resource, _ object: StoredObject, _ sketched: SketchedList?,
        _ exchange: Exchange, isForPage: Bool
    ) {
        guard isOn, mayBeList(resource) else { return }
        guard isNews(Self.mark(resource, object.generation), exchange) else { return }
        let (player, _) = identify(resource, exchange, isForPage: isForPage)
        listed.withLock { $0.insert(player.session) }
        enqueue { driver, _ in driver.list(resource, object, sketched, by: player) }
    }

    /// Reports that a player aborted a body.
    package func left(_ resource: Resource, _ exchange: Exchange, isForPage: Bool) {
        guard isOn, !resource.followsHTTP, concernsPlanner(resource) else { return }
        let (player, _) = identify(resource, exchange, isForPage: isForPage)
        enqueue { driver, _ in driver.left(player, resource.url) }
    }

    /// True if the planner or a feed may use reports about a resource.
    ///
    /// The resource of an entry is in no playlist of its session, which is checked first since it
    /// needs no session number. Feeds contain entries, so with feeds every report counts.
    private func concernsPlanner(_ resource: Resource) -> Bool {
        if hasFeeds.load(ordering: .relaxed) { return true }
        guard !resource.session.isOfEntry else { return false }
        return listed.withLock { $0.mayContain(resource.session.id.number) }
    }

    private func isNews(_ mark: Int, _ exchange: Exchange) -> Bool {
        let news = RecentReports.News(mark, at: exchange.receivedAt)
        return lately.withLock { $0.takes(news) }
    }

    // MARK: Identifying players

    /// Distinguishes players of one session by the session ID in their hints, otherwise by address
    /// and User-Agent.
    private func identify(
        _ resource: Resource, _ exchange: Exchange, isForPage: Bool
    ) -> (PlayerID, PlayerHints?) {
        let request = exchange.request
        var hints = PlayerHints.sent(in: request)
        if let next = hints?.nextObject {
            let session = resource.session.id
            hints?.nextObject = services.originURLOfNext(next, request, session)?.text
        }
        var hasher = Hasher()
        if let playback = hints?.playback {
            hasher.combine(playback)
        } else {
            hasher.combine(exchange.peer?.bytes)
            hasher.combine(request.fields.first(.userAgent))
        }
        let client = UInt64(truncatingIfNeeded: hasher.finalize())
        let player = PlayerID(
            session: resource.session.id.number, client: client, isForPage: isForPage)
        return (player, hints)
    }
}
