// A daemon for as long as a command needs one, which leaves nothing when a signal ends the command.
import Glibc
import Posix
import Reactor
import Synchronization

/// Ends the program that a command has started, and removes its folder, before a signal ends this
/// process.
enum Interruption {
    /// The process ID of that program, if it runs already, and the folder.
    fileprivate static let running = Mutex<(id: CInt?, folder: String)?>(nil)

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

    /// Removes the registered folder; never returns once a signal ends this process.
    static func removeFolder() {
        running.withLock { running in
            if let folder = running?.folder { removeTree(folder) }
            running = nil
        }
    }

    /// Does what must be done wholly or not at all: a signal that ends this process waits for it.
    static func wait<Failure: Error>(for work: () throws(Failure) -> Void) throws(Failure) {
        try running.withLock { _ throws(Failure) in try work() }
    }

    /// Runs a program that works in the registered folder; blocks until it has ended.
    ///
    /// - Returns: its exit status; nil if it could not be started, or if a signal ended it.
    static func run(_ command: [String]) -> CInt? {
        let child = running.withLock { running in
            let child = try? ChildProgram(command)
            running?.id = child?.id
            return child
        }
        guard let child else { return nil }
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

/// A daemon with a cache folder of its own, ended by `stop`, and with this process.
final class TemporaryDaemon {
    let base: String
    private let child: ChildProgram
    private let folder: String

    struct Fault: Error {
        let text: String
    }

    /// Starts a daemon; blocks until it listens.
    ///
    /// - Parameters:
    ///   - arguments: options of `serve`; those that name a place are replaced.
    ///   - speaksTLS: whether the settings name a port for TLS, which is replaced then.
    /// - Throws: `Fault` with the last line that the daemon printed.
    init(_ arguments: [String], speaksTLS: Bool) throws(Fault) {
        let folder: String
        do throws(SystemError) {
            folder = try Interruption.running.withLock { running throws(SystemError) in
                let made = try makeTemporaryFolder("sluice-doctor")
                running = (nil, made)
                return made
            }
        } catch {
            throw Fault(text: "\(error)")
        }
        self.folder = folder
        var command = [InspectLoader.absolutePath("/proc/self/exe") ?? "sluice", "serve"]
        command += arguments
        command += ["--bind", "127.0.0.1", "--port", "0", "--cache-dir", folder + "/cache"]
        command += ["--access-log", "/dev/null", "--log-format", "text", "--drain-timeout", "0"]
        // It is gone in a moment: other nodes must not count it, nor repeat what it does.
        command += ["--shared-store", "off"]
        // No proxy in front removes a base path from its links.
        command += ["--drain-delay", "0", "--base-path", "/"]
        if speaksTLS { command += ["--tls-port", "0"] }
        do throws(SystemError) {
            let output = try openFile(
                folder + "/output", flags: O_WRONLY | O_CREAT | O_APPEND)
            let errors = try openFile(
                folder + "/errors", flags: O_WRONLY | O_CREAT | O_APPEND)
            child = try Interruption.running.withLock { running throws(SystemError) in
                let child = try ChildProgram(
                    command, output: output.number, errors: errors.number)
                running = (child.id, folder)
                return child
            }
        } catch {
            Interruption.running.withLock { running in
                removeTree(folder)
                running = nil
            }
            throw Fault(text: "\(error)")
        }
        guard let base = Self.waitUntilReady(child, folder) else {
            let errors = (try? readStart(folder + "/errors", atMost: 2_000)) ?? []
            let text = String(decoding: errors, as: UTF8.self).split(separator: "\n").last
            self.base = ""
            stop()
            throw Fault(text: text.map(String.init) ?? "it did not start within 20 s")
        }
        self.base = base
    }

    private static func waitUntilReady(_ child: ChildProgram, _ folder: String) -> String? {
        let deadline = Monotonic.now() + .seconds(20 as Int64)
        while Monotonic.now() < deadline {
            let bytes = (try? readStart(folder + "/output", atMost: 10_000)) ?? []
            // Only whole lines: the last may still be written.
            for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast() {
                let text = String(decoding: line, as: UTF8.self)
                if text.hasPrefix("sluice ready http://") {
                    return String(text.dropFirst("sluice ready ".utf8.count))
                }
            }
            var found = siginfo_t()
            if waitid(P_PID, id_t(child.id), &found, WEXITED | WNOHANG | WNOWAIT) == 0,
                found.si_signo != 0
            {
                return nil
            }
            usleep(10_000)
        }
        return nil
    }

    /// Ends the daemon and removes its folder; blocks until both is done.
    func stop() {
        // A signal that arrives meanwhile waits for the lock.
        Interruption.running.withLock { running in
            child.end(SIGTERM, within: 5)
            removeTree(folder)
            running = nil
        }
    }
}
