// How much of the state database a start reads.
import Logging

/// The bytes of rows that are still read.
///
/// What users ordered has a room of its own: a long list of pins must not leave out the rest of it.
struct StateRooms: Sendable {
    /// For what users ordered: tens of millions of pinned objects.
    var orders = 1 << 30
    /// For everything else, most of which grows by itself.
    var others = 128 << 20

    /// The room of a table, which it shares with others.
    subscript(table: StateTable) -> Int {
        get { self[keyPath: Self.room(of: table)] }
        set { self[keyPath: Self.room(of: table)] = newValue }
    }

    private static func room(of table: StateTable) -> WritableKeyPath<Self, Int> {
        StateSchema.orders.contains(table.name) ? \.orders : \.others
    }
}

extension StateContents {
    /// The rows that are not known, by table; empty if all are.
    var unreadText: String {
        unread.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", ")
    }

    /// Logs which rows did not fit into the rooms.
    func reportUnread(_ log: Logger) {
        guard !unread.isEmpty else { return }
        log.error(
            """
            the state database of the cache folder is larger than what a start reads (1 GiB of \
            pins, downloads, recordings and purges, 128 MiB of the rest): some rows stay in the \
            file and are not known; remove downloads or feeds that are not needed
            """, metadata: ["unread": "\(unreadText)"])
    }
}
