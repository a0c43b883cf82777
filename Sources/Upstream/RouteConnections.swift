import Reactor

/// The connections of each way to origins.
///
/// Connections of different ways are never mixed: libcurl 7.88 would take one that was bound to an
/// interface for a transfer that is not, and keeps fixed addresses with all connections of a set.
struct RouteConnections {
    /// Those of one way.
    struct Sets {
        let shared: CurlMulti
        let express: CurlMulti
    }

    /// Those of the plain way, which are looked up for nearly every transfer.
    private var plain: Sets?
    private var sets: [OriginRoute: Sets] = [:]

    /// More than these, and those that no transfer uses are closed.
    private static let most = 16

    subscript(route: OriginRoute) -> Sets? { route.isPlain ? plain : sets[route] }

    /// Takes in those of another way, and divides among all what may be kept idle.
    ///
    /// - Returns: what made room for it.
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
            each.shared.keepIdle(share)
            each.express.keepIdle(share)
        }
        return dropped
    }
}

extension UpstreamClient {
    /// The connections of a way to origins; nil when libcurl cannot start, or after the end.
    func connectionSets(of route: OriginRoute) -> RouteConnections.Sets? {
        if let known = connections[route] { return known }
        guard !isShutDown,
            let shared = CurlMulti(loop: loop, owner: self, configuration: configuration),
            let express = CurlMulti(loop: loop, owner: self, configuration: configuration)
        else { return nil }
        let made = RouteConnections.Sets(shared: shared, express: express)
        let idle = configuration.idleConnections
        let dropped = connections.insert(made, of: route, idle: idle) { sets in
            attached.values.contains { $0.multi === sets.shared || $0.multi === sets.express }
        }
        // One of them may be what calls us, since its transfer has just ended.
        if !dropped.isEmpty { loop.atRoundEnd { _ in withExtendedLifetime(dropped) {} } }
        return made
    }
}
