// The origin, the disk and the daemon of a soak, what disturbs them, and what players complain of.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// What keeps a daemon from doing its work for some time.
enum SoakDisturbance: String, Sendable, CaseIterable {
    /// The daemon ended or was killed, and is started again.
    case restart
    /// The origin accepts no connection.
    case outage
    /// The disk of the cache has no room left.
    case fullDisk = "full disk"
}

/// What players saw in a soak.
struct SoakTally: Sendable {
    var answers = 0
    var bytes = 0
    var hits = 0
    /// Completed plays, orders and reloads, by what they were.
    var done: [String: Int] = [:]
    /// Failures while something was disturbed that explains them.
    var excused: [String: Int] = [:]
    var faults: [String] = []
}

/// The origin, the daemon on a small disk, and the disturbances of a soak.
final class SoakWorld: Sendable {
    private struct Interval {
        let kind: SoakDisturbance
        let start: ContinuousClock.Instant
        var end: ContinuousClock.Instant?
    }

    private struct State {
        var intervals: [Interval] = []
        var isQuiet = false
        var isOver = false
        var atWork = 0
        var tally = SoakTally()
    }

    let cdn = FixtureCDN()
    let catalogue: SoakCatalogue
    /// The disk of the cache, if it is one of its own; nil without the right to mount one.
    let disk: MountedDisk?
    let cacheFolder: String
    private let temporary: TemporaryFolder
    private let arguments: [String]
    private let running: Shared<DaemonProcess>
    private let state = Mutex(State())

    /// How long after a disturbance a failure may still follow from it: backed-off origins, players
    /// that began before.
    static let settling: Duration = .seconds(20)
    static let cacheMegabytes = 100
    private static let diskMegabytes = 220

    init() throws {
        temporary = try TemporaryFolder()
        disk = geteuid() == 0 ? try? MountedDisk(megabytes: Self.diskMegabytes) : nil
        cacheFolder = disk.map { $0.path + "/cache" } ?? temporary.makeFolder("cache")
        try cdn.start()
        catalogue = SoakCatalogue(cdn)
        arguments = [
            "serve", "--port", "0", "--allow-private", "--cache-dir", cacheFolder, "--min-free",
            "0", "--cache-size", "\(Self.cacheMegabytes)MB", "--log-level", "error", "--mount",
            "/changing/=\(cdn.url("/mount/"))",
        ]
        running = Shared(try DaemonProcess(arguments))
    }

    deinit {
        running.value.kill(SIGKILL)
        _ = try? running.value.waitForExit()
        cdn.stop()
    }

    var daemon: DaemonProcess { running.value }
    var tally: SoakTally { state.withLock { $0.tally } }
    var isOver: Bool { state.withLock { $0.isOver } }

    // MARK: Disturbances

    /// Runs `body` while failures of `kind` are expected.
    func disturb(_ kind: SoakDisturbance, _ body: () throws -> Void) rethrows {
        let index = state.withLock {
            $0.intervals.append(Interval(kind: kind, start: .now))
            return $0.intervals.count - 1
        }
        defer { state.withLock { $0.intervals[index].end = .now } }
        try body()
    }

    /// Whether one of `kinds` was going on at some time since `start`, or shortly before.
    func wasDisturbed(by kinds: [SoakDisturbance], since start: ContinuousClock.Instant) -> Bool {
        state.withLock {
            $0.intervals.contains { interval in
                kinds.contains(interval.kind)
                    && interval.end.map { $0 + Self.settling > start } ?? true
            }
        }
    }

    /// Whether one of `kinds` is going on.
    func isDisturbed(by kinds: [SoakDisturbance]) -> Bool {
        state.withLock { $0.intervals.contains { $0.end == nil && kinds.contains($0.kind) } }
    }

    /// Ends the daemon by a signal and starts it again on what it left.
    func restart(_ signal: Int32) throws {
        let old = daemon
        try disturb(.restart) {
            old.kill(signal)
            let exit = try old.waitForExit(within: .seconds(30))
            if signal == SIGTERM, exit != .code(0) { note(fault: "SIGTERM ended it with \(exit)") }
            // Once more at once, before it may be ready.
            if signal == SIGKILL {
                let hasty = try ChildProcess([DaemonProcess.builtBinary()] + arguments)
                usleep(60_000)
                hasty.kill(SIGKILL)
                _ = hasty.waitForExit()
            }
            let next = try DaemonProcess(arguments, within: .seconds(30))
            running.update { $0 = next }
        }
    }

    /// Takes the origin away for some time.
    func outage(_ duration: Duration) throws {
        try disturb(.outage) {
            cdn.stop()
            pause(duration)
            try cdn.start()
        }
    }

    /// Fills the disk for some time, if it is one of its own.
    func fillDisk(_ duration: Duration) throws {
        guard let disk else { return }
        let filler = disk.path + "/filler"
        disturb(.fullDisk) {
            let file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            defer { unlink(filler) }
            defer { close(file) }
            let block = [UInt8](repeating: 1, count: 1 << 16)
            let end = ContinuousClock.now + duration
            // What eviction frees is taken, too.
            while .now < end {
                while block.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) > 0 {}
                usleep(50_000)
            }
        }
    }

    /// Waits, unless the soak is over.
    func pause(_ duration: Duration) { _ = eventually(within: duration) { isOver } }

    // MARK: Players

    /// Starts a player that goes on, round after round, until the soak is over; `make` makes the
    /// rounds on the player's thread.
    func start(
        _ name: String, _ make: @escaping @Sendable () -> () throws -> Void
    ) -> Background<Void> {
        Background { [self] in
            let round = make()
            while !isOver {
                let mayWork = state.withLock {
                    guard !$0.isQuiet else { return false }
                    $0.atWork += 1
                    return true
                }
                guard mayWork else {
                    // Until the world is loud again, or over.
                    usleep(20_000)
                    continue
                }
                defer { state.withLock { $0.atWork -= 1 } }
                let start = ContinuousClock.now
                do { try round() } catch let failure as SoakComplaint {
                    judge(name, failure, since: start)
                }
            }
        }
    }

    private func judge(_ name: String, _ complaint: SoakComplaint, since: ContinuousClock.Instant) {
        if wasDisturbed(by: complaint.excuses, since: complaint.since ?? since) {
            state.withLock { $0.tally.excused[name, default: 0] += 1 }
            pause(.milliseconds(200))
        } else {
            note(fault: "\(name): \(complaint.text)")
        }
    }

    func note(fault: String) {
        state.withLock { $0.tally.faults.append(fault) }
        print("soak: FAULT \(fault)")
    }

    func count(_ what: String) { state.withLock { $0.tally.done[what, default: 0] += 1 } }

    func count(_ answer: PlayerResponse) {
        let isHit = answer.head["Cache-Status"]?.contains("; hit") == true
        state.withLock {
            $0.tally.answers += 1
            $0.tally.bytes += answer.body.count
            if isHit { $0.tally.hits += 1 }
        }
    }

    /// Lets no player begin, runs `body` when all of them have stopped, and lets them go on.
    func quietly(_ body: () throws -> Void) throws {
        state.withLock { $0.isQuiet = true }
        defer { state.withLock { $0.isQuiet = false } }
        guard eventually(within: .seconds(200), { state.withLock { $0.atWork == 0 } }) else {
            return note(fault: "players did not come to an end within 200 s")
        }
        try body()
    }

    func finish() { state.withLock { $0.isOver = true } }

    /// One number of `GET /api/stats`; nil without an answer.
    func figure(_ name: String) -> Int? {
        guard let text = try? ScriptedPlayer(daemon.baseURL).get("/api/stats").text else {
            return nil
        }
        return members(name, in: text).first.flatMap { Int($0) }
    }
}

/// Why a round of a player was not right, and what would explain it.
struct SoakComplaint: Error {
    let text: String
    var excuses: [SoakDisturbance] = [.restart, .outage]
    /// From when on a disturbance explains it; nil for the beginning of the round.
    var since: ContinuousClock.Instant?
}
