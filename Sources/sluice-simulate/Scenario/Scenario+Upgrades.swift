// Upgrades: processes follow each other on a socket that stays open.

extension Scenario {
    /// Stops and starts the daemon several times on a socket of the service manager while players go
    /// on: no request fails.
    func runUpgrades() {
        manager.stop()
        daemon.listen(on: Self.sharedPort)
        daemon.start()
        world.run(for: 2 * World.second)
        let files = (0..<6).map { number in
            OriginFile(
                "/scenes/upgraded\(number).ts", size: 3_000 + 17_000 * number,
                isChunked: number % 2 == 1)
        }
        for file in files { cdn.add(file) }
        let end = world.now + 40 * World.second
        let requesters = (0..<3).map { _ in
            SteadyRequester(files, until: end, checks, port: Self.sharedPort)
        }
        players += requesters as [Player]
        for requester in requesters { requester.start() }
        for _ in 0..<3 where world.failure == nil {
            world.run(for: random.milliseconds(1...8_000))
            manager.stop()
            world.run(for: random.milliseconds(0...2_000))
            daemon.start()
        }
        world.run(until: end + 60 * World.second) { requesters.allSatisfy { $0.isDone } }
        for requester in requesters where !requester.isDone {
            world.fault(.answered, "\(requester.name): not answered after an upgrade")
        }
        manager.stop()
        daemon.stopListening()
        guard world.failure == nil else { return }
        manager.start()
    }

    private static let sharedPort: UInt16 = 9_002
}

/// Requests files for some time, with HTTP/1.1 each on a connection of its own; none may fail.
private final class SteadyRequester: Player {
    private let files: [OriginFile]
    private let until: Int64
    private let port: UInt16
    private var current: HTTP1Client?

    init(
        _ files: [OriginFile], until: Int64, _ checks: Checks, port: UInt16
    ) {
        self.files = files
        self.until = until
        self.port = port
        super.init("steady requester", checks, port: port)
    }

    override func start() { next() }

    override func stop() {
        super.stop()
        current?.leave()
    }

    private func next() {
        guard !wasStopped, !isDone else { return }
        guard world.now < until else { return end() }
        let file = random.pick(files)
        // On its connection come requests of all processes, each until it says otherwise.
        if client is HTTP2Client { return request(file, client) }
        let client = HTTP1Client(world, port: port)
        current = client
        // Of some requests the network delivers the connection first.
        guard random.chance(30), client.connect() else { return request(file, client) }
        world.after(random.milliseconds(1...200)) { [weak self] in
            guard let self else { return }
            if !client.isConnected, !wasStopped {
                world.fault(
                    .answered,
                    "\(name): a connection was closed while its first request was on the way")
            }
            request(file, client)
        }
    }

    private func request(_ file: OriginFile, _ client: DaemonClient) {
        client.get(Self.entry(file.path)) { [weak self, weak client] response in
            guard let self, !wasStopped else { return }
            world.note("\(name): \(file.path) \(response.status) \(response.body.count)")
            if !checks.media(file.path, .whole, response) {
                world.fault(
                    .answered,
                    "\(name): an upgrade cost a request for \(file.path): \(response.status)")
            }
            world.after(random.milliseconds(0...300)) { [weak self] in
                if client is HTTP1Client { client?.leave() }
                self?.next()
            }
        }
    }
}
