// Says in the log which URIs of a playlist players are not given, once a playlist.
import CachePolicy
package import HLS
package import Logging
package import Model
import Synchronization
import URISyntax

/// Remembers the last 1,024 playlists that were reported.
///
/// Any thread may use it.
package final class UnusableReports: Sendable {
    private let known = Mutex(RecentMap<String, Bool>(capacity: 1_024))

    package init() {}

    /// Whether this is the first report about a playlist.
    func isFirst(_ playlist: String) -> Bool {
        known.withLock { known in
            guard known[playlist] == nil else { return false }
            known[playlist] = true
            return true
        }
    }
}

extension UnusableReports {
    /// Logs the URIs of a playlist or JSON text that players are not given.
    package func report(_ unusable: UnusableURIs, in resource: Resource, to log: Logger) {
        guard let first = unusable.reasons.first else { return }
        // Without the query: tokens change from reload to reload.
        let playlist = resource.url.redacted
        guard isFirst(playlist) else { return }
        log.warning(
            "URIs of a playlist are not passed to players",
            metadata: [
                "playlist": "\(playlist)", "count": "\(unusable.count)",
                "first": "\(first.description)",
            ])
    }
}
