// The daemon under settings other than the ordinary ones: policies, and a mount that reloads bring and take.
import DaemonService

/// The configurations of a run: the plan's, and those that differ from it in a few settings.
struct Configurations {
    let ordinary, offline, refresh: DaemonConfiguration
    /// The ordinary one with another mount, `/more/`, as after an edit of the file.
    let extended: DaemonConfiguration
}

extension Scenario {
    /// Restarts the daemon with each policy while nothing else happens, and at last with its own.
    func runPolicies() {
        // At least the time after which a power cut takes nothing.
        world.run(for: 60 * World.second)
        let alone = plan.parts.has("offline") ? Self.alone : []
        let paths = Set(complete.flatMap(\.stored) + alone).sorted()
        runForbidden(paths)
        runRefreshed(paths)
        restart(with: configurations.ordinary, "its own")
    }

    /// Adds a mount and takes it away again by reloads while the daemon runs.
    func runReloaded() {
        let file = OriginFile("/scenes/reloaded.ts", size: 30_000)
        cdn.add(file)
        for (configuration, status) in [
            (configurations.ordinary, 404), (configurations.extended, 200),
            (configurations.extended, 200), (configurations.ordinary, 404),
        ] {
            daemon.reload(configuration)
            world.run(for: World.second)
            let response = response(to: "/more\(file.path)")
            if response.status != status {
                world.fault(
                    .status, "reload: \(response.status) under /more/, and not \(status)")
            }
            if status == 200, !checks.media(file.path, .whole, response) {
                world.fault(.answered, "reload: not answered whole under /more/")
            }
        }
    }

    private func restart(with configuration: DaemonConfiguration, _ name: String) {
        guard world.failure == nil else { return }
        world.note("policy: \(name)")
        manager.restart(with: configuration)
    }

    /// Under `offline`, what is stored is served, anything else is refused, and the CDN sees nothing.
    private func runForbidden(_ paths: [String]) {
        restart(with: configurations.offline, "offline")
        // Requests of the time before have arrived by now.
        let before = cdn.requests
        fetchAll(paths, oracle: .offline)
        guard world.failure == nil else { return }
        let file = OriginFile("/scenes/never-asked.ts", size: 10_000)
        cdn.add(file)
        let status = response(to: Player.entry(file.path)).status
        if status != 504 {
            world.fault(.status, "policy offline: \(status) for what is not stored, not 504")
        }
        world.run(for: 30 * World.second)
        if cdn.requests != before {
            world.fault(
                .budget, "policy offline: the CDN saw \(cdn.requests - before) requests")
        }
    }

    /// Under `refresh`, the CDN is asked about everything that is served, and what is stored is
    /// served once it does not answer.
    private func runRefreshed(_ paths: [String]) {
        restart(with: configurations.refresh, "refresh")
        let before = cdn.requests
        fetchAll(paths, oracle: .answered)
        if cdn.requests - before < paths.count {
            world.fault(
                .bytes,
                "policy refresh: the CDN saw \(cdn.requests - before) requests for \(paths.count) stored files"
            )
        }
        guard world.failure == nil else { return }
        let file = OriginFile("/scenes/partly.ts", size: 200_000)
        cdn.add(file)
        let stored = status(of: file, 0..<1_000)
        cdn.beginOutage()
        // What is stored of it may be served stale, and has none of these bytes. At first, since the
        // origin is not known to be away yet.
        let missing = status(of: file, 150_000..<151_000)
        fetchAll(paths, oracle: .offline)
        if stored != 206 || ![502, 504].contains(missing) {
            world.fault(
                .answered,
                "policy refresh: \(stored) for a range, and \(missing) for one that is not stored")
        }
        cdn.endOutage()
    }

    /// Returns the status of the response to a request for a range.
    private func status(of file: OriginFile, _ range: Range<Int>) -> Int {
        response(to: Player.entry(file.path), fields: Checks.Asked(range).fields).status
    }
}
