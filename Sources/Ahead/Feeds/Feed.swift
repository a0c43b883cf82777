import HLS
import HTTP
import Library
package import Lookahead
import Model
import Origin
import Playlists
import Posix
import Reactor
import Routing
import Store
import URISyntax

/// One feed: carries out the actions of its planner, and reports their results to it.
///
/// Confined to the look-ahead thread.
package final class Feed {
    package let name: String
    unowned let driver: LookaheadDriver
    var planner: FeedPlanner
    let order: FeedOrder
    /// The first place in the list of each content number.
    private var places: [Int: Int] = [:]
    private var sessions: [Int: Session] = [:]
    private var contentOf: [UInt64: Int] = [:]
    private(set) var streams = FeedStreams()
    private(set) var fetches: [AheadID: BackgroundFetch] = [:]
    /// Fetches of the first bytes of items whose names do not reveal their kind.
    var looks: [Int: BackgroundFetch] = [:]
    /// Items whose stored playlists named what the origin refused.
    var renewals = FeedRenewals()
    /// The player's User-Agent, sent in addition to the entries' headers.
    private(set) var agent = Fields()
    private var isTicking = false
    package private(set) var isOver = false
    /// False for a feed restored after a restart until its client returns.
    private(set) var isAwake = false
    /// When the planner is compared with the store.
    var comparisons = FeedComparisons()
    /// The reason why it is not resumed after a restart; nil if it may be.
    var pauseReason: String?

    package var services: AheadServices { driver.services }
    package var now: Double { driver.loop.now.inSeconds }

    init(_ name: String, _ order: FeedOrder, driver: LookaheadDriver, agent: Fields) {
        self.name = name
        self.order = order
        self.driver = driver
        self.agent = agent
        planner = FeedPlanner(
            contents: order.items.map(\.content), weights: order.items.map(\.weight),
            at: order.index, order.direction, order.parameters)
        for (place, item) in order.items.enumerated() where places[item.content] == nil {
            places[item.content] = place
            if let named = item.entry.flatMap({ FeedMedia.named($0.url.nameExtension) }) {
                planner.isKind(item.content, named)
            }
        }
    }

    // MARK: Requests of the client

    package func start() {
        guard !isAwake else { return }
        comparisons.use(at: now)
        awake()
        perform(planner.start(at: now))
    }

    private func awake() {
        guard !isAwake else { return }
        isAwake = true
        services.crashes.begins(.feed, name)
    }

    /// Moves to a place; ignores one that the feed does not have, since a shorter order may have
    /// replaced the one that the client's request was checked against.
    func move(to index: Int, _ direction: FeedPlanner.Direction?) {
        guard pauseReason == nil, planner.contents.indices.contains(index) else { return }
        comparisons.use(at: now)
        awake()
        // First, so that bandwidth is free for the next item's requests.
        if planner.contents[index] != planner.active, let left = sessions[planner.active] {
            services.flights.viewerMovedOn(fromSession: left.id.number)
            driver.viewerMovedOn(fromSession: left.id.number)
        }
        perform(planner.move(to: index, direction, at: now))
        compare()
    }

    /// Cancels all fetches.
    package func end() {
        isOver = true
        services.crashes.forget(.feed, name)
        BackgroundFetch.cancel(Array(fetches.values) + Array(looks.values))
        fetches = [:]
        looks = [:]
    }

    // MARK: Requests of players

    /// Handles a player's request.
    ///
    /// - Returns: true if this feed fetches what the player needs next.
    func noteRequest(_ resource: Resource, from start: Int64) -> Bool {
        guard isAwake, let content = contentOf[resource.session.id.number] else { return false }
        comparisons.use(at: now)
        if content == planner.active, let agent = resource.forwardedFields.first(.userAgent) {
            self.agent.set(.userAgent, agent)
        }
        noteChoice(of: content, resource.url)
        perform(planner.played(content, resource.url, from: start, at: now))
        return content == planner.active
            && planner.leads(after: resource.url, from: start, at: now)
    }

    /// Adopts the rendition that the player chose, for this item and later ones.
    private func noteChoice(of content: Int, _ url: AbsoluteURL) {
        guard let choice = streams.played(url, of: content) else { return }
        // For a neighbour too: its player may come before its viewer's position, and a read of
        // another stream that is under way ends without a plan.
        read(choice.stream, of: content)
        if choice.isOtherHeight, order.height == nil { perform(planner.choseOtherwise(at: now)) }
    }

    // MARK: Actions

    package func perform(_ actions: [FeedAction]) {
        guard !isOver else { return }
        for action in actions {
            switch action {
            case .read(let content): read(content)
            case .fetch(let id, let content, let piece, let yields):
                fetch(id, content, piece, yields: yields)
            case .setYields(let id, let yields): fetches[id]?.setYields(yields)
            case .cancel(let id): fetches[id]?.cancel()
            }
        }
        tickWhileNeeded()
    }

    private func tickWhileNeeded() {
        guard !isTicking, planner.needsTicks(at: now) else { return }
        isTicking = true
        // Checks more often while the player's own fetches of the active item are awaited.
        let pause = planner.awaited.isEmpty ? 500 : 100
        driver.loop.schedule(after: .milliseconds(Int64(pause))) { [weak self] _ in
            guard let self else { return }
            isTicking = false
            noticePlayed()
            perform(planner.tick(at: now))
            compareAgain()
        }
    }

    /// Returns the resource of a piece of an item; nil before the item is read.
    func resource(of piece: MediaPiece, _ content: Int) -> Resource? {
        // A file that is played directly has no role from a playlist.
        let role = piece.role == .media ? nil : piece.role
        return sessions[content].map {
            services.names.resource(piece.url, $0, role: role, forwarding: agent)
        }
    }

    private func fetch(_ id: AheadID, _ content: Int, _ piece: MediaPiece, yields: Bool) {
        guard let resource = resource(of: piece, content) else { return }
        var wanted = BackgroundFetch.Request(resource: resource, range: piece.range)
        wanted.yields = yields
        services.counters.add(.aheadFetches)
        let bound = LoopBound(self, to: driver.loop)
        fetches[id] = services.flights.bring(wanted) { end in
            bound.enqueue { feed, _ in feed.ended(id, content, piece.url, end) }
        }
    }

    private func ended(
        _ id: AheadID, _ content: Int, _ url: AbsoluteURL, _ end: BackgroundFetch.End
    ) {
        guard !isOver else { return }
        fetches[id] = nil
        driver.measured(end.report)
        let result = AheadResult(end, size: nil)
        guard case .failed(let failure, _) = end else {
            return perform(planner.ended(id, result, at: now))
        }
        guard failure.isForGood else {
            return perform(planner.ended(id, result, reason: failure.message, at: now))
        }
        perform(planner.ended(id, result, at: now))
        failed(content, failure, at: url)
    }

    // MARK: Reading items

    private func read(_ content: Int) {
        guard let place = places[content] else { return }
        renewals.begin(content)
        guard let entry = order.items[place].entry else {
            let fault = order.items[place].fault ?? "it cannot be asked for"
            return later { $0.planner.isDead(content, fault, forGood: true, at: $0.now) }
        }
        let session = services.sessions.session(for: entry)
        sessions[content] = session
        contentOf[session.id.number] = content
        switch entry.url.nameExtension {
        case "m3u8", "m3u": readPlaylist(entry.url, content)
        case let name where FeedMedia.named(name) != nil:
            later { $0.planner.learned(content, .file(entry.url), at: $0.now) }
        default: look(at: entry.url, content, session)
        }
    }

    /// True if a URL is that of an item, and not one that its playlists name.
    func isEntry(_ url: AbsoluteURL, of content: Int) -> Bool {
        places[content].flatMap { order.items[$0].entry }?.url == url
    }

    func readPlaylist(_ url: AbsoluteURL, _ content: Int) {
        ask(url, content) { feed, list in feed.take(list, content) }
    }

    /// Passes an event to the planner after its current actions have been carried out.
    private func later(_ body: @escaping (Feed) -> [FeedAction]) {
        driver.loop.atRoundEnd { [weak self] _ in
            guard let self else { return }
            perform(body(self))
        }
    }

    private func ask(
        _ url: AbsoluteURL, _ content: Int, variables: [String: String] = [:],
        _ next: @escaping @Sendable (Feed, FetchedPlaylist) -> Void
    ) {
        guard let session = sessions[content] else { return }
        let wanted = FetchedPlaylist.Request(
            url: url, session: session, variables: variables, forwardedFields: agent,
            takesFresh: !renewals.isRenewing(content))
        let bound = LoopBound(self, to: driver.loop)
        services.playlists.read(wanted) { result in
            bound.enqueue { feed, _ in
                guard !feed.isOver else { return }
                switch result {
                case .success(let list): next(feed, list)
                case .failure(let failure): feed.failed(content, failure, at: url)
                }
            }
        }
    }

    private func take(_ list: FetchedPlaylist, _ content: Int) {
        guard let multivariant = list.list.multivariant else {
            return learned(content, [list], rate: nil)
        }
        guard
            let stream = streams.learn(
                StreamGraph(multivariant), of: content, height: order.height,
                line: driver.bytesPerSecond)
        else {
            return perform(
                planner.isDead(content, "the playlist names no stream", forGood: true, at: now))
        }
        variables[content] = list.list.definedVariables
        read(stream, of: content)
    }

    /// Variables of multivariant playlists, for the playlists that they name.
    private var variables: [Int: [String: String]] = [:]

    private func read(_ stream: StreamGraph.Stream, of content: Int) {
        guard let graph = streams.graph(of: content) else { return }
        let rate = stream.bandwidth > 0 ? Double(stream.bandwidth) / 8 : nil
        let companion = graph.companions(of: stream).first
        let variables = self.variables[content] ?? [:]
        ask(stream.url, content, variables: variables) { feed, picture in
            // Another stream was chosen meanwhile; whoever chose it reads its playlist.
            guard feed.streams.chosen(of: content) == stream else { return }
            guard let companion else { return feed.learned(content, [picture], rate: rate) }
            feed.ask(companion.url, content, variables: variables) { feed, sound in
                guard feed.streams.chosen(of: content) == stream else { return }
                feed.learned(content, [picture, sound], rate: rate)
            }
        }
    }

    private func learned(_ content: Int, _ lists: [FetchedPlaylist], rate: Double?) {
        renewals.end(content, now: now)
        let pictures = lists.map { list in
            let picture = CompactMediaList(list.list)
            // Players start a live stream three segments before its end (RFC 8216 section 6.3.3).
            return picture.isLive
                ? CompactMediaList(segments: picture.segments.suffix(3), isLive: true) : picture
        }
        let plan = FeedPlan(
            pictures, rate: rate, most: services.keepHead(of: lists[0].resource.url))
        guard !plan.parts.isEmpty else {
            return perform(
                planner.isDead(content, "the playlist names no segment", forGood: true, at: now))
        }
        perform(planner.learned(content, plan, at: now))
    }
}
