// One run in a separate process.
import Glibc

/// Starts runs of this program as child processes and reads their output.
enum ChildRun {
    /// Stands in for the oracle's name if a run ends without a result.
    static let crash = "crash"

    /// The daemon prints to standard error what it refuses to start with, which a run often provokes:
    /// it is of interest beside the other output of a run that failed, and only there.
    ///
    /// - Parameters:
    ///   - arguments: those of the child.
    ///   - keepsErrors: whether standard error goes to the same file; else it is dropped.
    /// - Returns: the process and the file of its standard output; nil if it cannot be started.
    static func start(_ arguments: [String], keepsErrors: Bool) -> (pid: pid_t, output: CInt)? {
        var name = Array("/tmp/sluice-simulate-XXXXXX".utf8CString)
        let output = mkstemp(&name)
        guard output >= 0 else { return nil }
        _ = fcntl(output, F_SETFD, FD_CLOEXEC)
        unlink(name)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        if keepsErrors {
            posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        }
        defer { posix_spawn_file_actions_destroy(&actions) }
        var words: [UnsafeMutablePointer<CChar>?] = (["sluice-simulate"] + arguments).map {
            strdup($0)
        }
        words.append(nil)
        defer { for word in words { free(word) } }
        var pid = pid_t()
        guard posix_spawn(&pid, "/proc/self/exe", &actions, nil, words, environ) == 0 else {
            close(output)
            return nil
        }
        return (pid, output)
    }

    /// Everything that an ended process has written.
    static func take(_ output: CInt) -> String {
        lseek(output, 0, SEEK_SET)
        var bytes = Array(repeating: UInt8(0), count: 1 << 22)
        let count = read(output, &bytes, bytes.count)
        close(output)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// The oracle that failed; nil for a run that passed.
    static func oracle(in text: String) -> String? {
        guard let result = text.split(separator: "\n").first(where: { $0.hasPrefix("RESULT ") })
        else { return crash }
        guard let word = result.split(separator: " ").first(where: { $0.hasPrefix("oracle=") })
        else { return crash }
        return word == "oracle=none" ? nil : String(word.dropFirst(7))
    }

    /// Runs a child to its end and returns what it printed; empty if it could not be started.
    static func output(of arguments: [String]) -> String {
        guard let (pid, output) = start(arguments, keepsErrors: false) else { return "" }
        var status: CInt = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return take(output)
    }

    /// Runs a child to its end and returns the oracle that failed.
    static func oracle(of arguments: [String]) -> String? { oracle(in: output(of: arguments)) }
}
