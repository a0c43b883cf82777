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

    @Test func `a reader that left before the end is no failure`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            signal(SIGPIPE, SIG_IGN)
            var ends: [CInt] = [-1, -1]
            pipe(&ends)
            close(ends[0])
            dup2(ends[1], STDOUT_FILENO)
            print(String(repeating: "some text", count: 100_000), terminator: "")
            _exit(StandardOutput.finish() == nil ? 7 : 1)
        }
    }

    @Test func `what a slow reader of a non-blocking pipe did not get is lost`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            var ends: [CInt] = [-1, -1]
            pipe(&ends)
            _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
            dup2(ends[1], STDOUT_FILENO)
            // More than a pipe holds: the rest of it is dropped.
            print(String(repeating: "some text", count: 1_000_000), terminator: "")
            var bytes = [UInt8](repeating: 0, count: 65_536)
            // There is space again: what the stream still has can be written.
            let count = read(ends[0], &bytes, bytes.count)
            print("the end", terminator: "")
            _exit(count > 0 && StandardOutput.finish() == "an earlier write failed" ? 7 : 1)
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
