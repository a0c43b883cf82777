// A sandbox for a child process that reads input from outside, made by bubblewrap (bwrap(1)).
import Glibc

/// Runs programs with no network, no files but those of the system, and no other processes.
///
/// bubblewrap needs namespaces for unprivileged users, which some systems and services deny;
/// `isUsable` tries it.
package struct ProgramSandbox: Sendable {
    private let path: String

    /// Programs that set priority and limits inside, where the child of bubblewrap inherits them.
    private static let nice = "/usr/bin/nice"
    private static let limiter = "/usr/bin/prlimit"

    /// Finds bubblewrap in PATH; nil without it, or without nice(1) and prlimit(1).
    package init?() {
        let tools: [String] = [Self.nice, Self.limiter]
        guard let path = findProgram("bwrap"), tools.allSatisfy({ access($0, X_OK) == 0 }) else {
            return nil
        }
        self.path = path
    }

    /// Returns the arguments that run a program in the sandbox.
    ///
    /// It sees `/usr` and an empty `/dev`, and its limits are those of `BoundedProgram`.
    package func arguments(_ program: [String], _ limits: BoundedProgram.Limits) -> [String] {
        var arguments = [path, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
        for folder in ["/usr", "/lib", "/lib64", "/bin"] {
            arguments += ["--ro-bind-try", folder, folder]
        }
        // Libraries are found through these.
        for place in ["/etc/alternatives", "/etc/ld.so.cache"] {
            arguments += ["--ro-bind-try", place, place]
        }
        if let path = program.first, !path.hasPrefix("/usr/"), !path.hasPrefix("/bin/") {
            arguments += ["--ro-bind", path, path]
        }
        return arguments + [
            "--dev", "/dev", "--chdir", "/", "--", Self.nice, "-n", "19", Self.limiter,
            "--as=\(limits.memory)", "--cpu=\(limits.processorSeconds)", "--core=0", "--fsize=0",
        ] + program
    }

    /// Tries the sandbox; blocks until the program has ended.
    ///
    /// - Parameters:
    ///   - program: a program with arguments that make it print something and succeed.
    ///   - limits: those of the program.
    /// - Returns: true if the program ran in it.
    package func isUsable(_ program: [String], _ limits: BoundedProgram.Limits) -> Bool {
        let outcome = try? BoundedProgram(limits).run(arguments(program, limits), input: [])
        guard case .ended(0, let output)? = outcome else { return false }
        return !output.isEmpty
    }
}
