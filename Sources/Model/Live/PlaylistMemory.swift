// Facts of one playlist that other requests need: variables of the multivariant playlist for
// EXT-X-DEFINE:IMPORT, whether a list has an EXT-X-MAP, which its delta updates omit, and whether a
// session plays a live window, whose segments lose their value once they have left it.
import CachePolicy
package import Routing
import Synchronization
package import URISyntax

/// Facts of playlists, held in memory only, for the 1,024 most recent sessions or lists.
///
/// After a restart, a list with IMPORT cannot be read until the player has reloaded its
/// multivariant playlist, and until a full list was read the links of a delta update have the file
/// extension of a transport stream.
package final class PlaylistMemory: Sendable {
    /// Identifies a media playlist, whatever its delivery directives.
    package struct Key: Hashable, Sendable {
        private let text: String
        private let session: SessionID

        package init(list: AbsoluteURL, session: SessionID) {
            text = list.withoutDirectives.normalisedForKey
            self.session = session
        }
    }

    private struct Tables {
        var variables = RecentMap<SessionID, [String: String]>(capacity: 1_024)
        var listsWithMap = RecentMap<Key, Bool>(capacity: 1_024)
        var liveSessions = RecentMap<SessionID, Bool>(capacity: 1_024)
    }

    private let tables = Mutex(Tables())

    package init() {}

    /// Returns the variables that a session's multivariant playlist has defined.
    package func variables(of session: SessionID) -> [String: String] {
        knownVariables(of: session) ?? [:]
    }

    /// Returns the variables that a session's multivariant playlist has defined; nil if none was
    /// read.
    package func knownVariables(of session: SessionID) -> [String: String]? {
        tables.withLock { $0.variables[session] }
    }

    /// Keeps the variables of a multivariant playlist.
    package func remember(_ variables: [String: String], of session: SessionID) {
        tables.withLock { $0.variables[session] = variables }
    }

    /// True if the full list has an EXT-X-MAP.
    package func hasMap(_ list: Key) -> Bool {
        tables.withLock { $0.listsWithMap[list] } ?? false
    }

    /// Notes that the full list has an EXT-X-MAP.
    package func rememberMap(_ list: Key) {
        tables.withLock { $0.listsWithMap[list] = true }
    }

    /// True if the media playlist that the session read last is live.
    package func isLive(_ session: SessionID) -> Bool {
        tables.withLock { $0.liveSessions[session] } ?? false
    }

    /// Notes whether a session's media playlist is live.
    package func remember(isLive: Bool, of session: SessionID) {
        tables.withLock { tables in
            guard isLive != tables.liveSessions[session] ?? false else { return }
            tables.liveSessions[session] = isLive
        }
    }
}
