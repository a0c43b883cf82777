import Reactor

/// The sets of connections of a route, each of which has addresses of its own in libcurl.
enum ConnectionKind: Int, CaseIterable {
    case shared, express, background
}

/// The connections of each route to origins.
///
/// Connections of different routes are never mixed: libcurl 7.88 would reuse a connection that is
/// bound to an interface for a transfer that is not, and applies fixed addresses to all connections
/// of a set.
struct RouteConnections {
    /// The connections of one route.
    struct Sets {
        let shared: CurlMulti
        let express: CurlMulti
        /// Connections of background transfers, if they yield: on a connection that carried
        /// segments too, the bound would be on the segments.
        let background: CurlMulti?

        subscript(kind: ConnectionKind) -> CurlMulti {
            switch kind {
            case .shared: shared
            case .express: express
            case .background: background ?? shared
            }
        }

        var all: [CurlMulti] { [shared, express] + [background].compactMap { $0 } }

        /// Which of these connections `multi` has.
        func kind(of multi: CurlMulti) -> ConnectionKind {
            if multi === express { return .express }
            return multi === background ? .background : .shared
        }
    }

    /// The connections of the plain route, which nearly every transfer uses.
    private var plain: Sets?
    private var sets: [OriginRoute: Sets] = [:]

    /// With more sets than this, those without transfers are closed.
    private static let most = 16

    subscript(route: OriginRoute) -> Sets? { route.isPlain ? plain : sets[route] }

    /// Adds the connections of another route, and divides the limit of idle connections among all
    /// sets.
    ///
    /// - Returns: the sets that were dropped to make room.
    mutating func insert(
        _ added: Sets, of route: OriginRoute, idle: Int, isInUse: (Sets) -> Bool
    ) -> [Sets] {
        var dropped: [Sets] = []
        if sets.count >= Self.most {
            let unused = sets.filter { !isInUse($0.value) }
            for route in unused.keys { sets[route] = nil }
            dropped = Array(unused.values)
        }
        if route.isPlain { plain = added } else { sets[route] = added }
        let all = Array(sets.values) + [plain].compactMap { $0 }
        let share = max(1, idle / all.count)
        for each in all {
            for multi in each.all { multi.keepIdle(share) }
        }
        return dropped
    }
}

/// Decides which connections of its route a transfer uses: pure.
struct ConnectionChoice {
    let lane: Lane
    /// True while bodies come over the HTTP/2 connection of its origin: a playlist on it would come
    /// after them.
    var isBusy = false
    /// True while the windows of what players wait for are bounded: on the connection that a
    /// playlist leaves, more is granted than the share of the segment that would come over it next.
    var arePlayersBound = false
    /// True if the origin uses HTTP/2: playlists that are requested together would each open one
    /// more connection, and segments come over the same one in any case.
    var isMultiplexing = false
    /// True if the origin counts connections: it is not to see another one that is idle.
    var isCounted = false

    var kind: ConnectionKind {
        switch lane {
        case .express where isBusy: .express
        case .express where arePlayersBound && !isMultiplexing && !isCounted: .express
        case .background where !isCounted: .background
        case .express, .playback, .prefetch, .background: .shared
        }
    }
}

extension UpstreamClient {
    /// Returns the connections of a route; nil if libcurl cannot start, or after shutdown.
    func connectionSets(of route: OriginRoute) -> RouteConnections.Sets? {
        if let known = connections[route] { return known }
        guard !isShutDown, let shared = CurlMulti(for: self), let express = CurlMulti(for: self)
        else { return nil }
        let made = RouteConnections.Sets(
            shared: shared, express: express,
            background: yields == nil ? nil : CurlMulti(for: self))
        let idle = configuration.idleConnections
        let dropped = connections.insert(made, of: route, idle: idle) { sets in
            attached.values.contains { transfer in
                sets.all.contains { transfer.multi === $0 }
            }
        }
        // One of them may be the caller, since its transfer has just ended.
        if !dropped.isEmpty { loop.atRoundEnd { _ in withExtendedLifetime(dropped) {} } }
        return made
    }
}
