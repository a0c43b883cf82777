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
    private let known = Mutex(RecentMap<String, Bool>(capacity: 1_024))

    package init() {}

    /// True if this is the first report about a playlist.
    func isFirst(_ playlist: String) -> Bool {
        known.withLock { known in
            guard known[playlist] == nil else { return false }
            known[playlist] = true
            return true
        }
    }
}

extension UnusableReports {
    /// Logs the URIs of a playlist or JSON text that are withheld from players.
    package func report(_ unusable: UnusableURIs, in resource: Resource, to log: Logger) {
        guard let first = unusable.reasons.first else { return }
        // Without the query, because tokens change between reloads.
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
