// The service manager of the simulated machine: it stops, restarts and watches the daemon.
import DaemonService

/// Keeps the daemon running, and ends its processes in the ways that a machine does.
///
/// Calls that start a process return when it has had time to open its folder; calls that stop one
/// wait for its end, but not for ever.
final class ServiceManager {
    private let world: World
    private let daemon: SimulatedDaemon
    /// False once the daemon is to stay stopped.
    private var wantsDaemon = true
    /// When the daemon was first found stopped; nil while it runs.
    private var stoppedAt: Int64?

    init(_ world: World, _ daemon: SimulatedDaemon) {
        self.world = world
        self.daemon = daemon
    }

    /// Starts the daemon again, from now on, when it has been stopped for six seconds.
    func watch() {
        guard wantsDaemon else { return }
        if let stopped = stoppedAt, daemon.fibers == 0, world.now - stopped > 6 * World.second {
            stoppedAt = nil
            daemon.start()
        } else if daemon.fibers == 0 {
            stoppedAt = stoppedAt ?? world.now
        } else {
            stoppedAt = nil
        }
        world.after(World.second) { [unowned self] in watch() }
    }

    /// Stops the daemon cleanly and starts it again.
    ///
    /// - Parameter configuration: the configuration from now on; nil to leave it as it is.
    func restart(with configuration: DaemonConfiguration? = nil) {
        if let configuration { daemon.configuration = configuration }
        stop(within: 20 * World.second)
        world.run(for: World.second)
        start()
    }

    /// Kills the daemon and starts it again.
    ///
    /// - Parameter seed: decides what a power cut takes; nil if the power stays on.
    func crash(cuttingPower seed: UInt64? = nil) {
        daemon.kill(cuttingPower: seed)
        start()
    }

    /// Starts the daemon.
    func start() {
        daemon.start()
        world.run(for: 5 * World.second)
    }

    /// Stops the daemon cleanly.
    ///
    /// - Parameter limit: the longest wait for its end.
    func stop(within limit: Int64 = 60 * World.second) {
        daemon.terminate()
        world.run(for: limit) { daemon.fibers == 0 }
    }

    /// Stops the daemon for the rest of the run.
    func stopForGood() {
        wantsDaemon = false
        stop()
    }
}
