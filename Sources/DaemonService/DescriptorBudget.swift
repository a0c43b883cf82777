// Divides the descriptors that a process may open; pure.

/// The number of connections and files for a descriptor limit (RLIMIT_NOFILE, getrlimit(2)).
///
/// A player's connection takes a socket and, while it is answered, an object's file; each further
/// stream of HTTP/2 counts as a connection, since it takes another file. The descriptors that the
/// program itself and transfers from origins need are reserved first, so that a crowd of players is
/// rejected before files or origins can no longer be opened.
package struct DescriptorBudget: Sendable, Equatable {
    /// The demand of the configured daemon.
    package struct Demand: Sendable {
        /// The number of threads that serve players.
        var loops: Int
        /// The number of addresses listened on.
        var addresses: Int
        /// The maximum number of concurrent transfers from origins.
        var transfers: Int
        /// The maximum number of concurrent player connections.
        package var connections: Int
        /// The maximum number of idle objects kept open.
        var openObjects: Int

        /// The program's own descriptors: index, lock, logs, standard streams, threads and
        /// listeners, and some for reading a folder or writing a small file.
        var own: Int { 64 + loops * (2 + 2 * addresses) }

        /// A socket and a file per transfer, and some connections kept for reuse.
        var origins: Int { 2 * transfers + DescriptorBudget.idleReserve }

        /// What the user can do besides raising the limit, as the rest of a sentence: nothing where one
        /// loop is left, with one slot and one express slot.
        package var wayOut: String {
            loops > 1 || transfers > 2 ? ", or lower --slots, --express-slots and --loops" : ""
        }

        /// The lowest limit that the daemon starts with.
        var least: Int { own + origins + 2 * DescriptorBudget.leastConnections }
    }

    /// The limit is too low for the daemon.
    package struct TooLow: Error, Equatable {
        package let limit: Int
        /// The lowest sufficient limit.
        package let least: Int
    }

    /// The number of concurrent player connections that a daemon must support.
    package static let leastConnections = 8
    private static let idleReserve = 16

    /// The maximum number of concurrent player connections; at most the demand.
    package let connections: Int
    /// The maximum number of idle objects kept open; at most the demand.
    package let openObjects: Int
    /// The maximum number of open connections to origins.
    package let originConnections: Int

    /// Divides `limit` descriptors.
    package init(limit: Int, for demand: Demand) throws(TooLow) {
        // Capped against overflow; more than a billion descriptors need no division.
        let limit = min(limit, 1 << 30)
        guard limit >= demand.least else { throw TooLow(limit: limit, least: demand.least) }
        let left = limit - demand.own - demand.origins
        // Files of objects that are being read cannot be closed; idle objects share their half.
        connections = max(min(demand.connections, left / 2), 1)
        openObjects = max(min(demand.openObjects, left - connections), 1)
        originConnections = demand.transfers + Self.idleReserve
    }
}
