// A child process that turns bytes into bytes within limits, for input that is not trusted.
import CLinux
import Glibc

/// Runs one program, with its input and its output in memory.
package struct BoundedProgram: Sendable {
    /// What a run may use.
    package struct Limits: Sendable {
        /// From the start to the end of the program.
        package var time: Interval
        /// The most bytes of output.
        package var output: Int
        /// Seconds of processor time (RLIMIT_CPU).
        package var processorSeconds: UInt64
        /// Bytes of address space (RLIMIT_AS).
        package var memory: UInt64

        package init(time: Interval, output: Int, processorSeconds: UInt64, memory: UInt64) {
            self.time = time
            self.output = output
            self.processorSeconds = processorSeconds
            self.memory = memory
        }
    }

    /// How a run ended.
    package enum Outcome: Equatable, Sendable {
        /// It ended by itself with this status; nil if a signal ended it.
        case ended(status: Int32?, output: [UInt8])
        /// It was killed after the time limit.
        case tooSlow
        /// It was killed because its output was longer than the limit.
        case tooMuch
        /// It was killed because `isCancelled` was true.
        case cancelled
    }

    private let limits: Limits
    private let isCancelled: @Sendable () -> Bool

    /// - Parameters:
    ///   - limits: what a run may use.
    ///   - isCancelled: asked about ten times a second; true ends the run.
    package init(_ limits: Limits, isCancelled: @escaping @Sendable () -> Bool = { false }) {
        self.limits = limits
        self.isCancelled = isCancelled
    }

    /// Runs a program at the lowest priority, with an empty environment; blocks.
    ///
    /// The limits are set before the program gets its first byte of input. Its standard error is
    /// discarded. Programs that it starts itself are killed with it if it has to be killed.
    ///
    /// - Parameters:
    ///   - arguments: the program, by its path, and its arguments.
    ///   - input: its standard input; a program that does not read all of it is no error.
    /// - Returns: how it ended.
    /// - Throws: `SystemError` if it cannot be started.
    package func run(_ arguments: [String], input: [UInt8]) throws(SystemError) -> Outcome {
        let deadline = Monotonic.now() + limits.time
        var own: SharedDescriptor?
        let (child, reading): (ChildProgram, SharedDescriptor)
        // In a scope, so that the child's ends are closed here once it has them.
        do {
            let (input, output) = (try Self.socketPair(), try Self.socketPair())
            let nowhere = OwnedDescriptor(
                taking: try check("open") { open("/dev/null", O_WRONLY | O_CLOEXEC) })
            child = try ChildProgram(
                arguments, input: input.theirs.number, output: output.theirs.number,
                errors: nowhere.number, isApart: true)
            (own, reading) = (input.own, output.own)
        }
        confine(child)
        var (sent, output): (Int, [UInt8]) = (0, [])
        while true {
            guard Monotonic.now() < deadline else { return kill(child, .tooSlow) }
            guard !isCancelled() else { return kill(child, .cancelled) }
            var polls = [pollfd(fd: reading.number, events: Int16(POLLIN), revents: 0)]
            if let own { polls.append(pollfd(fd: own.number, events: Int16(POLLOUT), revents: 0)) }
            guard poll(&polls, nfds_t(polls.count), 100) > 0 else { continue }
            if polls.count > 1, polls[1].revents != 0 {
                let isOver = own.map { send(input, &sent, to: $0.number) } ?? true
                if isOver { own = nil }
            }
            guard polls[0].revents != 0 else { continue }
            guard Self.read(reading.number, into: &output) else { break }
            guard output.count <= limits.output else { return kill(child, .tooMuch) }
        }
        own = nil
        while Monotonic.now() < deadline, !isCancelled() {
            switch child.completion() {
            case .ended(let status): return .ended(status: status, output: output)
            case .running: usleep(2_000)
            }
        }
        return kill(child, isCancelled() ? .cancelled : .tooSlow)
    }

    /// A connected pair: the end for this process, and the one that a child gets.
    ///
    /// Sockets rather than pipes: send(2) can omit SIGPIPE.
    private static func socketPair() throws(SystemError) -> (
        own: SharedDescriptor, theirs: SharedDescriptor
    ) {
        var pair: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else {
            throw SystemError("socketpair", code: errno)
        }
        return (
            SharedDescriptor(OwnedDescriptor(taking: pair[0])),
            SharedDescriptor(OwnedDescriptor(taking: pair[1]))
        )
    }

    /// Sends the next input.
    ///
    /// - Returns: true if nothing is left to send, or nobody reads any more.
    private func send(_ input: [UInt8], _ sent: inout Int, to socket: CInt) -> Bool {
        guard sent < input.count else { return true }
        let count = input[sent...].withUnsafeBytes { bytes in
            Glibc.send(
                socket, bytes.baseAddress, min(bytes.count, 65_536),
                CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
        }
        if count < 0 { return errno != EAGAIN && errno != EINTR }
        sent += count
        return sent == input.count
    }

    /// Appends the next output; returns false at its end.
    private static func read(_ descriptor: CInt, into output: inout [UInt8]) -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        if count < 0 { return errno == EINTR || errno == EAGAIN }
        output += bytes[..<count]
        return count > 0
    }

    /// Sets the child's limits and its priority (prlimit(2), setpriority(2)).
    private func confine(_ child: ChildProgram) {
        let limited: [(CInt, UInt64)] = [
            (CInt(RLIMIT_AS.rawValue), limits.memory),
            (CInt(RLIMIT_CPU.rawValue), limits.processorSeconds),
            // No file, no core.
            (CInt(RLIMIT_FSIZE.rawValue), 0), (CInt(RLIMIT_CORE.rawValue), 0),
        ]
        for (resource, most) in limited {
            _ = clinux_limit(child.id, resource, most)
        }
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(child.id), 19)
    }

    /// Kills the child and those it started, and waits for its end.
    private func kill(_ child: ChildProgram, _ outcome: Outcome) -> Outcome {
        _ = Glibc.kill(-child.id, SIGKILL)
        child.waitForEnd()
        return outcome
    }
}

extension ChildProgram {
    fileprivate enum Completion {
        case running
        /// The exit status; nil if a signal ended the program.
        case ended(status: CInt?)
    }

    /// Looks whether the program has ended, and reaps it (waitpid(2)); does not block.
    fileprivate func completion() -> Completion {
        var status: CInt = 0
        guard waitpid(id, &status, WNOHANG) != 0 else { return .running }
        return .ended(status: status & 0x7F == 0 ? (status >> 8) & 0xFF : nil)
    }
}

/// Returns the path of a program that PATH leads to; nil if there is none that may be executed.
package func findProgram(_ name: String) -> String? {
    let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    // A relative folder would depend on where the daemon was started.
    return folders.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/\(name)" }
        .first { access($0, X_OK) == 0 }
}
