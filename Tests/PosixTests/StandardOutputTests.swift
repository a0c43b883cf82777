import Glibc
import Posix
import Testing

/// Output that cannot be written.
struct StandardOutputTests {
    @Test func `a full disk loses what was printed, and is the reason`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO)
            // No line that is written at its end, as one for a terminal is.
            print("some text", terminator: "")
            _exit(StandardOutput.finish() == "No space left on device" ? 7 : 1)
        }
    }

    @Test func `a write that failed earlier is remembered`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO)
            print(String(repeating: "some text", count: 100_000))
            fflush(nil)
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO)
            _exit(StandardOutput.finish() == nil ? 1 : 7)
        }
    }

    @Test func `a reader that has left is no failure`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            signal(SIGPIPE, SIG_IGN)
            var ends: [CInt] = [-1, -1]
            pipe(&ends)
            close(ends[0])
            dup2(ends[1], STDOUT_FILENO)
            print("some text")
            _exit(StandardOutput.finish() == nil ? 7 : 1)
        }
    }

    @Test func `output that is written is no failure`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO)
            print("some text")
            _exit(StandardOutput.finish() == nil ? 7 : 1)
        }
    }
}
