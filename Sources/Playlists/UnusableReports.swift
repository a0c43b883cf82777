// Logs which URIs of a playlist are withheld from players, once for each playlist.
import CachePolicy
package import HLS
package import Logging
package import Model
import Synchronization
import URISyntax

/// The last 1,024 playlists that were reported.
///
/// Can be used from any thread.
package final class UnusableReports: Sendable {
    /// By the hashes of their URLs, which may be long.
    private let known = Mutex(RecentMap<UInt64, Bool>(capacity: 1_024))

    package init() {}

    /// Logs the URIs of a playlist or JSON text that are withheld from players.
    package func report(_ unusable: UnusableURIs, in resource: Resource, to log: Logger) {
        guard let first = unusable.reasons.first else { return }
        // Without the query, because tokens change between reloads.
        let playlist = resource.url.redacted
        let hash = KeyEvidence.hash(playlist)
        let isFirst = known.withLock { known in
            guard known[hash] == nil else { return false }
            known[hash] = true
            return true
        }
        guard isFirst else { return }
        log.warning(
            "URIs of a playlist are not passed to players",
            metadata: [
                "playlist": "\(playlist)", "count": "\(unusable.count)",
                "first": "\(first.description)",
            ])
    }
}
