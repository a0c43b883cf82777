import Glibc
import Synchronization

/// A program started by a test or helper; collects its output and signals it only by its own id.
package final class ChildProcess: Sendable {
    /// How a process ended.
    package enum Exit: Sendable, Equatable {
        case code(Int32)
        case signal(Int32)
    }

    /// The output stream that a piece was read from.
    package enum Output: Sendable { case standard, error }

    private struct State {
        var exit: Exit?
        var output: [UInt8] = []
        var errors: [UInt8] = []
        /// The read ends of the child's output pipes; nil once they are closed.
        var outputPipe: Int32?
        var errorPipe: Int32?
        var openPipes: Int { (outputPipe == nil ? 0 : 1) + (errorPipe == nil ? 0 : 1) }

        /// Reads what is available of an output, about a megabyte at most; nil at its end.
        mutating func takeAvailable(_ kind: Output) -> [UInt8]? {
            guard let descriptor = kind == .standard ? outputPipe : errorPipe else { return nil }
            var taken: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 64 * 1024)
            while true {
                let count = buffer.withUnsafeMutableBytes {
                    read(descriptor, $0.baseAddress, $0.count)
                }
                if count > 0 { taken += buffer[..<count] }
                if count < 0 && errno == EINTR { continue }
                if count > 0 && taken.count < 1 << 20 { continue }
                if kind == .standard { output += taken } else { errors += taken }
                return count == 0 && taken.isEmpty ? nil : taken
            }
        }
    }

    /// Its process id.
    package let pid: Int32
    private let state = Mutex(State())
    private let onOutput: @Sendable (Output, [UInt8]) -> Void

    /// Held while pipes are made and a child is started, so that no child of another thread can
    /// inherit a writing end before it is marked close-on-exec and keep that pipe open.
    private static let spawning = Mutex(())

    /// Starts `arguments[0]`, looked up in PATH, with this process's environment plus `environment`.
    ///
    /// The child gets the descriptors of `handed` at 3 and up. `onOutput` is called with every
    /// piece read, on a separate thread. Throws `CDNError`.
    package init(
        _ arguments: [String], environment: [(name: String, value: String)] = [],
        handed: [Int32] = [],
        onOutput: @escaping @Sendable (Output, [UInt8]) -> Void = { _, _ in }
    ) throws {
        let (started, output, errors) = try Self.spawning.withLock { _ in
            let output = try Pipe()
            let errors = try Pipe()
            defer {
                close(output.write)
                close(errors.write)
            }
            let pid = try Self.spawn(
                arguments, environment, handed, (output.write, errors.write))
            return (pid, output.read, errors.read)
        }
        pid = started
        self.onOutput = onOutput
        state.withLock { ($0.outputPipe, $0.errorPipe) = (output, errors) }
        let watched = started
        let threads =
            startDetachedThread { self.collect(output, .standard) }
            && startDetachedThread { self.collect(errors, .error) }
            && startDetachedThread { self.reap(watched) }
        guard threads else { throw CDNError(call: "pthread_create", code: EAGAIN) }
    }

    /// Everything the process has written, including what the collecting thread has not read yet: a
    /// caller that has seen an effect of the process also finds the line written before it.
    package var standardOutput: [UInt8] {
        collectAvailable(.standard)
        return state.withLock { $0.output }
    }
    package var standardError: [UInt8] {
        collectAvailable(.error)
        return state.withLock { $0.errors }
    }

    /// How it ended; nil while it runs.
    package var exit: Exit? { state.withLock { $0.exit } }

    /// Sends a signal unless the process has ended, so that a reused id never gets it.
    package func kill(_ signal: Int32) {
        state.withLock {
            if $0.exit == nil { _ = Glibc.kill(pid, signal) }
        }
    }

    /// Waits until the process and its output have ended; nil if it still runs after `seconds`.
    package func waitForExit(seconds: Double = 10) -> Exit? {
        let end = Sockets.now() + Int64(seconds * 1e9)
        while Sockets.now() < end {
            let (exit, pipes) = state.withLock { ($0.exit, $0.openPipes) }
            if let exit, pipes == 0 { return exit }
            usleep(1000)
        }
        return exit
    }

    /// Ends the process with SIGTERM, and with SIGKILL if it still runs after `seconds`.
    package func end(seconds: Double = 5) {
        kill(SIGTERM)
        if waitForExit(seconds: seconds) == nil {
            kill(SIGKILL)
            _ = waitForExit(seconds: 5)
        }
    }

    /// Collects an output to its end, and closes it.
    private func collect(_ descriptor: Int32, _ kind: Output) {
        repeat {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            while poll(&waiting, 1, -1) < 0 && errno == EINTR {}
        } while collectAvailable(kind)
        state.withLock {
            close(descriptor)
            if kind == .standard { $0.outputPipe = nil } else { $0.errorPipe = nil }
        }
    }

    /// Collects what can be read without waiting; false at the end of the output.
    @discardableResult
    private func collectAvailable(_ kind: Output) -> Bool {
        guard let piece = state.withLock({ $0.takeAvailable(kind) }) else { return false }
        if !piece.isEmpty { onOutput(kind, piece) }
        return true
    }

    private func reap(_ pid: Int32) {
        // Wait without reaping first: the id must stay allocated until `exit` is set.
        var info = siginfo_t()
        while waitid(P_PID, id_t(pid), &info, Int32(WEXITED | WNOWAIT)) != 0 && errno == EINTR {}
        state.withLock {
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            let signal = status & 0x7F
            $0.exit = signal == 0 ? .code((status >> 8) & 0xFF) : .signal(signal)
        }
    }

    private struct Pipe {
        let read: Int32
        let write: Int32

        init() throws {
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { throw CDNError(call: "pipe") }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            (read, write) = (ends[0], ends[1])
        }
    }

    private static func spawn(
        _ arguments: [String], _ environment: [(name: String, value: String)], _ handed: [Int32],
        _ outputs: (Int32, Int32)
    ) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, outputs.0, 1)
        posix_spawn_file_actions_adddup2(&actions, outputs.1, 2)
        // Duplicate to higher numbers first: the originals may lie in the target range.
        let copies = handed.map { fcntl($0, F_DUPFD_CLOEXEC, 3 + Int32(handed.count)) }
        defer { for copy in copies { close(copy) } }
        for (index, copy) in copies.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy, 3 + Int32(index))
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))

        let overridden = environment.map { $0.name + "=" }
        let kept = inherited().filter { entry in !overridden.contains { entry.hasPrefix($0) } }
        var argv = arguments.map { strdup($0) } + [nil]
        var envp = (kept + environment.map { "\($0.name)=\($0.value)" }).map { strdup($0) } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var pid: pid_t = 0
        let failed = posix_spawnp(&pid, arguments[0], &actions, &attributes, &argv, &envp)
        guard failed == 0 else { throw CDNError(call: "posix_spawn \(arguments[0])", code: failed) }
        return pid
    }

    /// The environment this process was started with; `environ` itself is shared mutable state.
    private static func inherited() -> [String] {
        let descriptor = open("/proc/self/environ", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 * 1024)
        while case let count = buffer.withUnsafeMutableBytes({
            read(descriptor, $0.baseAddress, $0.count)
        }), count > 0 {
            bytes += buffer[..<count]
        }
        return bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    }
}
