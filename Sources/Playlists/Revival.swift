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
/// Can be used from any thread. Bounded: 12 playlists each of the 256 sessions that played last,
/// 16,384 URLs.
package final class Revival: Sendable {
    private struct State {
        var lists = RecentMap<SessionID, [Resource]>(capacity: 256)
        /// By the digest of the dead URL.
        var successors = RecentMap<UInt64, AbsoluteURL>(capacity: Revival.mostSuccessors)
        var refreshed = RecentMap<ObjectKey, Monotonic>(capacity: 1_024)
    }

    private static let listsOfSession = 12
    private static let mostSuccessors = 16_384
    /// The time during which a refreshed playlist is not fetched again: URLs in it that are dead
    /// then stay dead.
    package static let pause = Interval.seconds(5 as Int64)

    private let state = Mutex(State())

    package init() {}

    /// Records that a session plays a playlist.
    package func remember(_ list: Resource) {
        state.withLock { state in
            var lists = state.lists[list.session.id] ?? []
            lists.removeAll { $0.key == list.key }
            lists.append(list)
            if lists.count > Self.listsOfSession { lists.removeFirst() }
            state.lists[list.session.id] = lists
        }
    }

    /// Returns the playlists of a session, the last one first.
    package func lists(of session: SessionID) -> [Resource] {
        state.withLock { $0.lists[session] ?? [] }.reversed()
    }

    /// Returns the current URL of a dead URL; nil if none is known.
    package func successor(of dead: AbsoluteURL) -> AbsoluteURL? {
        let name = KeyEvidence.hash(dead.bytes.span)
        return state.withLock { $0.successors[name] }
    }

    /// Records the current URLs of dead URLs.
    package func note(_ pairs: [(dead: AbsoluteURL, url: AbsoluteURL)]) {
        let named = pairs.suffix(Self.mostSuccessors).map {
            (KeyEvidence.hash($0.dead.bytes.span), $0.url)
        }
        state.withLock { state in
            for (name, url) in named { state.successors[name] = url }
        }
    }

    /// Records that a playlist was just refreshed.
    func noteRefresh(_ list: ObjectKey, now: Monotonic) {
        state.withLock { $0.refreshed[list] = now }
    }

    /// True if a playlist was refreshed within `pause`.
    package func isFresh(_ list: ObjectKey, now: Monotonic) -> Bool {
        state.withLock { $0.refreshed[list] }.map { now - $0 < Self.pause } ?? false
    }
}
