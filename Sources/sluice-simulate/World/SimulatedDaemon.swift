// The daemon in the world: the code of `sluice serve`, on fibers.
import ArgumentParser
import CSimulation
import DaemonService
import Glibc
import Logging
import Posix
import Synchronization

/// One folder, and the successive processes that use it.
final class SimulatedDaemon {
    /// Where it listens, unless it inherits a socket.
    static let port: UInt16 = 9_000

    private let world: World
    /// The path of the folder.
    let cacheFolder: String
    /// Of the processes to come.
    var configuration: DaemonConfiguration
    private let reread = RereadConfiguration()
    /// The number of disk errors so far.
    var diskFaults: () -> Int = { 0 }
    /// The socket that the processes to come inherit in place of their own; -1 for none.
    private var listener: (descriptor: CInt, port: UInt16) = (-1, 0)
    /// The number of the running process, which its fibers carry.
    private(set) var process = 0
    /// When the running process started.
    private(set) var startedAt: Int64 = 0

    init(_ world: World, _ configuration: DaemonConfiguration) {
        self.world = world
        self.configuration = configuration
        cacheFolder = configuration.cacheFolder
        csim_disk_follow(cacheFolder)
    }

    var isRunning: Bool { csim_fibers(Int32(process)) > 0 }
    var fibers: Int { Int(csim_fibers(Int32(process))) }
    var sockets: Int { Int(csim_sockets(Int32(process))) }

    /// Starts a process, unless one runs.
    func start() {
        guard !isRunning else { return }
        process += 1
        startedAt = world.now
        world.mark("start")
        world.step(.started)
        world.note("daemon: process \(process) starts")
        let faults = diskFaults()
        reread.configuration.withLock { $0 = configuration }
        spawn(Int32(process)) { [diskFaults] in diskFaults() != faults }
    }

    /// Starts a second process on the folder while the first one runs.
    ///
    /// - Returns: the number of its threads 10 s later; it must have refused.
    func startSecond() -> Int {
        let number = Int32(process + 1_000)
        world.note("daemon: a second process starts")
        spawn(number) { true }
        world.run(for: 10 * World.second)
        return Int(csim_fibers(number))
    }

    /// Runs the daemon's code as the process of a number, which may refuse to run while the closure
    /// returns true.
    private func spawn(_ number: Int32, mayRefuse: @escaping () -> Bool) {
        // Never released: killed fibers do not unwind.
        let work = Unmanaged.passRetained(
            Process(configuration, world, listener, reread, mayRefuse: mayRefuse))
        csim_spawn(
            number,
            { raw in
                guard let raw else { return }
                Unmanaged<Process>.fromOpaque(raw).takeUnretainedValue().run()
            }, work.toOpaque())
    }

    /// Opens a socket that the processes to come inherit, as from a service manager.
    func listen(on port: UInt16) {
        listener = (csim_listen(port), port)
        if listener.descriptor < 0 {
            world.fault(.startsAndStops, "no socket to inherit: \(errno)")
        }
    }

    /// Closes that socket.
    func stopListening() {
        close(listener.descriptor)
        listener = (-1, 0)
    }

    /// Has the process read its configuration again, which has changed.
    func reload(_ changed: DaemonConfiguration) {
        guard isRunning else { return }
        world.mark("reload")
        world.note("daemon: SIGHUP")
        configuration = changed
        reread.configuration.withLock { $0 = changed }
        csim_signal(Int32(process), SIGHUP)
    }

    /// Asks the process to stop, as SIGTERM does.
    func terminate() {
        world.mark("terminate")
        world.step(.terminated)
        world.note("daemon: SIGTERM")
        csim_signal(Int32(process), SIGTERM)
    }

    /// Ends the process immediately.
    ///
    /// The files get new inodes: SQLite keys its state of open files by inode, and that state
    /// survives in this program's memory, unlike after the end of a real process.
    func kill(cuttingPower seed: UInt64? = nil) {
        guard isRunning else { return }
        world.step(seed == nil ? .killed : .powerCut)
        world.mark(seed == nil ? "kill" : "power cut")
        world.note(seed == nil ? "daemon: SIGKILL" : "power cut")
        csim_kill(Int32(process))
        if let seed {
            csim_power_cut(cacheFolder, seed)
            world.lastPowerCut = world.now
        }
        csim_disk_settle()
        let copy = cacheFolder + ".copy"
        copyFolder(cacheFolder, to: copy)
        removeTree(cacheFolder)
        _ = rename(copy, cacheFolder)
    }

    private final class Process {
        let configuration: DaemonConfiguration
        let world: World
        let listener: (descriptor: CInt, port: UInt16)
        let reread: RereadConfiguration
        /// Whether the disk has failed since the start, so that the daemon may refuse to run.
        let mayRefuse: () -> Bool

        init(
            _ configuration: DaemonConfiguration, _ world: World,
            _ listener: (descriptor: CInt, port: UInt16), _ reread: RereadConfiguration,
            mayRefuse: @escaping () -> Bool
        ) {
            self.configuration = configuration
            self.world = world
            self.listener = listener
            self.reread = reread
            self.mayRefuse = mayRefuse
        }

        func run() {
            do {
                let configuration = try inheriting()
                let daemon = try Daemon(configuration, log: Logger(label: "sluice"))
                try daemon.run(
                    rereading: { [reread] in
                        reread.configuration.withLock { $0 } ?? configuration
                    }, setLogLevel: { _ in })
                world.note("daemon: stopped")
            } catch  where mayRefuse() {
                world.note("daemon: refused to start, \(error)")
            } catch {
                world.fault(.startsAndStops, "the daemon ended with \(error)")
            }
        }

        private func inheriting() throws -> DaemonConfiguration {
            guard listener.descriptor >= 0 else { return configuration }
            var inheriting = configuration
            let descriptor = OwnedDescriptor(
                taking: csim_inherit(listener.descriptor, listener.port))
            inheriting.inherited = [try InheritedListener(taking: descriptor, name: "")]
            inheriting.addresses = []
            return inheriting
        }
    }
}

/// What a process finds when it reads its configuration again.
private final class RereadConfiguration: Sendable {
    let configuration = Mutex<DaemonConfiguration?>(nil)
}
