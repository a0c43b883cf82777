// Reads the stored parts of a title and makes the offline forms of its playlists, from the store
// and its index alone: the result does not depend on the network.
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Routing
import Store
import URISyntax

/// One reading of one session's playlists; used on the worker's thread, and then discarded.
struct OfflineReading {
    /// A stored playlist.
    package struct List {
        package let resource: Resource
        package let generation: UInt64
        /// The URL that it came from.
        package let base: AbsoluteURL
        /// Parsed with its lines.
        package let playlist: Playlist
        /// True if the origin has ended it since it was first stored.
        let wasLive: Bool
        /// When the origin sent it or confirmed it last.
        let received: WallTime

        package var isMultivariant: Bool { playlist.kind == .multivariant }
    }

    /// The most variants and renditions of a title that are read, since a hostile playlist might
    /// name many; also the most stored playlists that are looked at for a parent.
    private static let mostLists = 64

    package let sources: PlaylistSources
    package let session: Session
    /// True if no origin may be contacted; otherwise only origins that are down are excluded, where
    /// no parent is asked in their place.
    let asksNobody: Bool

    /// True if a resource that is not stored can be fetched from its origin or from a parent.
    private func canBeHad(_ reference: ResourceReference) -> Bool {
        guard !asksNobody else { return false }
        guard sources.health.state(of: reference.url.origin) == .down else { return true }
        guard sources.parents.isUp else { return false }
        let resource = sources.names.resource(
            reference.url, session, role: reference.role, forwarding: Fields())
        return sources.parents.parent(for: resource) != nil
    }

    // MARK: Playlists

    /// Reads the playlist that a URL names; nil if it is not stored, or cannot be read.
    package func list(_ url: AbsoluteURL, variables: [String: String]) -> List? {
        let resource = sources.names.resource(url, session, role: .playlist, forwarding: Fields())
        for way in [resource.kept(for: session), resource] {
            if let object = sources.store.peek(way.key),
                let list = list(way, object, variables: variables)
            {
                return list
            }
        }
        let former = resource.underFormerKey(
            sources.names.keys, sources.live, sources.store, isOriginUp: false,
            where: \.isComplete)
        guard let former, let object = sources.store.peek(former.key) else { return nil }
        return list(former, object, variables: variables)
    }

    /// Reads a stored playlist.
    package func list(
        _ resource: Resource, _ object: StoredObject, variables: [String: String]
    ) -> List? {
        let limits = session.limits(ofOrigins: sources.limits)
        guard object.isComplete, let total = object.total, total <= limits.byteCount,
            let facts = ObjectFacts.of(object), facts.head.isPlaylist,
            let final = try? AbsoluteURL(facts.head.finalURL),
            let base = try? resource.withUserinfo(final),
            let body = try? readBody(of: object, count: Int(total))
        else { return nil }
        let reading = PlaylistReading(
            limits: limits, variables: variables, keepsLines: true)
        return (try? Playlist(body, base: base, reading)).map {
            List(
                resource: resource, generation: object.generation, base: base, playlist: $0,
                wasLive: facts.head.wasLive, received: facts.head.responseTime)
        }
    }

    /// Returns the multivariant playlist of the session that names a media playlist: one of those
    /// played last, otherwise one of those that the store keeps for the session.
    func parent(of url: AbsoluteURL) -> List? {
        let names = { (list: List) in
            list.isMultivariant && list.playlist.references.contains { $0.url == url }
        }
        for resource in sources.revival.lists(of: session.id) where resource.url != url {
            if let object = sources.store.peek(resource.key),
                let list = list(resource, object, variables: [:]), names(list)
            {
                return list
            }
        }
        for row in sources.storedLists(of: session, most: Self.mostLists) {
            guard let object = sources.store.peek(row.key), let facts = ObjectFacts.of(object),
                let final = try? AbsoluteURL(facts.head.finalURL)
            else { continue }
            let resource = sources.names.resource(
                final, session, role: .playlist, forwarding: Fields())
            if let list = list(resource, object, variables: [:]), names(list) { return list }
        }
        return nil
    }

    // MARK: Plans

    /// Decides which parts of a title are played.
    package func plan(of master: List) -> OfflineTitle {
        var title = OfflineTitle(generation: master.generation)
        let children = master.playlist.references.filter { $0.role == .playlist }
        let played = children.filter { $0.tag == .streamInf || $0.tag == .media }
        let shown = children.filter { $0.tag == .iFrameStreamInf || $0.tag == .imageStreamInf }
        var lists: [AbsoluteURL: OfflineList] = [:]
        var stills: [AbsoluteURL: OfflineList] = [:]
        var tried: Set<AbsoluteURL> = []
        // Each costs the reading of a whole text, which may be a list without segments.
        var readCount = 0
        for child in played + shown where readCount < Self.mostLists {
            let url = child.url
            guard tried.insert(url).inserted else { continue }
            let list = list(url, variables: master.playlist.definedVariables)
            if list != nil { readCount += 1 }
            if let list, isWindow(list) {
                title.reachable.insert(url)
                continue
            }
            guard let list, let kept = kept(list) else {
                if canBeHad(child) { title.reachable.insert(url) }
                continue
            }
            title.generations[url] = list.generation
            if child.tag == .streamInf || child.tag == .media {
                lists[url] = kept
            } else {
                stills[url] = kept
            }
        }
        title.isWhole =
            lists.count + stills.count == Set(children.map(\.url)).count
            && lists.values.allSatisfy(\.isWholeFilm) && stills.values.allSatisfy(\.isWholeFilm)
        let variants = master.playlist.multivariant.map(MultivariantFilter.variants)
        let subtitles = master.playlist.multivariant.map(MultivariantFilter.subtitles)
        title.plan = OfflinePlan(
            variants ?? [], lists: lists, subtitles: subtitles ?? [], stills: stills)
        return title
    }

    /// True if the session extends a playlist: its window reaches further back than the stored
    /// text, and marks its own gaps.
    private func isWindow(_ list: List) -> Bool {
        session.isShifted && session.shift.recording == nil
            && (list.playlist.summary.isLive || (list.wasLive && !list.isMultivariant))
    }

    /// Returns the stored segments of a media playlist; nil for other playlists and for delta
    /// updates.
    package func kept(_ list: List) -> OfflineList? {
        guard !list.isMultivariant, !list.playlist.summary.isSkipDelta else { return nil }
        let present = presence(of: list.playlist.references.filter(Self.isNeeded))
        let received = Double(list.received.nanoseconds) / 1e9
        return OfflineList(list.playlist, wasLive: list.wasLive, received: received) {
            present.contains($0.line)
        }
    }

    private static func isNeeded(_ reference: ResourceReference) -> Bool {
        reference.tag == .inf || reference.tag == .key || reference.tag == .map
    }

    /// Returns the lines of those references whose bytes are stored, or can be fetched.
    func presence(of references: [ResourceReference]) -> Set<Int> {
        let found = sources.store.presence(of: references.map { key(of: $0).digest })
        var lines: Set<Int> = []
        for (reference, presence) in zip(references, found)
        where Self.isKept(reference, presence) || canBeHad(reference) || wasKept(reference) {
            lines.insert(reference.line)
        }
        return lines
    }

    private static func isKept(_ reference: ResourceReference, _ presence: Presence) -> Bool {
        switch presence {
        // The origin may have had less than its playlist names.
        case .whole(let total):
            reference.byteRange.map { $0.bytes.lowerBound < total ?? .max } ?? true
        case .part(let spans): reference.byteRange.map { spans.contains($0.bytes) } ?? false
        case .absent, .unreadable: false
        }
    }

    /// True if the bytes of a reference are stored under a key that its URL had before its rules
    /// changed.
    private func wasKept(_ reference: ResourceReference) -> Bool {
        let former = sources.names.keys.former(
            key(of: reference).key, of: reference.url, session, role: reference.role,
            in: sources.store, live: sources.live
        ) { object in
            Self.isKept(
                reference,
                object.isComplete ? .whole(total: object.total) : .part(object.spans))
        }
        return former != nil
    }

    /// Returns the key that players' requests for a child are answered from, and its digest.
    private func key(of reference: ResourceReference) -> (key: CacheKey, digest: ObjectKey) {
        var key = sources.names.keys.cacheKey(
            of: reference.url, session: session, role: reference.role)
        let name = ObjectKey(key)
        key.epoch = sources.live.epoch(of: name)
        return (key, key.epoch == .first ? name : ObjectKey(key))
    }

    // MARK: Missing resources

    /// The most origins that are contacted for one title.
    private static let mostOrigins = 4

    /// Returns where missing resources of a playlist would be fetched from: one URL for each
    /// origin.
    ///
    /// - Parameter list: a multivariant playlist, including everything that its media playlists
    ///   name, or a media playlist.
    /// - Returns: the URLs; empty if everything is stored.
    package func lacking(_ list: List) -> [AbsoluteURL] {
        var found: [Origin: AbsoluteURL] = [:]
        if list.isMultivariant {
            var seen: Set<AbsoluteURL> = []
            for child in list.playlist.references where child.role == .playlist {
                guard found.count < Self.mostOrigins, seen.count < Self.mostLists else { break }
                guard seen.insert(child.url).inserted else { continue }
                if let kept = self.list(child.url, variables: list.playlist.definedVariables) {
                    addLacking(of: kept, to: &found)
                } else {
                    found[child.url.origin] = child.url
                }
            }
        } else {
            addLacking(of: list, to: &found)
        }
        return found.values.prefix(Self.mostOrigins).map { $0 }
    }

    private func addLacking(of list: List, to found: inout [Origin: AbsoluteURL]) {
        // What only a key system can get is never stored: its host is not asked at each play.
        let foreignKeys =
            list.playlist.media.map { ContentProtection.read($0).foreignKeyLines } ?? []
        let needed = list.playlist.references.filter { reference in
            Self.isNeeded(reference) && !reference.isGap
                && !(reference.tag == .key && foreignKeys.contains(reference.line))
        }
        let presence = sources.store.presence(of: needed.map { key(of: $0).digest })
        for (reference, presence) in zip(needed, presence)
        where !Self.isKept(reference, presence) {
            let origin = reference.url.origin
            // One of an origin is enough.
            if found[origin] == nil, wasKept(reference) { continue }
            found[origin] = reference.url
        }
    }

    // MARK: Forms

    /// Returns the multivariant playlist reduced to what can be played; nil if it can stay
    /// unchanged.
    package func form(of master: List, _ title: OfflineTitle) -> [UInt8]? {
        let needed = master.playlist.references.filter { $0.role != .playlist }
        let others = presence(of: needed)
        if title.isWhole, needed.allSatisfy({ others.contains($0.line) }) { return nil }
        let result = MultivariantFilter.filter(master.playlist) { reference in
            reference.role == .playlist
                ? title.lists(reference.url) : others.contains(reference.line)
        } movedStart: {
            title.plan.movedStart($0)
        }
        return result.isWhole ? nil : result.bytes
    }

    /// Returns a media playlist reduced to what can be played; nil if it can stay unchanged.
    package func form(
        of list: List, at url: AbsoluteURL, _ plan: OfflinePlan
    ) -> OfflinePlaylist.Cut? {
        let missing = plan.missing(at: url)
        let borrowed = plan.borrowed[url] ?? [:]
        let pieces = plan.pieces(at: url)
        if missing.isEmpty, borrowed.isEmpty, pieces.isEmpty, list.playlist.summary.hasEndList {
            return nil
        }
        return OfflinePlaylist.cut(
            list.playlist, missing: missing, borrowed: borrowed, pieces: pieces)
    }
}

/// The plan of a title, and the generations of the playlists that it was made from.
struct OfflineTitle: Sendable {
    package let generation: UInt64
    var generations: [AbsoluteURL: UInt64] = [:]
    /// Playlists that are listed whatever is stored of them: those that can be fetched, and
    /// extended windows.
    var reachable: Set<AbsoluteURL> = []
    package var plan = OfflinePlan([], lists: [:])
    /// True if nothing is missing from any of its playlists, none of which was ever live.
    package var isWhole = false

    package var isEmpty: Bool { plan.isEmpty && reachable.isEmpty }

    /// True if the multivariant playlist lists a playlist.
    package func lists(_ url: AbsoluteURL) -> Bool {
        plan.playable.contains(url) || reachable.contains(url)
    }
}
