// Purges that parents do not hear of: what they name is requested past what a parent has stored.
import CachePolicy
package import Posix
import Routing
import Store
import Synchronization

/// What was purged here, and may still be stored by a parent.
///
/// Known for this run of the daemon and in limited number; the oldest purges are dropped first.
///
/// Any thread may use it.
package final class ParentPurges: Sendable {
    /// What one purge names.
    package enum Subject: Sendable {
        /// URLs, normalised as in cache keys.
        case texts(Set<String>)
        /// Numbers of titles.
        case titles(Set<UInt64>)
        case host(PurgeHost)
    }

    private struct Book: Sendable {
        var texts = RecentMap<String, Bool>(capacity: 4_096)
        var titles = RecentMap<UInt64, Bool>(capacity: 4_096)
        var hosts: [PurgeHost] = []
        /// The resources that a parent has renewed or confirmed since the last purge.
        var renewed = RecentMap<ObjectKey, Bool>(capacity: ParentPurges.mostRenewed)
        var lastPurge = Monotonic(nanoseconds: 0)

        func concerns(_ resource: Resource) -> Bool {
            let url = resource.cacheKey.url
            return texts[url] != nil || titles[resource.session.id.number] != nil
                || hosts.contains { $0.matches(url) }
        }
    }

    /// The most hosts whose purges are known.
    private static let mostHosts = 256
    /// The most renewed resources that are known; of others, the parent is asked once more.
    private static let mostRenewed = 16_384

    private let book = Mutex(Book())

    package init() {}

    /// Notes a purge; to be called before anything is removed, so that nothing comes back.
    package func add(_ subject: Subject, now: Monotonic) {
        book.withLock { book in
            book.lastPurge = now
            book.renewed = RecentMap(capacity: Self.mostRenewed)
            switch subject {
            case .texts(let texts): for text in texts { book.texts[text] = true }
            case .titles(let titles): for title in titles { book.titles[title] = true }
            case .host(let host):
                book.hosts.removeAll { $0 == host }
                book.hosts.append(host)
                if book.hosts.count > Self.mostHosts { book.hosts.removeFirst() }
            }
        }
    }

    /// True if a parent may have a version of a resource that was purged here.
    package func concerns(_ resource: Resource) -> Bool {
        book.withLock { book in
            book.concerns(resource) && book.renewed[resource.key] == nil
        }
    }

    /// Notes that a parent has answered a request for a resource that went past what it has stored.
    ///
    /// - Parameters:
    ///   - resource: the resource.
    ///   - time: when the request was sent; one before the last purge proves nothing.
    package func noteRenewed(_ resource: Resource, requestedAt time: Monotonic) {
        book.withLock { book in
            guard time > book.lastPurge, book.concerns(resource) else { return }
            book.renewed[resource.key] = true
        }
    }
}
