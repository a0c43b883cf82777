// Scenes about live lists that the store has, and that are older than what was told.

extension Scenario {
    /// Live lists around a restart and errors, of which it can be told exactly how old they may be.
    func runLists() {
        guard world.failure == nil, plan.keepsAll else { return }
        if plan.parts.has("unopened") { runUnopened() }
        if plan.parts.has("outlived") { runOutlived() }
    }

    /// After a restart the stored list cannot be opened at once: it is not taken for one that has just
    /// come.
    private func runUnopened() {
        let live = LiveStream(name: "unopened", window: 5, first: 0)
        cdn.add(live)
        let probe = ListProbe(live, world, checks)
        players.append(probe)
        probe.ask()
        world.run(until: world.now + 5 * World.second)
        startAnew()
        world.run(until: world.now + 12 * World.second)
        failsNextOpen = true
        let asked = world.now
        probe.ask()
        world.run(until: world.now + 5 * World.second)
        failsNextOpen = false
        let least = live.last(at: asked - LiveStream.target - World.second)
        if probe.newest ?? -1 < least {
            world.fault(
                .liveFresh,
                "the list ends at \(probe.newest ?? -1) after a restart, the CDN has had \(least)"
            )
        }
    }

    /// The CDN has only errors for two lists: what it let nobody keep does not leave an older list in its
    /// place, and nothing is served for longer than three target durations.
    private func runOutlived() {
        guard world.failure == nil else { return }
        let kept = LiveStream(name: "kept", window: 5, first: 0)
        let unkept = LiveStream(name: "unkept", window: 5, first: 0)
        cdn.add(kept)
        cdn.add(unkept)
        let viewer = LiveViewer(
            kept, until: world.now + 40 * World.second, world, checks, port: 9_000)
        let probe = ListProbe(unkept, world, checks)
        players += [viewer, probe]
        viewer.start()
        probe.ask()
        world.run(until: world.now + LiveStream.target + World.second)
        unkept.control = "no-store"
        probe.ask()
        world.run(until: world.now + World.second)
        let told = probe.newest ?? 0
        (kept.isFailing, unkept.isFailing) = (true, true)
        for _ in 0..<6 {
            world.run(until: world.now + 2 * World.second)
            probe.ask()
        }
        world.run(until: world.now + 20 * World.second)
        if let newest = probe.newest, newest < told {
            world.fault(.liveForward, "a list ends at \(newest) after \(told), which was not kept")
        }
        viewer.stop()
    }
}

/// Asks for a live list now and then.
private final class ListProbe: Player {
    private let live: LiveStream
    /// The number of the last segment of the list that came last.
    private(set) var newest: Int?
    private var isBusy = false

    init(_ live: LiveStream, _ world: World, _ checks: Checks) {
        self.live = live
        super.init("probe of \(live.name)", world, checks, port: 9_000)
    }

    /// Asks, unless the last answer is still to come.
    func ask() {
        guard !isBusy else { return }
        isBusy = true
        fetch(
            Self.entry(live.list), check: { _ in true },
            then: { [weak self] response in
                self?.isBusy = false
                let isOffline = response.first("cache-status")?.contains("offline") == true
                guard response.status == 200, response.isWhole, !isOffline,
                    let list = PlayerList(response.body)
                else { return }
                self?.newest = list.segments.last?.number
            })
    }
}
