import CachePolicy
import HLS
import HTTP
import Lookahead
import Model
import Origin
import Reactor
import Store
import URISyntax

/// Determines the kind of a feed item whose name does not reveal it.
extension Feed {
    /// The number of first bytes fetched to determine the kind; useful for any kind of item.
    private static let firstLook: Int64 = 32_000

    /// Fetches the first bytes of an item to determine how it is read.
    func look(at url: AbsoluteURL, _ content: Int, _ session: Session) {
        let resource = services.names.resource(url, session, role: nil, forwarding: agent)
        var wanted = BackgroundFetch.Request(resource: resource, range: 0..<Self.firstLook)
        wanted.yields = content != planner.active
        services.counters.add(.aheadFetches)
        let bound = LoopBound(self, to: driver.loop)
        looks[content] = services.flights.bring(wanted) { end in
            bound.enqueue { feed, _ in feed.looked(at: resource, content, end) }
        }
    }

    private func looked(
        at resource: Resource, _ content: Int, _ end: BackgroundFetch.End
    ) {
        guard !isOver else { return }
        looks[content] = nil
        switch end {
        case .stored: judge(resource, content)
        case .failed(let failure, _):
            // Generated resources, as playlists may be, have no ranges.
            guard failure.originStatus == .rangeNotSatisfiable else {
                return failed(content, failure, at: resource.url)
            }
            readPlaylist(resource.url, content)
        case .cancelled:
            perform(planner.isDead(content, "it was cancelled", forGood: false, at: now))
        }
    }

    private func judge(_ resource: Resource, _ content: Int) {
        guard let object = services.store.peek(resource.key), let facts = ObjectFacts.of(object)
        else {
            return perform(
                planner.isDead(content, "it was not kept", forGood: false, at: now))
        }
        let count = min(object.spans.contiguousEnd(from: 0), Int64(PlaylistDetector.prefixLength))
        let prefix = (try? readBody(of: object, count: Int(count))) ?? []
        if facts.head.isPlaylist || PlaylistDetector.looksLikePlaylist(prefix) {
            return readPlaylist(resource.url, content)
        }
        let type = facts.head.fields.first(.contentType) ?? ""
        let beginning = Array(prefix.prefix(FeedMedia.prefixLength))
        guard let media = FeedMedia.of(contentType: type, prefix: beginning) else {
            let shown = type.isEmpty ? "no type" : "type \(type.prefix(80))"
            return perform(
                planner.isRefused(
                    content, "it is neither a playlist nor media, but has \(shown)", at: now))
        }
        planner.isKind(content, media)
        perform(planner.learned(content, .file(resource.url), at: now))
    }

    /// Reports to the planner that an item could not be read, or a piece of it not be fetched.
    ///
    /// - Parameters:
    ///   - content: the item.
    ///   - failure: why.
    ///   - url: the URL that failed: that of the item, or one that its playlists name.
    func failed(_ content: Int, _ failure: ProxyFailure, at url: AbsoluteURL) {
        let isEntry = isEntry(url, of: content)
        switch renewals.judge(failure, of: content, isEntry: isEntry, now: now) {
        case .expired: perform(planner.hasExpired(content, failure.message, at: now))
        case .refused: perform(planner.isRefused(content, failure.message, at: now))
        case .dead(let forGood):
            // A segment may have left its live list since that was read.
            let mayReturn = !isEntry && planner.isLive(content)
            perform(
                planner.isDead(
                    content, failure.message, forGood: forGood && !mayReturn, at: now))
        }
    }
}

extension FeedPlan {
    /// The plan of an item that is one media file.
    static func file(_ url: AbsoluteURL) -> FeedPlan {
        let file = MediaPiece(url, role: .media)
        return FeedPlan(parts: [Part(file, seconds: 0, begins: 0)], rate: nil)
    }
}
