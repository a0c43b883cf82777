// How the descriptors that a process may open are shared out; pure.

/// What a descriptor limit (RLIMIT_NOFILE, getrlimit(2)) carries.
///
/// A connection of a player takes a socket and, while it is answered, an object's file. What the
/// program opens for itself and what transfers from origins need is set aside first, so that a
/// crowd of players is turned away before files or origins cannot be opened any more.
package struct DescriptorBudget: Sendable, Equatable {
    /// What the daemon is configured to do.
    package struct Demand: Sendable {
        /// Threads that serve players.
        package var loops: Int
        /// Addresses listened on.
        package var addresses: Int
        /// Transfers from origins at once.
        package var transfers: Int
        /// Connections of players at once.
        package var connections: Int
        /// Objects kept open although nobody uses them.
        package var openObjects: Int

        package init(
            loops: Int, addresses: Int, transfers: Int, connections: Int, openObjects: Int
        ) {
            self.loops = loops
            self.addresses = addresses
            self.transfers = transfers
            self.connections = connections
            self.openObjects = openObjects
        }

        /// Index, lock, logs, standard streams, threads and listeners, and room to read a folder or
        /// to write a small file.
        var own: Int { 64 + loops * (2 + 2 * addresses) }

        /// A socket and a file for each transfer, and some connections kept for reuse.
        var origins: Int { 2 * transfers + DescriptorBudget.idleReserve }

        /// The lowest limit that the daemon starts with.
        var least: Int { own + origins + 2 * DescriptorBudget.leastConnections }
    }

    /// The limit cannot carry the daemon at all.
    package struct TooLow: Error, Equatable {
        package let limit: Int
        /// The lowest limit that would do.
        package let least: Int
    }

    /// Connections of players that a daemon must be able to serve at once.
    package static let leastConnections = 8
    private static let idleReserve = 16

    /// Connections of players at once; at most what was wanted.
    package let connections: Int
    /// Objects kept open although nobody uses them; at most what was wanted.
    package let openObjects: Int
    /// Connections to origins that may be kept open.
    package let originConnections: Int

    /// Shares out `limit` descriptors.
    package init(limit: Int, for demand: Demand) throws(TooLow) {
        // A table of loops, addresses and slots is small; limits beyond a billion need no sharing.
        let limit = min(limit, 1 << 30)
        guard limit >= demand.least else { throw TooLow(limit: limit, least: demand.least) }
        let left = limit - demand.own - demand.origins
        // Files of objects that are being read cannot be closed; idle ones share their half.
        connections = max(min(demand.connections, left / 2), 1)
        openObjects = max(min(demand.openObjects, left - connections), 1)
        originConnections = demand.transfers + Self.idleReserve
    }
}
