import CachePolicy
package import HLS
package import Lookahead
import Model
import Origin
import Posix
import Reactor
import Routing
import Store
package import URISyntax

/// Carries out the actions of the look-ahead planner, and reports their results to it.
///
/// Confined to the look-ahead thread.
package final class LookaheadDriver {
    let services: AheadServices
    private unowned let observer: LookaheadObserver
    let loop: EventLoop
    private var planner: LookaheadPlanner
    private var fetches: [AheadID: BackgroundFetch] = [:]
    private var isTicking = false
    private var streams = PlayedStreams()
    private var players = RecentMap<PlayerID, Resource>(capacity: 256)
    private var readings = ListReadings()

    /// By name.
    var feeds: [String: Feed] = [:]

    init(_ services: AheadServices, _ observer: LookaheadObserver, loop: EventLoop) {
        self.services = services
        self.observer = observer
        self.loop = loop
        planner = LookaheadPlanner(limits: services.settings.lookAheadLimits)
    }

    private var now: Double { loop.now.inSeconds }

    /// The bandwidth measured recently in bytes per second; nil without a measurement.
    var bytesPerSecond: Double? { planner.bytesPerSecond }

    /// Reports the measurement of another planner's fetch.
    func measured(_ report: BackgroundFetch.Report) {
        guard report.broughtBytes > 0 else { return }
        planner.measured(bytes: report.broughtBytes, seconds: report.activeSeconds)
    }

    // MARK: Requests of players

    func read(
        _ resource: Resource, from start: Int64, by player: PlayerID, _ hints: PlayerHints?
    ) {
        players[player] = resource
        guard !feedsTake(resource, from: start) else { return }
        perform(planner.read(resource.url, from: start, by: player, hints, at: now))
    }

    /// Passes a player's request to the feeds; true if one of them fetches what the player needs
    /// next.
    private func feedsTake(_ resource: Resource, from start: Int64) -> Bool {
        feeds.values.reduce(false) { taken, feed in
            feed.noteRequest(resource, from: start) || taken
        }
    }

    /// Ends what is fetched ahead for the players of a session, whose viewer went on in a feed.
    func viewerMovedOn(fromSession number: UInt64) {
        perform(planner.movedOn(session: number, at: now))
    }

    /// Handles a player's abort of a body.
    ///
    /// Waits briefly for its next request: VLC aborts a body some 10 ms before its next request,
    /// which may already be under way.
    func left(_ player: PlayerID, _ url: AbsoluteURL) {
        let then = now
        loop.schedule(after: Self.hangUp) { [weak self] _ in
            guard let self else { return }
            perform(planner.left(player, url, since: then, at: now))
        }
    }

    /// The time without a request after which a player that aborted a body has stopped.
    private static let hangUp = Interval.milliseconds(100)

    /// Handles a playlist sent to a player; `sketched` is its sketch if one was made while it was
    /// read.
    func list(
        _ resource: Resource, _ object: StoredObject, _ sketched: SketchedList?, by player: PlayerID
    ) {
        players[player] = resource
        // The list is learned even while a feed fetches the stream ahead: the feed may give it up
        // later, and a complete list is requested only once.
        _ = feedsTake(resource, from: 0)
        // Blocking reloads of a list are requests for one list.
        let id = ListID(session: resource.session.id.number, url: resource.listURL)
        // Feeds read the playlists of their items themselves.
        guard observer.runsAhead else {
            readings.forget(id)
            return planner.forget(id)
        }
        let isRead = readings.isRead(id, object.generation, isKnown: planner.knows(id))
        guard !isRead, object.isComplete,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return perform(planner.read(id.url, by: player, at: now)) }
        readings.note(id, object.generation)
        if let sketched, sketched.summary.kind == .media { return learn(sketched, id, resource) }
        guard let total = object.total, let body = try? readBody(of: object, count: Int(total)),
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        else { return }
        let reading = PlaylistReading(
            limits: resource.session.limits(ofOrigins: services.settings.playlistLimits),
            variables: services.playlistMemory.variables(of: resource.session.id, in: id.url))
        guard let list = try? Playlist(body, base: base, reading) else { return }
        guard let multivariant = list.multivariant else {
            return learn(SketchedList(list), id, resource)
        }
        streams.note(StreamGraph(multivariant), of: id.session)
    }

    /// Passes a media playlist that a player got to the planner.
    private func learn(_ list: SketchedList, _ id: ListID, _ resource: Resource) {
        // A delta update lacks the skipped segments; parts are left to the player.
        // The entries of a channel list do not follow each other.
        guard !list.summary.isSkipDelta, !list.summary.isIFramesOnly, !list.summary.isChannelList
        else { return }
        readings.notePlanned(id)
        let isLive = list.summary.isLive
        let mode = streams.mode(
            of: id.url, in: id.session,
            services.lookAhead(
                of: id.url, isLive: isLive, isPrivate: services.flights.isPrivate(resource)),
            isPaced: services.settings.pace != .off)
        let terms = LookaheadPlanner.ListTerms(
            kind: streams.kind(of: id.url, in: id.session), mode: mode,
            bandwidth: streams.bandwidth(of: id.url, in: id.session),
            reach: isLive ? nil : services.keepHead(of: id.url))
        perform(planner.saw(list.picture, of: id, terms, at: now))
    }

    // MARK: Actions

    private func perform(_ actions: [LookaheadAction]) {
        for action in actions {
            switch action {
            case .fetch(let id, let piece, let player): fetch(id, piece, for: player)
            case .cancel(let id): fetches[id]?.cancel()
            }
        }
        tickWhileNeeded()
    }

    private func fetch(_ id: AheadID, _ piece: MediaPiece, for player: PlayerID) {
        guard let example = players[player] else {
            return loop.atRoundEnd { [weak self] _ in self?.ended(id, AheadResult(.failed)) }
        }
        let resource = services.names.resource(
            piece.url, example.session, role: piece.role, forwarding: example.forwardedFields)
        let wanted = BackgroundFetch.Request(
            resource: resource, range: piece.range, isForPage: player.isForPage)
        services.counters.add(.aheadFetches)
        let bound = LoopBound(self, to: loop)
        fetches[id] = services.flights.bring(wanted) { end in
            bound.enqueue { driver, _ in
                driver.ended(id, AheadResult(end, size: piece.range.map { Int64($0.count) }))
            }
        }
    }

    private func ended(_ id: AheadID, _ result: AheadResult) {
        fetches[id] = nil
        perform(planner.ended(id, result, at: now))
    }

    private func tickWhileNeeded() {
        guard !isTicking, planner.needsTicks else { return }
        isTicking = true
        loop.schedule(after: .seconds(1 as Int64)) { [weak self] _ in
            guard let self else { return }
            isTicking = false
            perform(planner.tick(at: now))
        }
    }
}

/// The facts of a playlist collected while it was read for another purpose.
///
/// A class, so that the many exchanges without one need no space for it.
package final class SketchedList: Sendable {
    package let summary: PlaylistSummary
    package let sketch: CompactMediaList.Sketch

    var picture: CompactMediaList { sketch.picture(summary) }

    package init(_ summary: PlaylistSummary, _ sketch: CompactMediaList.Sketch) {
        self.summary = summary
        self.sketch = sketch
    }

    /// Creates the sketch of a parsed playlist.
    package convenience init(_ list: Playlist) {
        var sketch = CompactMediaList.Sketch()
        list.media?.segments.forEach { sketch.add($0) }
        self.init(list.summary, sketch)
    }
}

extension AheadResult {
    /// Creates the result of a fetch for a planner.
    ///
    /// - Parameters:
    ///   - end: the end of the fetch.
    ///   - size: the bytes of the piece, if it is a part of its resource.
    init(_ end: BackgroundFetch.End, size: Int64?) {
        let report = end.report
        switch end {
        case .stored: self.init(.stored)
        case .failed: self.init(.failed)
        case .cancelled: self.init(.cancelled)
        }
        bytes = report.broughtBytes
        self.size = size ?? report.total
        seconds = report.activeSeconds
    }
}

extension AheadServices {
    /// Returns how far look-ahead may go for players of a playlist.
    func lookAhead(of list: AbsoluteURL, isLive: Bool, isPrivate: Bool) -> LookaheadMode {
        keys.ahead(of: list.origin).lookAhead
            ?? settings.lookAhead(isLive: isLive, isPrivate: isPrivate)
    }

    /// Returns how many segments from the start of a title of this origin are kept; nil for all.
    package func keepHead(of url: AbsoluteURL) -> Int? {
        keys.ahead(of: url.origin).keepHead ?? settings.keepHead
    }
}
