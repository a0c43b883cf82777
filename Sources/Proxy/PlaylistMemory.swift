/// What one playlist says that another one needs: variables of the multivariant playlist for
/// EXT-X-DEFINE:IMPORT, and whether a list has an EXT-X-MAP, which its delta updates leave out.
import Routing
import Synchronization
import URISyntax

/// Held in memory only, for the 1,024 sessions or lists that were told of last.
///
/// After a restart a list with IMPORT cannot be read before the player has loaded its multivariant
/// playlist again, and the links of a delta update show the extension of a transport stream until
/// then.
final class PlaylistMemory: Sendable {
    /// Names a media playlist, whichever delivery directives it is asked with.
    struct Key: Hashable, Sendable {
        private let text: String
        private let session: SessionID

        init(list: AbsoluteURL, session: SessionID) {
            let arguments =
                list.query?.split(separator: "&").filter { !$0.hasPrefix("_HLS_") } ?? []
            let base = list.pathAndQuery.prefix { $0 != "?" }
            text = "\(list.origin)\(base)?\(arguments.joined(separator: "&"))"
            self.session = session
        }
    }

    private struct Tables {
        var variables = RecentTable<SessionID, [String: String]>()
        var listsWithMap = RecentTable<Key, Bool>()
    }

    private let tables = Mutex(Tables())

    /// The variables that a session's multivariant playlist has defined.
    func variables(of session: SessionID) -> [String: String] {
        tables.withLock { $0.variables[session] } ?? [:]
    }

    /// Keeps the variables of a multivariant playlist.
    func remember(_ variables: [String: String], of session: SessionID) {
        guard !variables.isEmpty else { return }
        tables.withLock { $0.variables.set(variables, for: session) }
    }

    /// Whether the full list has an EXT-X-MAP.
    func hasMap(_ list: Key) -> Bool {
        tables.withLock { $0.listsWithMap[list] } ?? false
    }

    /// Notes that the full list has an EXT-X-MAP.
    func rememberMap(_ list: Key) {
        tables.withLock { $0.listsWithMap.set(true, for: list) }
    }
}

/// A dictionary that forgets its oldest key beyond 1,024.
private struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Key: Value] = [:]
    private var order: [Key] = []

    subscript(key: Key) -> Value? { values[key] }

    mutating func set(_ value: Value, for key: Key) {
        if values.updateValue(value, forKey: key) == nil { order.append(key) }
        if order.count > 1_024 { values[order.removeFirst()] = nil }
    }
}
