// Purges and unsafe requests, which parents are not told of: requests for what they name bypass
// what a parent has stored.
import CachePolicy
package import Posix
import Routing
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
        case prefixes(Set<PurgePrefix>)
        /// A URL, normalised as in cache keys, that an unsafe request may have changed.
        case written(String)
    }

    /// The times of the last purges, by what they name.
    private struct Times: Sendable {
        // By the hashes of URLs, whose length clients decide. Equal hashes cost a parent a request.
        var texts = RecentMap<UInt64, Monotonic>(capacity: 4_096)
        var titles = RecentMap<UInt64, Monotonic>(capacity: 4_096)
        /// Kept apart from the others, since clients decide how many there are.
        var written = RecentMap<UInt64, Monotonic>(capacity: 4_096)
        var hosts: [(subject: PurgeHost, time: Monotonic)] = []
        var prefixes: [(subject: Set<PurgePrefix>, time: Monotonic)] = []

        func last(of resource: Resource) -> Monotonic? {
            let url = resource.cacheKey.url
            let hash = KeyEvidence.hash(url)
            let host = hosts.lazy.filter { $0.subject.matches(url) }.map(\.time).max()
            let prefix = prefixes.lazy
                .filter { $0.subject.contains { $0.matches(url) } }.map(\.time).max()
            return [texts[hash], titles[resource.session.id.number], host, prefix, written[hash]]
                .compactMap(\.self).max()
        }

        /// Notes a purge of a subject that is compared with each resource.
        static func note<Compared: Equatable>(
            _ subject: Compared, now: Monotonic,
            in all: inout [(subject: Compared, time: Monotonic)]
        ) {
            all.removeAll { $0.subject == subject }
            all.append((subject, now))
            if all.count > ParentPurges.mostCompared { all.removeFirst() }
        }
    }

    /// The most hosts whose purges are known, and the most prefixes.
    private static let mostCompared = 256

    private let times = Mutex(Times())

    package init() {}

    /// Notes a purge; to be called before anything is removed, so that nothing comes back.
    package func add(_ subject: Subject, now: Monotonic) {
        times.withLock { times in
            switch subject {
            case .texts(let texts):
                for text in texts { times.texts[KeyEvidence.hash(text)] = now }
            case .titles(let titles): for title in titles { times.titles[title] = now }
            case .host(let host): Times.note(host, now: now, in: &times.hosts)
            case .prefixes(let prefixes): Times.note(prefixes, now: now, in: &times.prefixes)
            case .written(let text): times.written[KeyEvidence.hash(text)] = now
            }
        }
    }

    /// Returns the Cache-Control of a request to a parent that excludes what it had stored when a
    /// resource was purged here; nil if it was not purged.
    ///
    /// What the parent has fetched since is excluded for the first seconds only (`max-age`, RFC
    /// 9111 section 5.2.1.1), so that it keeps sparing the origin.
    package func control(for resource: Resource, now: Monotonic) -> String? {
        times.withLock { $0.last(of: resource) }.map { Self.control(before: $0, now: now) }
    }

    /// Returns the Cache-Control of a request that excludes what was stored before a time.
    package static func control(before time: Monotonic, now: Monotonic) -> String {
        // Ages are whole seconds: one less, so that no response from before that time is admitted.
        let seconds = (now - time).nanoseconds / 1_000_000_000 - 1
        return seconds > 0 ? "max-age=\(seconds)" : "no-cache"
    }
}
