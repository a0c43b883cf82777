import CommandSupport
import Glibc
import Posix
import Testing

@testable import DaemonService

/// Files that the configuration names.
struct InputFileTests {
    @Test(.timeLimit(.minutes(1)))
    func `a pipe is no configuration file, and is not waited for`() async throws {
        let folder = try makeTemporaryFolder("input-file-tests")
        defer { removeTree(folder) }
        let pipe = folder + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        #expect(throws: InputFile.Fault.self) { try InputFile.read(pipe, atMost: 100) }
        #expect(throws: InputFile.Fault.self) { try InputFile.check(pipe, atMost: 100) }
        await #expect(throws: ConfigurationError.self) {
            try await DaemonConfiguration(scalars: [:], lists: [:], file: pipe)
        }
        let writer = open(pipe, O_RDWR | O_NONBLOCK)
        defer { close(writer) }
        #expect(throws: InputFile.Fault.self) { try InputFile.read(pipe, atMost: 100) }
    }

    @Test func `a pipe is read where a command is given one`() throws {
        let folder = try makeTemporaryFolder("input-file-tests")
        defer { removeTree(folder) }
        let pipe = folder + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        let both = open(pipe, O_RDWR)
        _ = write(both, "text", 4)
        // One byte more than the limit ends the reading before the end of the pipe, which is open.
        let fault = #expect(throws: InputFile.Fault.self) {
            try InputFile.read(pipe, atMost: 3, isPipeAllowed: true)
        }
        #expect(fault?.description.contains("is a pipe") == false, "\(String(describing: fault))")
        close(both)
    }
}
