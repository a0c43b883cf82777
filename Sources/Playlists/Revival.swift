import CachePolicy
package import Model
package import Posix
package import Routing
package import Store
import Synchronization
package import URISyntax

/// The playlists that sessions have played and the current URLs of resources whose old URLs are
/// dead.
///
/// Can be used from any thread. Bounded: 12 playlists each of 256 sessions, 16,384 URLs, both also
/// in bytes, and when the last few thousand playlists were fetched again.
package final class Revival: Sendable {
    private struct State {
        var lists = RecentlyUsedMap<SessionID, [Resource]>(
            mostKeys: 256, mostBytes: Revival.mostBytes)
        /// By the digest of the dead URL; nil for one that is not dead any more.
        var successors = RecentlyUsedMap<UInt64, AbsoluteURL?>(
            mostKeys: Revival.mostSuccessors, mostBytes: Revival.mostBytes)
        var refreshed = RecentMap<ObjectKey, Monotonic>(capacity: 1_024)
        /// When a playlist was fetched for a session, with whatever result.
        var asked = RecentMap<SessionList, Monotonic>(capacity: 4_096)
        /// When the fetch of a playlist last changed the cookies of a session.
        var cookies = RecentMap<SessionID, Monotonic>(capacity: 1_024)

        /// Returns the URL that replaced one, and notes that it is used.
        mutating func next(after name: UInt64) -> AbsoluteURL? {
            successors.use(name).flatMap { $0 }
        }

        mutating func replace(_ name: UInt64, by url: AbsoluteURL?) {
            successors.keep(url, bytes: url.map(Revival.size) ?? 0, for: name)
        }
    }

    private struct SessionList: Hashable {
        let session: SessionID
        let list: ObjectKey

        init(_ list: Resource) {
            session = list.session.id
            self.list = list.key
        }
    }

    private static let listsOfSession = 12
    /// The most successors of successors that one look-up follows.
    private static let longestChain = 1_024
    private static let mostSuccessors = 16_384
    /// The most bytes of the URLs of successors, with some 100 for each; the same again for lists.
    private static let mostBytes = 16 << 20
    /// The time during which a refreshed playlist is not fetched again: URLs in it that are dead
    /// then stay dead.
    package static let pause = Interval.seconds(5 as Int64)

    private let state = Mutex(State())

    package init() {}

    /// Records that a session plays a playlist.
    package func remember(_ list: Resource) {
        state.withLock { state in
            var lists = state.lists.use(list.session.id) ?? []
            lists.removeAll { $0.key == list.key }
            lists.append(list)
            if lists.count > Self.listsOfSession { lists.removeFirst() }
            // The key has the URL once more.
            let size = lists.reduce(0) { $0 + 2 * Self.size(of: $1.url) }
            state.lists.keep(lists, bytes: size, for: list.session.id)
        }
    }

    /// Returns the playlists of a session, the last one first.
    package func lists(of session: SessionID) -> [Resource] {
        state.withLock { $0.lists[session] ?? [] }.reversed()
    }

    /// Returns the current URL of a dead URL; nil if none is known.
    ///
    /// That is the last one where the URLs that replaced it have died as well.
    package func successor(of dead: AbsoluteURL) -> AbsoluteURL? {
        let name = Self.name(of: dead)
        return state.withLock { state in
            guard let first = state.next(after: name) else { return nil }
            var last = first
            for _ in 0..<Self.longestChain {
                guard let next = state.next(after: Self.name(of: last)) else { break }
                last = next
            }
            // Later look-ups take one step.
            if last != first { state.replace(name, by: last) }
            return last
        }
    }

    /// Records the current URLs of dead URLs.
    ///
    /// A current URL is not dead, whatever was recorded of it before: an origin may return to a token
    /// that it had refused, and successors that led back to each other would be followed forever.
    package func note(_ pairs: [(dead: AbsoluteURL, url: AbsoluteURL)]) {
        let named = pairs.suffix(Self.mostSuccessors).map {
            (dead: Self.name(of: $0.dead), name: Self.name(of: $0.url), url: $0.url)
        }
        state.withLock { state in
            for pair in named {
                state.replace(pair.dead, by: pair.url)
                if state.successors[pair.name] != nil { state.replace(pair.name, by: nil) }
            }
        }
    }

    private static func name(of url: AbsoluteURL) -> UInt64 { KeyEvidence.hash(url.bytes.span) }

    private static func size(of url: AbsoluteURL) -> Int { url.bytes.count + 100 }

    /// Records that a playlist was just refreshed, or could not be.
    package func noteRefresh(_ list: ObjectKey, now: Monotonic) {
        state.withLock { $0.refreshed[list] = now }
    }

    /// Records that a playlist was fetched for its session past the cache, and whether the response
    /// changed the cookies of the session.
    package func noteRefresh(_ list: Resource, bringsCookies: Bool, now: Monotonic) {
        state.withLock { state in
            state.asked[SessionList(list)] = now
            if bringsCookies { state.cookies[list.session.id] = now }
        }
    }

    /// True if a playlist was fetched for its session within `pause`: its cookies are no newer now.
    package func wasAsked(_ list: Resource, now: Monotonic) -> Bool {
        state.withLock { $0.asked[SessionList(list)] }.map { now - $0 < Self.pause } ?? false
    }

    /// True if a fetch of a playlist for its session has ended since a time.
    package func wasAsked(_ list: Resource, since time: Monotonic) -> Bool {
        state.withLock { $0.asked[SessionList(list)] }.map { $0 >= time } ?? false
    }

    /// Returns when the fetch of a playlist last changed a session's cookies; nil for before `time`.
    package func newCookies(of session: SessionID, since time: Monotonic) -> Monotonic? {
        state.withLock { $0.cookies[session] }.flatMap { $0 >= time ? $0 : nil }
    }

    /// True if a playlist was refreshed, or could not be, within `pause`.
    package func isFresh(_ list: ObjectKey, now: Monotonic) -> Bool {
        state.withLock { $0.refreshed[list] }.map { now - $0 < Self.pause } ?? false
    }
}
