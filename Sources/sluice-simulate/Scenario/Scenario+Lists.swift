// Scenes about stored live playlists that are older than a playlist served since.

extension Scenario {
    /// After a restart the stored playlist cannot be opened at first: it must not count as one that
    /// was just received.
    func runUnopened() {
        let live = LiveStream(name: "unopened", window: 5, first: 0)
        cdn.add(live)
        let probe = ListProbe(live, checks)
        players.append(probe)
        probe.ask()
        world.run(for: 5 * World.second)
        manager.restart()
        world.run(for: 12 * World.second)
        disk.failsNextOpen = true
        let asked = world.now
        probe.ask()
        world.run(for: 5 * World.second)
        disk.failsNextOpen = false
        let least = live.last(at: asked - LiveStream.target - World.second)
        if probe.newest ?? -1 < least {
            world.fault(
                .liveFresh,
                "the list ends at \(probe.newest ?? -1) after a restart, the CDN has had \(least)"
            )
        }
    }

    /// The CDN answers two playlists with errors only: a no-store playlist must not leave an older
    /// one in its place, and none is served for longer than three target durations.
    func runOutlived() {
        let kept = LiveStream(name: "kept", window: 5, first: 0)
        let unkept = LiveStream(name: "unkept", window: 5, first: 0)
        cdn.add(kept)
        cdn.add(unkept)
        let viewer = LiveViewer(kept, until: world.now + 40 * World.second, checks)
        let probe = ListProbe(unkept, checks)
        players += [viewer, probe]
        viewer.start()
        probe.ask()
        world.run(for: LiveStream.target + World.second)
        unkept.control = "no-store"
        probe.ask()
        world.run(for: World.second)
        let told = probe.newest ?? 0
        (kept.isFailing, unkept.isFailing) = (true, true)
        for _ in 0..<6 {
            world.run(for: 2 * World.second)
            probe.ask()
        }
        world.run(for: 20 * World.second)
        if let newest = probe.newest, newest < told {
            world.fault(.liveForward, "a list ends at \(newest) after \(told), which was not kept")
        }
        viewer.stop()
    }
}

/// Requests a live playlist from time to time.
private final class ListProbe: Player {
    private let live: LiveStream
    /// The number of the last segment in the most recent playlist.
    private(set) var newest: Int?
    private var isBusy = false

    init(_ live: LiveStream, _ checks: Checks) {
        self.live = live
        super.init("probe of \(live.name)", checks)
    }

    /// Sends a request, unless the previous one is still open.
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
