// The process of one run.
import CSimulation
import Glibc

/// The real system's part in a run: a folder in memory, fixed addresses, and a time limit.
final class RunProcess {
    /// The same path in each run of a number: paths determine the order of some sets.
    let home: String
    private let output: CInt

    /// Restarts the program if its addresses would differ from run to run.
    ///
    /// - Parameters:
    ///   - number: distinguishes concurrent runs.
    ///   - seconds: processor time after which the run is ended.
    init(number: UInt64, processorSeconds seconds: rlim_t) {
        Self.becomeRepeatable()
        var limit = rlimit(rlim_cur: seconds, rlim_max: seconds + 5)
        setrlimit(__rlimit_resource_t(RLIMIT_CPU.rawValue), &limit)
        signal(SIGPIPE, SIG_IGN)
        // A thread that waits for a lock which a waiting fiber holds takes no processor time.
        alarm(UInt32(20 * seconds))
        // The daemon prints its ready line to standard output.
        output = dup(STDOUT_FILENO)
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO)
        home = "/dev/shm/sluice-simulation-\(number)"
        // Another run of the seed may hold the folder. One lock file has a byte for each seed, so
        // that many seeds leave no files behind. The lock ends with this process.
        let lock = open("/dev/shm/sluice-simulation.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        var byte = flock()
        byte.l_type = Int16(F_WRLCK)
        byte.l_start = off_t(number & UInt64(Int64.max))
        byte.l_len = 1
        _ = fcntl(lock, F_SETLKW, &byte)
        removeTree(home)
        mkdir(home, 0o700)
    }

    /// Makes addresses and hashes the same in every run: both determine the order of some sets.
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

    /// Ends the process without exit handlers: they would wait for objects held by endless fibers.
    func end(_ status: CInt) -> Never {
        removeTree(home)
        csim_write_profile()
        _exit(status)
    }
}
