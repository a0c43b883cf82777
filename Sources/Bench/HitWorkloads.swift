/// Hits, large and small, of proxies that have stored everything.
enum HitWorkloads {
    // MARK: Large

    private static func largePaths(_ round: Round) -> [String] {
        (0..<round.options.times(100)).map { round.path("large-\($0)", 2 << 20) }
    }

    static func prepareLarge(_ round: Round) throws { try fill(round, largePaths(round)) }

    /// 2 MB segments from the store.
    static func large(_ round: Round) throws {
        let paths = largePaths(round)
        for connections in [1, 8, 64] where round.needs("large.c\(connections)") {
            let (result, processor) = try round.measured(
                paths, LoadShape(connections: connections, seconds: round.options.loadSeconds))
            let id = "large.c\(connections)"
            round.addTransfer(id, result, processor)
            round.add("\(id).first", quantile(result.firstBytes, 0.99) * 1e3)
        }
    }

    // MARK: Small

    private static func smallPaths(_ round: Round) -> [String] {
        (0..<64).map { round.path("small-\($0)", 2_048) }
    }

    static func prepareSmall(_ round: Round) throws { try fill(round, smallPaths(round)) }

    /// 2 KB answers from the store, on kept connections and on new ones.
    static func small(_ round: Round) throws {
        let paths = smallPaths(round)
        for (id, keeps) in [("keep", true), ("close", false)] where round.needs("small.\(id)") {
            let shape = LoadShape(
                connections: 64, keepsAlive: keeps, seconds: round.options.loadSeconds)
            let (result, processor) = try round.measured(paths, shape)
            round.addRequests("small.\(id)", result, processor)
        }
    }

    /// Requests everything until the origin gets no more requests, three times at most.
    private static func fill(_ round: Round, _ paths: [String]) throws {
        for _ in 0..<3 {
            let before = try round.bench.originNumber("requests")
            _ = try round.load(paths, LoadShape(requests: paths.count, connections: 4))
            if try round.bench.originNumber("requests") == before { return }
        }
    }
}
