import Glibc
import Posix
import Reactor
import Synchronization

/// Ends the program that a command has started, and removes its folder, before a signal ends this
/// process.
enum Interruption {
    /// The process ID of that program, if it runs already, and the folder.
    private static let running = Mutex<(id: CInt?, folder: String)?>(nil)

    /// Lets a thread wait for the signals that end commands; to be called before other threads start.
    ///
    /// - Parameter cleanUp: what that thread does first when such a signal has come; a second signal
    ///   ends the process meanwhile.
    static func watch(_ cleanUp: (@Sendable () -> Void)? = nil) {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGINT, SIGTERM] { sigaddset(&signals, number) }
        // What nohup(1) started goes on when its terminal closes.
        if !isIgnored(SIGHUP) { sigaddset(&signals, SIGHUP) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let watched = signals
        do throws(SystemError) {
            _ = try PosixThread(name: "interruption") {
                var signals = watched
                var number: CInt = 0
                while sigwait(&signals, &number) != 0 {}
                if let cleanUp {
                    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
                    cleanUp()
                    pthread_sigmask(SIG_BLOCK, &signals, nil)
                }
                end(by: number, watched: signals)
            }
        } catch {
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        }
    }

    /// True if whoever started this process has it ignore a signal.
    private static func isIgnored(_ number: CInt) -> Bool {
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return false }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Makes a private folder, which must not exist; a signal that ends this process removes it,
    /// until `removeFolder`.
    static func make(folder: String) throws(SystemError) {
        try running.withLock { running throws(SystemError) in
            // Another process may make the same one, and only one may remove it.
            guard mkdir(folder, 0o700) == 0 else {
                throw SystemError("mkdir", code: errno, subject: folder)
            }
            running = (nil, folder)
        }
    }

    /// Makes a private folder among temporary ones, which a signal removes as that of `make`.
    ///
    /// - Parameter name: how its name begins.
    /// - Returns: its path.
    /// - Throws: `SystemError` if it cannot be made.
    static func makeTemporary(_ name: String) throws(SystemError) -> String {
        try running.withLock { running throws(SystemError) in
            let folder = try makeTemporaryFolder(name)
            running = (nil, folder)
            return folder
        }
    }

    /// Removes the registered folder, after `child` has ended; never returns once a signal ends this
    /// process.
    static func removeFolder(afterEndOf child: ChildProgram? = nil) {
        running.withLock { running in
            child?.end(SIGTERM, within: 5)
            if let folder = running?.folder { removeTree(folder) }
            running = nil
        }
    }

    /// Does what must be done wholly or not at all: a signal that ends this process waits for it.
    static func wait<Failure: Error>(for work: () throws(Failure) -> Void) throws(Failure) {
        try running.withLock { _ throws(Failure) in try work() }
    }

    /// Starts a program that works in the registered folder, and that a signal ends.
    ///
    /// - Parameters:
    ///   - command: the program and its arguments.
    ///   - output: the descriptor of its standard output; nil for this process's own.
    ///   - errors: the descriptor of its standard error; nil for this process's own.
    /// - Returns: the program that runs.
    /// - Throws: `SystemError` if it cannot be started.
    static func start(
        _ command: [String], output: CInt? = nil, errors: CInt? = nil
    ) throws(SystemError) -> ChildProgram {
        try running.withLock { running throws(SystemError) in
            let child = try ChildProgram(command, output: output, errors: errors)
            running?.id = child.id
            return child
        }
    }

    /// Runs a program that works in the registered folder; blocks until it has ended.
    ///
    /// - Returns: its exit status; nil if it could not be started, or if a signal ended it.
    static func run(_ command: [String]) -> CInt? {
        guard let child = try? start(command) else { return nil }
        var found = siginfo_t()
        while waitid(P_PID, id_t(child.id), &found, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        // Its process ID is free from here on, and must not be sent a signal.
        return running.withLock { running in
            running?.id = nil
            return child.waitForEnd()
        }
    }

    /// Never returns.
    ///
    /// The lock is held to the end: the command finds out at once that its daemon is gone, and would
    /// otherwise print a report and exit with a status before the signal, or send one to a process ID
    /// that is free again.
    private static func end(by number: CInt, watched: sigset_t) {
        running.withLock { running in
            if let (id, folder) = running {
                if let id {
                    kill(id, SIGKILL)
                    waitpid(id, nil, 0)
                }
                // The command may be making files in it; without the folder it can make no more.
                for _ in 0..<1_000 where access(folder, F_OK) == 0 { removeTree(folder) }
            }
            // Whoever waits for this process is told which signal ended it.
            var signals = watched
            signal(number, SIG_DFL)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            kill(getpid(), number)
            while true { pause() }
        }
    }
}
