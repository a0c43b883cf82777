// What a power cut may lose, and what it must not.

extension Scenario {
    /// Files stored while nothing else is, so that no other write syncs them; one that arrives in
    /// one piece is written in one piece with its head.
    static let alone = ["/scenes/alone-short.ts", "/scenes/alone.ts"]

    func storeAlone() {
        for (path, size) in zip(Self.alone, [5_000, 50_000]) {
            guard world.failure == nil else { return }
            let file = OriginFile(path, size: size, control: "max-age=86400")
            cdn.add(file)
            fetchAll([path], oracle: .answered)
            world.run(for: 60 * World.second)
        }
    }

    /// Cuts the power soon after many bytes were stored in a folder that had been closed cleanly:
    /// what did not reach the disk is missing afterwards and must not be served.
    func runTorn() {
        manager.restart()
        let paths = (0..<10).map { "/scenes/torn\($0).ts" }
        for (number, path) in paths.enumerated() {
            let file = OriginFile(
                path, size: number % 2 == 0 ? 2_000 + 1_500 * number : 20_000 + 4_000 * number,
                control: "max-age=86400")
            cdn.add(file)
        }
        fetchAll(paths, oracle: .answered)
        world.run(for: random.seconds(0...8))
        guard world.failure == nil else { return }
        manager.crash(cuttingPower: random.next())
        fetchAll(paths, oracle: .durability)
    }

    /// Starts a second daemon on the folder: it refuses, and the first one serves on.
    func runSecond() {
        let file = OriginFile("/scenes/second.ts", size: 20_000)
        cdn.add(file)
        fetchAll([file.path], oracle: .answered)
        guard world.failure == nil else { return }
        if daemon.startSecond() > 0 {
            return world.fault(.startsAndStops, "two daemons run on one folder")
        }
        fetchAll([file.path], oracle: .answered)
        if file.seen.count > 1 {
            world.fault(.singleFetch, "a second daemon on the folder cost the first one a file")
        }
    }

    /// Sends a request on a connection, or a stream, of its own and waits for a minute.
    ///
    /// - Returns: the response; with status 0 if there is none by then.
    func response(to target: String, fields: [(String, String)] = []) -> PlayerResponse {
        let client = world.clients.make()
        var received: PlayerResponse?
        client.get(target, fields: fields) { received = $0 }
        world.run(for: 60 * World.second) { received != nil }
        client.leave()
        return received ?? PlayerResponse()
    }

    /// Requests each file once, and reports those that are not answered.
    func fetchAll(_ paths: [String], oracle: Oracle) {
        let begin = world.now
        let readers = paths.map { OfflineReader(path: $0, checks) }
        players += readers as [Player]
        for reader in readers { reader.start() }
        world.run(until: begin + 200 * World.second) { readers.allSatisfy { $0.isDone } }
        for reader in readers where !reader.isDone {
            world.fault(oracle, "\(reader.name): not answered in calm weather")
        }
    }
}

/// Requests a stored file once.
final class OfflineReader: Player {
    private let path: String

    init(path: String, _ checks: Checks) {
        self.path = path
        super.init("offline reader of \(path)", checks)
    }

    override func start() {
        fetchWhole(path, Self.entry(path)) { [weak self] in self?.end() }
    }
}
