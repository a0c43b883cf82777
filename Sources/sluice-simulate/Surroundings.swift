// The process that a run has for itself.
import CSimulation
import Glibc

/// What a run needs of the real system: a folder in memory, the same addresses each time, and a limit.
final class Surroundings {
    /// The same name in each run of a number: a path decides the order of some sets.
    let home: String
    private let output: CInt

    /// Starts the program anew where its addresses are not the same in each run.
    ///
    /// - Parameters:
    ///   - number: tells runs apart that go on side by side.
    ///   - seconds: of processor time, after which the run is ended.
    init(number: UInt64, processorSeconds seconds: rlim_t) {
        Self.becomeRepeatable()
        var limit = rlimit(rlim_cur: seconds, rlim_max: seconds + 5)
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
        signal(SIGPIPE, SIG_IGN)
        // The daemon says on its standard output that it is ready.
        output = dup(STDOUT_FILENO)
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO)
        home = "/dev/shm/sluice-simulation-\(number)"
        // Another run of the seed may have it: one file, and a byte of it for each seed, so that
        // nothing is left of many seeds. The lock ends with this process.
        let lock = open("/dev/shm/sluice-simulation.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var byte = flock()
        byte.l_type = Int16(F_WRLCK)
        byte.l_start = off_t(number & UInt64(Int64.max))
        byte.l_len = 1
        _ = fcntl(lock, F_SETLKW, &byte)
        removeFolder(home)
        mkdir(home, 0o700)
    }

    /// Addresses and hashes must not differ from run to run: both decide the order of some sets.
    private static func becomeRepeatable() {
        guard getenv("SWIFT_DETERMINISTIC_HASHING") == nil else { return }
        setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
        csim_fix_addresses()
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
        arguments.append(nil)
        execv("/proc/self/exe", arguments)
    }

    /// Prints a line.
    func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(output, bytes, bytes.count)
    }

    /// Ends the process: fibers that never end hold what exit handlers would wait for.
    func end(_ status: CInt) -> Never {
        removeFolder(home)
        csim_write_profile()
        _exit(status)
    }
}
