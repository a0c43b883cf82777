import Glibc
import Posix
import Testing

@Suite struct ChildProgramTests {
    @Test func `the status of a program is returned, and nil after a signal`()
        throws
    {
        #expect(try ChildProgram(["true"]).waitForEnd() == 0)
        #expect(try ChildProgram(["sh", "-c", "exit 7"]).waitForEnd() == 7)
        #expect(try ChildProgram(["sh", "-c", "kill -9 $$"]).waitForEnd() == nil)
    }

    @Test func `a signal that this process blocks still ends a program that it starts`() throws {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        sigaddset(&blocked, SIGTERM)
        var former = sigset_t()
        pthread_sigmask(SIG_BLOCK, &blocked, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        #expect(try ChildProgram(["sh", "-c", "kill -TERM $$; exit 7"]).waitForEnd() == nil)
    }

    @Test func `a program that exceeds its time is killed`() throws {
        #expect(try ChildProgram(["sh", "-c", "exit 7"]).waitForEnd(within: 60) == 7)
        #expect(try ChildProgram(["sleep", "600"]).waitForEnd(within: 0) == nil)
    }

    @Test func `a program that does not exist is named in the error`() {
        #expect(throws: SystemError("posix_spawn", code: ENOENT, subject: "no-such-program")) {
            try ChildProgram(["no-such-program"])
        }
    }

    @Test func `a program that ignores a signal is killed after its time`() throws {
        var ends: [CInt] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        let script = "trap '' TERM; echo ready; exec sleep 600"
        let child = try ChildProgram(["sh", "-c", script], output: ends[1])
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 1)
        child.end(SIGTERM, within: 1)
        #expect(kill(child.id, 0) == -1 && errno == ESRCH)
    }
}
