// One seed in this process.
import ArgumentParser
import CSimulation
import DaemonService
import Glibc
import Logging

/// Runs a seed and prints its outcome as one line of words and numbers.
struct OneSeed {
    private let seed: UInt64
    private let plan: ScenarioPlan
    private let extras: ExtrasPlan
    private let prints: Bool

    /// Seconds of processor time after which a seed is given up.
    private static let limit: rlim_t = 60

    init(_ seed: UInt64, parts: Parts, rough: Int?, prints: Bool) {
        self.seed = seed
        plan = ScenarioPlan(seed: seed, parts: parts, rough: rough)
        extras = ExtrasPlan(seed: seed, parts: parts)
        self.prints = prints
    }

    /// Addresses and hashes must not differ from run to run: both decide the order of some sets.
    private func becomeRepeatable() {
        guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        csim_fix_addresses()
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
        arguments.append(nil)
        execv("/proc/self/exe", arguments)
    }

    func run() throws {
        becomeRepeatable()
        var limit = rlimit(rlim_cur: Self.limit, rlim_max: Self.limit + 5)
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
        signal(SIGPIPE, SIG_IGN)
        // The daemon says on its standard output that it is ready.
        let output = dup(STDOUT_FILENO)
        let nothing = open("/dev/null", O_WRONLY)
        dup2(nothing, STDOUT_FILENO)
        func say(_ line: String) {
            let bytes = Array((line + "\n").utf8)
            _ = write(output, bytes, bytes.count)
        }
        // The same name in each run of a seed: a path decides the order of some sets.
        let home = "/dev/shm/sluice-simulation-\(seed)"
        // Another run of the seed may have it: one file, and a byte of it for each seed, so that
        // nothing is left of many seeds. The lock ends with this process.
        let lock = open("/dev/shm/sluice-simulation.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var byte = flock()
        byte.l_type = Int16(F_WRLCK)
        byte.l_start = off_t(seed & UInt64(Int64.max))
        byte.l_len = 1
        _ = fcntl(lock, F_SETLKW, &byte)
        removeFolder(home)
        mkdir(home, 0o700)
        defer { removeFolder(home) }
        var settings = plan.settings.merging(extras.settings) { $1 }
        settings["cache-dir"] = "\(home)/cache"
        let configuration = try readConfiguration(scalars: settings, lists: [:], file: nil)
        let log = LogLines()
        LoggingSystem.bootstrap { _ in TraceLog(log) }
        let prints = prints
        let trace = Trace(prints: prints ? { say($0) } : nil)
        let scenario = Scenario(plan, extras, configuration, trace: trace, log: log)
        scenario.run()
        let failure = scenario.world.failure
        if failure != nil, !prints {
            for line in trace.tail.suffix(60) { say(line) }
            say(
                "to see all of it: sluice-simulate --seed \(seed) --trace"
            )
        }
        let marks = trace.marks.sorted { $0.key < $1.key }
            .map { "\($0.key.replacing(" ", with: "_"))=\($0.value)" }.joined(separator: " ")
        say(
            "RESULT \(seed) \(failure == nil ? "passed" : "FAILED") oracle=\(failure?.oracle.rawValue ?? "none") "
                + "hash=\(String(trace.hash, radix: 16)) seconds=\(scenario.world.now / World.second) "
                + "turns=\(csim_resumptions()) longest=\(csim_longest_run() / 1_000_000) \(marks)")
        if let failure { say("\(failure.oracle.rawValue): \(failure.text)") }
        // Fibers that never end hold what exit handlers would wait for.
        removeFolder(home)
        csim_write_profile()
        _exit(failure == nil ? 0 : 1)
    }
}
