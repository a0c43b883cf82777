import Glibc
import Posix
import Testing

/// F_SETPIPE_SZ of fcntl(2), which Glibc does not show.
private let setPipeSize: CInt = 1_031

/// Writing to those who may not read.
struct BoundedWriteTests {
    /// The two ends of a pipe that holds 64 KiB.
    private func pipeEnds() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        try #require(fcntl(ends[1], setPipeSize, 65_536) == 65_536)
        return (ends[0], ends[1])
    }

    @Test(.timeLimit(.minutes(1)))
    func `a reader that does not read is waited for until the deadline`() throws {
        let ends = try pipeEnds()
        defer { for end in [ends.read, ends.write] { close(end) } }
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let deadline = Monotonic.now() + .milliseconds(20)
        #expect(BoundedWrite.write(bytes, to: ends.write, until: deadline) == 65_536)
        #expect(Monotonic.now() >= deadline)
        #expect(BoundedWrite.write(bytes, to: ends.write, until: .now()) == 0)
    }

    @Test func `a passed deadline writes what fits`() throws {
        let ends = try pipeEnds()
        defer { for end in [ends.read, ends.write] { close(end) } }
        let past = Monotonic(nanoseconds: 0)
        #expect(BoundedWrite.write([1, 2, 3], to: ends.write, until: past) == 3)
    }

    @Test func `a file takes everything, whatever the deadline`() throws {
        let file = try openUnnamedFile(in: "/tmp")
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let past = Monotonic(nanoseconds: 0)
        #expect(BoundedWrite.write(bytes, to: file.number, until: past) == 100_000)
        #expect(try fileSize(file.number) == 100_000)
    }

    @Test func `a descriptor that is not open takes nothing`() {
        // Above every descriptor that the process may have.
        #expect(BoundedWrite.write([1], to: .max, until: .now() + .seconds(60 as Int64)) == 0)
    }
}
