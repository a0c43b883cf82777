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

/// Carries out what the planner of look-ahead says, and tells it how that ends.
///
/// Lives on the thread of what runs ahead.
package final class LookaheadDriver {
    let services: AheadServices
    private unowned let observer: LookaheadObserver
    let loop: EventLoop
    private var planner: LookaheadPlanner
    private var fetches: [AheadID: BackgroundFetch] = [:]
    private var isTicking = false
    /// Of the sessions that were heard of last.
    private var graphs = RecentMap<UInt64, StreamGraph>(capacity: 256)
    private var players = RecentMap<PlayerID, Resource>(capacity: 256)
    /// The picture that each of them plays.
    private var pictures = RecentMap<UInt64, AbsoluteURL>(capacity: 256)
    private var generations = RecentMap<ListID, UInt64>(capacity: 512)

    /// By their names.
    var feeds: [String: Feed] = [:]

    init(_ services: AheadServices, _ observer: LookaheadObserver, loop: EventLoop) {
        self.services = services
        self.observer = observer
        self.loop = loop
        planner = LookaheadPlanner(limits: services.settings.lookAheadLimits)
    }

    private var now: Double { loop.now.inSeconds }

    /// Bytes per second that the line gave of late; nil where nothing was measured.
    var bytesPerSecond: Double? { planner.bytesPerSecond }

    /// Takes in what a fetch of another planner measured.
    func measured(_ report: BackgroundFetch.Report) {
        guard report.broughtBytes > 0 else { return }
        planner.measured(bytes: report.broughtBytes, seconds: report.activeSeconds)
    }

    // MARK: What players do

    func read(
        _ resource: Resource, from start: Int64, by player: PlayerID, _ hints: PlayerHints?
    ) {
        players[player] = resource
        guard !feedsTake(resource) else { return }
        perform(planner.read(resource.url, from: start, by: player, hints, at: now))
    }

    /// Tells the feeds what a player asked for; true where one of them looks after what comes next.
    private func feedsTake(_ resource: Resource) -> Bool {
        feeds.values.reduce(false) { taken, feed in feed.heard(resource) || taken }
    }

    /// A player cut off a body.
    ///
    /// Waits a moment for its next request: VLC cuts off a body some 10 ms before it asks for the
    /// next one, which may be under way already.
    func left(_ player: PlayerID, _ url: AbsoluteURL) {
        let then = now
        loop.schedule(after: Self.hangUp) { [weak self] _ in
            guard let self else { return }
            perform(planner.left(player, url, since: then, at: now))
        }
    }

    /// How long after a hang-up a player that asks for nothing has stopped.
    private static let hangUp = Interval.milliseconds(100)

    /// A player got a list; `drawn` is what was learnt of it where it was read for that.
    func list(
        _ resource: Resource, _ object: StoredObject, _ drawn: DrawnList?, by player: PlayerID
    ) {
        players[player] = resource
        guard !feedsTake(resource) else { return }
        let id = ListID(session: resource.session.id.number, url: resource.url)
        // Feeds read the lists of their items themselves.
        guard observer.runsAhead else {
            generations[id] = nil
            return planner.forget(id)
        }
        guard generations[id] != object.generation, object.isComplete,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist
        else { return perform(planner.read(resource.url, by: player, at: now)) }
        generations[id] = object.generation
        if let drawn, drawn.summary.kind == .media { return learn(drawn, id, resource) }
        guard let total = object.total, let body = try? readBody(of: object, count: Int(total)),
            let base = try? resource.withUserinfo(AbsoluteURL(facts.head.finalURL))
        else { return }
        let reading = PlaylistReading(
            limits: services.settings.playlistLimits,
            variables: services.playlistMemory.variables(of: resource.session.id))
        guard let list = try? Playlist(body, base: base, reading) else { return }
        guard let multivariant = list.multivariant else {
            return learn(DrawnList(list), id, resource)
        }
        graphs[id.session] = StreamGraph(multivariant)
    }

    /// Takes up a media playlist that a player got.
    private func learn(_ list: DrawnList, _ id: ListID, _ resource: Resource) {
        // A delta update leaves out what it is about; parts are the player's to ask for.
        guard !list.summary.isSkipDelta, !list.summary.isIFramesOnly else { return }
        let graph = graphs[id.session]
        let terms = LookaheadPlanner.ListTerms(
            kind: graph?.kind(of: resource.url) ?? .picture,
            mode: mode(of: resource.url, id.session), bandwidth: graph?.bandwidth(of: resource.url),
            reach: list.summary.isLive ? nil : services.keepHead(of: resource.url))
        perform(planner.saw(list.picture, of: id, terms, at: now))
    }

    /// How far to run ahead with a list.
    ///
    /// In mode auto only where no better rendition is to be had: a player that gets segments from
    /// the store sooner than the line could bring them takes the line for faster than it is, and
    /// would choose a rendition that it cannot carry. Where they are paced, it does not.
    private func mode(of list: AbsoluteURL, _ session: UInt64) -> LookaheadMode {
        let mode = services.lookAhead(of: list)
        guard mode == .auto, services.settings.pace == .off, let graph = graphs[session] else {
            return mode
        }
        if graph.kind(of: list) == .picture { pictures[session] = list }
        guard let picture = pictures[session] else { return .off }
        return graph.hasBetter(than: picture) ? .off : .auto
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
        let wanted = BackgroundFetch.Request(resource: resource, range: piece.range)
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

/// What was learnt of a playlist while it was read for something else.
///
/// A class, so that the many exchanges that learn nothing have no room for it.
package final class DrawnList: Sendable {
    package let summary: PlaylistSummary
    package let sketch: MediaPicture.Sketch

    var picture: MediaPicture { sketch.picture(summary) }

    package init(_ summary: PlaylistSummary, _ sketch: MediaPicture.Sketch) {
        self.summary = summary
        self.sketch = sketch
    }

    /// The sketch of a playlist that was read for this alone.
    package convenience init(_ list: Playlist) {
        var sketch = MediaPicture.Sketch()
        list.media?.segments.forEach { sketch.add($0) }
        self.init(list.summary, sketch)
    }
}

extension AheadResult {
    /// How a fetch for a planner ended.
    ///
    /// - Parameters:
    ///   - end: as it was told.
    ///   - size: the bytes of the piece, where it is a part of its resource.
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
    /// How far may be run ahead of players of this origin.
    ///
    /// With one connection to a host allowed, which is what accounts for one viewer have, the mode
    /// auto leaves it to the player.
    func lookAhead(of url: AbsoluteURL) -> LookaheadMode {
        if let told = keys.ahead(of: url.origin).lookAhead { return told }
        if settings.lookAhead == .auto, settings.hostLimit == 1 { return .off }
        return settings.lookAhead
    }

    /// How many segments from the start of a title of this origin are kept; nil for all.
    package func keepHead(of url: AbsoluteURL) -> Int? {
        keys.ahead(of: url.origin).keepHead ?? settings.keepHead
    }
}
