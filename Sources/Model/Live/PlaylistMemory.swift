// What one playlist says that others need: variables of the multivariant playlist for
// EXT-X-DEFINE:IMPORT, whether a list has an EXT-X-MAP, which its delta updates leave out, and
// whether a session plays a live window, whose segments are worth little once they have left it.
import CachePolicy
package import Routing
import Synchronization
package import URISyntax

/// Held in memory only, for the 1,024 sessions or lists that were told of last.
///
/// After a restart a list with IMPORT cannot be read before the player has loaded its multivariant
/// playlist again, and the links of a delta update show the extension of a transport stream until
/// then.
package final class PlaylistMemory: Sendable {
    /// Names a media playlist, whichever delivery directives it is asked with.
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

    /// The variables that a session's multivariant playlist has defined.
    package func variables(of session: SessionID) -> [String: String] {
        knownVariables(of: session) ?? [:]
    }

    /// The variables that a session's multivariant playlist has defined; nil where none has been
    /// read.
    package func knownVariables(of session: SessionID) -> [String: String]? {
        tables.withLock { $0.variables[session] }
    }

    /// Keeps the variables of a multivariant playlist.
    package func remember(_ variables: [String: String], of session: SessionID) {
        tables.withLock { $0.variables[session] = variables }
    }

    /// Whether the full list has an EXT-X-MAP.
    package func hasMap(_ list: Key) -> Bool {
        tables.withLock { $0.listsWithMap[list] } ?? false
    }

    /// Notes that the full list has an EXT-X-MAP.
    package func rememberMap(_ list: Key) {
        tables.withLock { $0.listsWithMap[list] = true }
    }

    /// Whether the media playlist that the session read last slides on.
    package func isLive(_ session: SessionID) -> Bool {
        tables.withLock { $0.liveSessions[session] } ?? false
    }

    /// Notes whether a session's media playlist slides on.
    package func remember(isLive: Bool, of session: SessionID) {
        tables.withLock { tables in
            guard isLive != tables.liveSessions[session] ?? false else { return }
            tables.liveSessions[session] = isLive
        }
    }
}
