// The last phases of a run: the CDN is unreachable, the players have left, the daemon stops.

extension Scenario {
    // MARK: Without the network

    /// Checks that what was played to the end can be played again while the CDN is unreachable.
    func runOffline() {
        world.run(for: 60 * World.second)
        storeAlone()
        playBeginning()
        cdn.beginOutage()
        readOffline(.offline)
        // Data stored for a minute and a half also survives a power cut.
        world.run(for: 30 * World.second)
        guard world.failure == nil else { return }
        manager.crash(cuttingPower: random.next())
        readOffline(.durability)
        cdn.endOutage()
    }

    /// A film of which only the beginning is stored.
    private static let begun = Film(name: "begun", variants: 1, segments: 60)

    private func playBeginning() {
        guard world.failure == nil else { return }
        cdn.add(Self.begun)
        let player = ListPlayer(Self.begun, most: 2, checks)
        players.append(player)
        player.start()
        world.run(for: 200 * World.second) { player.isDone }
        if !player.isDone { world.fault(.answered, "\(player.name): not answered in calm weather") }
        // Connections that are in use when the outage begins go on: what is fetched ahead ends first.
        world.run(for: 60 * World.second)
    }

    private func readOffline(_ oracle: Oracle) {
        guard world.failure == nil else { return }
        let begin = world.now
        let paths = Set(complete.flatMap(\.stored) + Self.alone).sorted()
        let readers =
            paths.map { OfflineReader(path: $0, checks) }
            + [ListPlayer(Self.begun, checks)]
            + extras.beginOffline() + additions.flatMap { $0.beginOffline() }
        for reader in readers { reader.start() }
        world.run(until: begin + 400 * World.second) { readers.allSatisfy { $0.isDone } }
        for reader in readers where !reader.isDone {
            reader.stop()
            world.fault(oracle, "\(reader.name): stored, and not served without the network")
        }
    }

    // MARK: No players left

    func runEmpty() {
        guard world.failure == nil else { return }
        for player in players + complete { player.stop() }
        let aftermath = additions.map(\.aftermath).max() ?? 0
        world.run(for: max(90 * World.second, aftermath))
        let client = HTTP1Client(world)
        var figures = ""
        var told = 0
        client.get("/metrics") { figures = String(decoding: $0.body, as: UTF8.self) }
        world.run(for: 5 * World.second)
        for line in figures.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            guard parts.count == 2, Self.atRest.contains(parts[0]) else { continue }
            told += 1
            if parts[1] != "0" { world.fault(.returnsToZero, "\(line) with nobody there") }
        }
        checkBudget()
        if told < Self.atRest.count {
            world.fault(.answered, "\(told) of the figures that must be 0 are answered")
        }
        client.leave()
        if daemon.sockets > socketsAtRest + Self.idleConnections {
            world.fault(
                .returnsToZero,
                "\(daemon.sockets) sockets are open with nobody there, \(socketsAtRest) at the start"
            )
        }
    }

    /// Metrics that are 0 while there are no requests.
    private static let atRest: Set<Substring> = [
        "sluice_slots_in_use", "sluice_express_in_use", "sluice_held_in_use",
        "sluice_transfers_waiting",
        "sluice_ahead_running",
    ]

    /// Checks that the players can have caused all requests to the CDN (`OriginAllowance`).
    private func checkBudget() {
        let asked = (players + complete).reduce(0) { $0 + $1.client.requests }
        let most =
            25 * (asked + 10) + Int(world.now / (2 * World.second))
            + additions.reduce(0) { $0 + $1.allowance }
        if cdn.requests > most {
            world.fault(.budget, "\(cdn.requests) requests to the CDN for \(asked) of players")
        }
    }

    /// The number of connections to origins that may stay open.
    private static let idleConnections = 32

    func runStop() {
        guard world.failure == nil else { return }
        manager.stopForGood()
        guard world.failure == nil else { return }
        if daemon.fibers > 0 {
            world.fault(.startsAndStops, "\(daemon.fibers) threads are left 60 s after SIGTERM")
        }
    }
}

/// Plays what a film's playlist names now, in order.
private final class ListPlayer: Player {
    private let film: Film
    private let most: Int

    /// - Parameters:
    ///   - film: the film.
    ///   - most: the number of segments after which it ends.
    ///   - checks: the oracles about each response.
    init(_ film: Film, most: Int = .max, _ checks: Checks) {
        (self.film, self.most) = (film, most)
        super.init("player of what \(film.name) names", checks)
    }

    override func start() {
        fetchList(Self.entry(film.list(0))) { [weak self] list in
            guard let self else { return }
            play(list.segments.prefix(most))
        }
    }

    private func play(_ segments: ArraySlice<PlayerList.Segment>) {
        guard let next = segments.first else { return end() }
        var isThere = false
        fetch(
            next.url,
            check: { [weak self] response in
                guard let self else { return true }
                isThere = checks.media(next.path, .whole, response)
                return isThere || failures > 1
            },
            // The list may be from before the outage; whoever opens it again gets one that can be
            // played.
            then: { [weak self] _ in isThere ? self?.play(segments.dropFirst()) : self?.start() })
    }
}
