import CachePolicy
package import Model
package import Posix
package import Routing
package import Store
import Synchronization
package import URISyntax

/// What is remembered of lists and of what took the place of their children.
///
/// Any thread may use it. Bounded: 12 lists each of the 256 sessions that played last, 16,384 URLs.
package final class Revival: Sendable {
    private struct State {
        var lists = RecentMap<SessionID, [Resource]>(capacity: 256)
        /// By digest of the former URL.
        var successors = RecentMap<UInt64, AbsoluteURL>(capacity: Revival.mostSuccessors)
        var refreshed = RecentMap<ObjectKey, Monotonic>(capacity: 1_024)
    }

    private static let listsOfSession = 12
    private static let mostSuccessors = 16_384
    /// A list that was asked for anew is not asked again for this long: what is dead in it is dead.
    package static let pause = Interval.seconds(5 as Int64)

    private let state = Mutex(State())

    package init() {}

    /// Notes that a session plays a list.
    package func remember(_ list: Resource) {
        state.withLock { state in
            var lists = state.lists[list.session.id] ?? []
            lists.removeAll { $0.key == list.key }
            lists.append(list)
            if lists.count > Self.listsOfSession { lists.removeFirst() }
            state.lists[list.session.id] = lists
        }
    }

    /// The lists of a session, the last one first.
    package func lists(of session: SessionID) -> [Resource] {
        state.withLock { $0.lists[session] ?? [] }.reversed()
    }

    /// Where a dead URL is found now; nil where no other place is known.
    package func successor(of dead: AbsoluteURL) -> AbsoluteURL? {
        let name = KeyEvidence.hash(dead.bytes.span)
        return state.withLock { $0.successors[name] }
    }

    /// Notes where dead URLs are found now.
    package func note(_ pairs: [(dead: AbsoluteURL, url: AbsoluteURL)]) {
        let named = pairs.suffix(Self.mostSuccessors).map {
            (KeyEvidence.hash($0.dead.bytes.span), $0.url)
        }
        state.withLock { state in
            for (name, url) in named { state.successors[name] = url }
        }
    }

    /// Notes that a list was just asked for anew.
    func noteRefresh(_ list: ObjectKey, now: Monotonic) {
        state.withLock { $0.refreshed[list] = now }
    }

    /// Whether a list was asked for anew just now.
    package func isFresh(_ list: ObjectKey, now: Monotonic) -> Bool {
        state.withLock { $0.refreshed[list] }.map { now - $0 < Self.pause } ?? false
    }
}
