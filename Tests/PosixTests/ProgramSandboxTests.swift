import Glibc
import Posix
import Testing

@Suite(.timeLimit(.minutes(10))) struct ProgramSandboxTests {
    private static let limits = BoundedProgram.Limits(
        time: .seconds(30 as Int64), output: 10_000, processorSeconds: 5, memory: 1 << 30)
    private static let shell = ["/bin/sh", "-c", "echo works"]

    /// Nil where this machine has no bubblewrap, or denies namespaces to it.
    private static let sandbox: ProgramSandbox? = {
        guard let sandbox = ProgramSandbox(), sandbox.isUsable(shell, limits) else { return nil }
        return sandbox
    }()

    private func run(_ script: String, input: String = "") throws -> String {
        let sandbox = try #require(Self.sandbox)
        let outcome = try BoundedProgram(Self.limits).run(
            sandbox.arguments(["/bin/sh", "-c", script], Self.limits), input: Array(input.utf8))
        guard case .ended(0, let output) = outcome else { return "\(outcome)" }
        return String(decoding: output, as: UTF8.self)
    }

    @Test(.enabled(if: sandbox != nil, "needs bubblewrap and user namespaces"))
    func `a program in the sandbox sees no file of the user and no network`() throws {
        let folder = try makeTemporaryFolder("sandbox")
        defer { removeTree(folder) }
        let file = folder + "/secret"
        try writeWhole(file)
        #expect(try run("cat \(file) 2>&1 || echo none").hasSuffix("none\n"))
        #expect(try run("touch \(file) || echo none; touch /usr/x || echo none") == "none\nnone\n")
        #expect(try run("ls /") == "bin\ndev\netc\nlib\nlib64\nusr\n")
        // The only interface is the loopback of its own namespace.
        let python = "python3 -c 'import socket; print(len(socket.if_nameindex()))'"
        #expect(try run("test -e /usr/bin/python3 || exec echo 1; \(python)") == "1\n")
        #expect(try run("cat", input: "passed on") == "passed on")
    }

    @Test(.enabled(if: sandbox != nil, "needs bubblewrap and user namespaces"))
    func `limits hold in the sandbox, and what hangs is killed with it`() throws {
        let limited = try run("ulimit -v; ulimit -t; ulimit -c; ulimit -f; nice")
        #expect(limited == "1048576\n5\n0\n0\n19\n")
        var limits = Self.limits
        limits.time = .seconds(1 as Int64)
        let sandbox = try #require(Self.sandbox)
        let program = sandbox.arguments(["/bin/sh", "-c", "sleep 4321"], limits)
        #expect(try BoundedProgram(limits).run(program, input: []) == .tooSlow)
        let isGone = (0..<500).contains { _ in
            usleep(10_000)
            let left = try? BoundedProgram(Self.limits).run(
                ["/usr/bin/pgrep", "-f", "sleep 4321"], input: [])
            return left == .ended(status: 1, output: [])
        }
        #expect(isGone)
    }

    @Test func `a sandbox that cannot be made is not usable`() {
        var limits = Self.limits
        limits.memory = 1 << 20
        if let sandbox = ProgramSandbox() { #expect(!sandbox.isUsable(Self.shell, limits)) }
    }

    private func writeWhole(_ path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
        #expect(descriptor >= 0 && write(descriptor, "secret", 6) == 6)
        close(descriptor)
    }
}
