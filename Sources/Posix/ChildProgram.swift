// Child processes: ffmpeg for `sluice export` and for pictures, and the programs that measurements
// run.
import Glibc

/// A program that this process started (posix_spawn(3)); `end` or `waitForEnd` must be called.
package struct ChildProgram {
    package let id: CInt

    /// Starts `arguments[0]`, looked up in PATH.
    ///
    /// - Parameters:
    ///   - arguments: the program and its arguments.
    ///   - input: the descriptor of its standard input; nil for this process's own.
    ///   - output: the descriptor of its standard output; nil for this process's own.
    ///   - errors: the descriptor of its standard error; nil for this process's own.
    ///   - isApart: true for a process group of its own and an empty environment, since this
    ///     process's may contain secrets.
    /// - Throws: `SystemError` if it cannot be started, for instance because there is no such
    ///   program.
    package init(
        _ arguments: [String], input: CInt? = nil, output: CInt? = nil, errors: CInt? = nil,
        isApart: Bool = false
    ) throws(SystemError) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Signals that this thread blocks, for another to wait for them, still end the program.
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        posix_spawnattr_setsigmask(&attributes, &unblocked)
        let flags = POSIX_SPAWN_SETSIGMASK | (isApart ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        if let input { posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO) }
        if let output { posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO) }
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { (word: String) in strdup(word) }
        words.append(nil)
        defer { for word in words { free(word) } }
        var id = pid_t()
        var nothing: [UnsafeMutablePointer<CChar>?] = [nil]
        let code =
            isApart
            ? posix_spawnp(&id, arguments[0], &actions, &attributes, &words, &nothing)
            : posix_spawnp(&id, arguments[0], &actions, &attributes, &words, environ)
        guard code == 0 else { throw SystemError("posix_spawn", code: code, subject: arguments[0]) }
        self.id = id
    }

    /// Blocks until the program has ended.
    ///
    /// - Returns: its exit status; nil if a signal ended it.
    @discardableResult
    package func waitForEnd() -> CInt? {
        var status: CInt = 0
        while waitpid(id, &status, 0) < 0, errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
    }

    /// As above, and kills it where it has not ended after a time.
    package func waitForEnd(within seconds: Int64) -> CInt? {
        let deadline = Monotonic.now() + .seconds(seconds)
        var status: CInt = 0
        while waitpid(id, &status, WNOHANG) == 0 {
            if Monotonic.now() > deadline { kill(id, SIGKILL) }
            usleep(2_000)
        }
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
    }

    /// Sends a signal; blocks until it has ended, and kills it where it has not after a time.
    package func end(_ signal: CInt, within seconds: Int64) {
        kill(id, signal)
        let deadline = Monotonic.now() + .seconds(seconds)
        while waitpid(id, nil, WNOHANG) == 0 {
            if Monotonic.now() > deadline { kill(id, SIGKILL) }
            usleep(2_000)
        }
    }
}
