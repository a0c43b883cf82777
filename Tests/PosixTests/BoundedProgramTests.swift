import Glibc
import Posix
import Testing

@Suite(.timeLimit(.minutes(10))) struct BoundedProgramTests {
    private static func program(
        seconds: Int64 = 60, output: Int = 1_000_000, memory: UInt64 = 1 << 30,
        isCancelled: @escaping @Sendable () -> Bool = { false }
    ) -> BoundedProgram {
        BoundedProgram(
            BoundedProgram.Limits(
                time: .seconds(seconds), output: output, processorSeconds: 60, memory: memory),
            isCancelled: isCancelled)
    }

    private static func shell(_ script: String) -> [String] { ["/bin/sh", "-c", script] }

    @Test func `input larger than the buffers passes through a program`() throws {
        let input = (0..<900_000).map { UInt8(truncatingIfNeeded: $0) }
        let outcome = try Self.program().run(["/bin/cat"], input: input)
        #expect(outcome == .ended(status: 0, output: input))
    }

    @Test func `a program that does not read its input ends with its own status`() throws {
        let input = [UInt8](repeating: 7, count: 4 << 20)
        let outcome = try Self.program().run(Self.shell("echo no; exit 3"), input: input)
        #expect(outcome == .ended(status: 3, output: Array("no\n".utf8)))
    }

    @Test(arguments: ["exec sleep 600", "sleep 600", "exec >&-; sleep 600"])
    func `a program that hangs is killed together with its children`(_ script: String) throws {
        #expect(try Self.program(seconds: 0).run(Self.shell(script), input: []) == .tooSlow)
        let program = Self.program(seconds: 1)
        #expect(try program.run(Self.shell(script), input: []) == .tooSlow)
    }

    @Test func `endless output is truncated at the limit`() throws {
        let outcome = try Self.program(output: 10_000).run(Self.shell("exec yes"), input: [])
        #expect(outcome == .tooMuch)
    }

    @Test func `a cancelled run is killed`() throws {
        let program = Self.program(isCancelled: { true })
        #expect(try program.run(Self.shell("exec sleep 600"), input: []) == .cancelled)
    }

    @Test func `a program runs with an empty environment, resource limits and the lowest priority`()
        throws
    {
        // The environment of the tests has both; changing it here would race with the tests beside.
        try #require(getenv("PATH") != nil && getenv("HOME") != nil)
        // The first byte of input is sent after the limits are set.
        let script =
            "read go; ulimit -v; ulimit -f; ulimit -t; nice; env | grep -cE '^(PATH|HOME)='"
        let outcome = try Self.program().run(Self.shell(script), input: Array("go\n".utf8))
        #expect(outcome == .ended(status: 1, output: Array("1048576\n0\n60\n19\n0\n".utf8)))
    }

    @Test func `a program that does not exist is an error`() {
        #expect(throws: SystemError.self) { try Self.program().run(["/no/program"], input: []) }
        #expect(findProgram("no-such-program") == nil)
        #expect(findProgram("sh")?.hasPrefix("/") == true)
    }
}
