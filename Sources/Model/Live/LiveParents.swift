import CachePolicy
package import Routing
package import Store
import Synchronization

/// The multivariant playlists that name a media playlist which is or was live.
///
/// The multivariant playlist of a film keeps its names. That of a channel changes them with the
/// ladder, or with the origin's own sessions, so it is revalidated like a list that has ended.
///
/// Any thread may use it. Bounded, and in memory only: from its next revalidation on, the stored
/// head of such a playlist notes the fact.
package final class LiveParents: Sendable {
    private struct Reading: Hashable {
        let session: SessionID
        let list: ObjectKey
    }

    private struct State {
        /// The live lists that sessions were given.
        var shown = RecentMap<Reading, Bool>(capacity: 4_096)
        var parents = RecentMap<ObjectKey, Bool>(capacity: 4_096)
    }

    private let state = Mutex(State())

    package init() {}

    /// Notes that a session was given a live list.
    ///
    /// - Returns: true for the first time.
    package func noteShown(_ list: ObjectKey, to session: SessionID) -> Bool {
        let reading = Reading(session: session, list: list)
        return state.withLock { state in
            guard state.shown[reading] == nil else { return false }
            state.shown[reading] = true
            return true
        }
    }

    /// Notes that a multivariant playlist names a live list.
    ///
    /// - Returns: true if that was not known.
    package func note(_ parent: ObjectKey) -> Bool {
        state.withLock { state in
            guard state.parents[parent] == nil else { return false }
            state.parents[parent] = true
            return true
        }
    }

    /// True if a playlist is known to name a live list.
    package func contains(_ parent: ObjectKey) -> Bool {
        state.withLock { $0.parents[parent] != nil }
    }
}
