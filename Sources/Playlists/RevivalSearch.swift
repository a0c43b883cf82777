import CachePolicy
package import HLS
package import Model
import Posix
import Routing
package import Store
package import URISyntax

/// The part of a revival that reads playlists; for a thread that may block.
package struct RevivalSearch: Sendable {
    package let sources: PlaylistSources
    /// The resource of the exchange.
    package let example: Resource
    package let session: Session
    /// The URL to find, without delivery directives.
    package let url: AbsoluteURL
    package let role: ResourceRole

    package init(
        sources: PlaylistSources, example: Resource, session: Session, url: AbsoluteURL,
        role: ResourceRole
    ) {
        self.sources = sources
        self.example = example
        self.session = session
        self.url = url
        self.role = role
    }

    /// A playlist, its references, and whether it contains the URL itself.
    package struct Found: Sendable {
        package let list: Resource
        let reading: Succession.Reading
        package let isExact: Bool
        /// True if it is not stored, and only near the URL.
        var isEvicted = false
        /// The URL that the playlist has in place of the sought one, if it does not contain that.
        package var successor: AbsoluteURL?
        /// The playlist at the URL that a redirect led to; nil without one.
        ///
        /// For when its own URL is refused, which may lack what key rules leave out.
        package var answered: Resource?
    }

    /// Finds the playlist that names the URL: exactly, otherwise by key or path, otherwise the
    /// session's entry if that names it renamed, otherwise the closest one that was evicted; blocks
    /// on the disk.
    package func look() -> Found? {
        guard var found = list() else { return nil }
        // The playlist may already have been refreshed, for another player or by its own reload.
        if !found.isExact {
            found.successor =
                Succession(found.reading, key: key).successor(of: url, role)
                ?? renamed(in: found.reading, found.list)
        }
        return found
    }

    /// Returns and notes the URL that a renamed playlist has in the session's entry; nil if none.
    ///
    /// Of the entry, the reading that named the former URL may have been replaced, for another
    /// player or before a restart. Only the entry counts: all playlists in it are of one stream,
    /// while other playlists of the session may be of other channels or advertisements.
    private func renamed(in reading: Succession.Reading, _ list: Resource) -> AbsoluteURL? {
        guard let next = replacement(in: reading, list) else { return nil }
        sources.revival.note([(dead: url, url: next)])
        return next
    }

    private func replacement(in reading: Succession.Reading, _ list: Resource) -> AbsoluteURL? {
        guard role == .playlist, SessionTable.starts(session, at: list.url) else { return nil }
        return reading.renamed(url)
    }

    /// Returns the URL's successor in a refreshed playlist; nil if it has none.
    ///
    /// Blocks on the disk.
    package func successor(in object: StoredObject, _ list: Resource, after found: Found)
        -> AbsoluteURL?
    {
        guard let now = reading(of: object, list, isNew: true) else { return nil }
        sources.revival.noteRefresh(found.list.key, now: .now())
        let succession = Succession(now, key: key)
        sources.revival.note(succession.pairs(with: found.reading))
        let next =
            sources.revival.successor(of: url) ?? succession.successor(of: url, role)
            ?? (found.isExact ? nil : renamed(in: now, list))
        return next == url ? nil : next
    }

    private func key(_ url: AbsoluteURL, _ role: ResourceRole) -> ObjectKey {
        ObjectKey(sources.names.keys.cacheKey(of: url, session: session, role: role))
    }

    private func list() -> Found? {
        // A player that continues after a restart may have played the parent list before it.
        let known = sources.revival.lists(of: session.id)
        let found = list(in: known)
        if let found, !found.isEvicted { return found }
        let others = storedLists.filter { list in known.allSatisfy { $0.key != list.key } }
        guard var stored = list(in: others) else { return found }
        stored.answered = answered(stored.list)
        return stored
    }

    private func list(in lists: [Resource]) -> Found? {
        let name = key(url, role)
        var alike: Found?
        var renaming: Found?
        var absent: Resource?
        for list in lists where list.url != url {
            guard let object = sources.store.peek(list.key) else {
                if closeness(of: list) > absent.map(closeness) ?? -1 { absent = list }
                continue
            }
            guard let reading = reading(of: object, list) else { continue }
            if reading.children.contains(where: { $0.url == url }) {
                return Found(list: list, reading: reading, isExact: true)
            }
            let isLike = reading.children.contains {
                $0.url.path == url.path || key($0.url, $0.role) == name
            }
            if isLike, alike == nil {
                alike = Found(list: list, reading: reading, isExact: false)
            }
            if !isLike, renaming == nil, replacement(in: reading, list) != nil {
                renaming = Found(list: list, reading: reading, isExact: false)
            }
        }
        // An evicted playlist may name the URL once it is fetched again.
        return alike ?? renaming
            ?? absent.map {
                Found(list: $0, reading: Succession.Reading(), isExact: false, isEvicted: true)
            }
    }

    /// Returns the number of leading path segments that a playlist that is not stored shares with
    /// the URL; -1 for another origin.
    private func closeness(of list: Resource) -> Int {
        guard list.url.origin == url.origin else { return -1 }
        return zip(list.url.path.split(separator: "/"), url.path.split(separator: "/"))
            .prefix { $0 == $1 }.count
    }

    /// The most stored playlists of one role that are looked at.
    private static let mostLists = 32

    /// The session's playlists in the store, for players that continue after a restart.
    private var storedLists: [Resource] {
        sources.storedLists(of: session, most: Self.mostLists).compactMap { row in
            let key = CacheKey(text: row.url)
            // Under a mount, other rules decide for whom a response is stored, and delta updates
            // name only some of the children.
            guard key.user == nil, key.skip == nil, let object = sources.store.peek(row.key),
                let facts = ObjectFacts.of(object), facts.head.isPlaylist, !facts.head.followsHTTP,
                let final = try? AbsoluteURL(facts.head.finalURL)
            else { return nil }
            return example.changing {
                $0.url = requested(key, answeredAt: final)
                $0.role = .playlist
                $0.cacheKey = key
                $0.live = .none
            }
        }
    }

    /// Returns the URL that a stored playlist was requested with, before redirects: the URL that a
    /// redirect led to may have had a token that has expired since.
    ///
    /// The key has that URL, without what rules leave out. If the origin refuses it for that, the
    /// playlist above names the whole one; none is above an entry, which is then asked for where it
    /// was found before.
    private func requested(_ key: CacheKey, answeredAt final: AbsoluteURL) -> AbsoluteURL {
        let answered = withUserinfo(final, of: key)
        guard final.normalisedForKey != key.url, let url = try? AbsoluteURL(key.url) else {
            return answered
        }
        let asked = withUserinfo(url, of: key)
        if SessionTable.starts(session, at: asked) { return asked }
        let texts = sources.names.keys.texts(of: final.withoutDirectives)
        return texts.contains(key.url) ? answered : asked
    }

    /// Returns a stored playlist at the URL that answered, if that is not the one to ask first, and
    /// this one may lack something.
    private func answered(_ list: Resource) -> Resource? {
        guard !SessionTable.starts(session, at: list.url),
            let object = sources.store.peek(list.key), let facts = ObjectFacts.of(object),
            let final = try? AbsoluteURL(facts.head.finalURL)
        else { return nil }
        let url = withUserinfo(final, of: list.cacheKey)
        return url == list.url ? nil : list.changing { $0.url = url }
    }

    /// Returns the URL of a stored playlist with the example's user information, if its key says
    /// that it was requested with that: it is fetched again, and is stored for the same users.
    private func withUserinfo(_ url: AbsoluteURL, of key: CacheKey) -> AbsoluteURL {
        guard let named = try? example.withUserinfo(url) else { return url }
        // The example's user, with which it is fetched: a reload may have given its mount another.
        let ofUser = sources.names.keys.cacheKey(
            of: named, session: session, role: .playlist, as: example.mountUser)
        let isOfUser =
            key.audience == ofUser.audience || key.audience == .session(session.id.text)
        return isOfUser ? named : url
    }

    /// Returns what a stored playlist names; of a new one, the epochs of the names are noted.
    private func reading(of object: StoredObject, _ list: Resource, isNew: Bool = false)
        -> Succession.Reading?
    {
        guard object.isComplete, let facts = ObjectFacts.of(object), facts.head.isPlaylist,
            let base = try? list.withUserinfo(AbsoluteURL(facts.head.finalURL)),
            let body = try? readBody(of: object, count: Int(object.total ?? 0))
        else { return nil }
        let options = PlaylistReading(
            limits: list.session.limits(ofOrigins: sources.limits),
            variables: sources.memory.variables(of: list.session.id, in: list.url))
        if isNew {
            try? sources.names.noteNames(in: (body, base), of: list, object, options: options)
        }
        return (try? Playlist(body, base: base, options)).map { Succession.Reading($0) }
    }
}
