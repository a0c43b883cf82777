import DaemonService
import Glibc
import Testing

/// F_SETPIPE_SZ of fcntl(2), which Glibc does not show.
private let setPipeSize: CInt = 1_031

struct ErrorLinesTests {
    @Test(.timeLimit(.minutes(1)))
    func `lines that nobody reads are dropped, and counted once somebody does`() throws {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        try #require(fcntl(ends[1], setPipeSize, 8_192) == 8_192)
        let lines = ErrorLines(file: ends[1])
        let notice = { (count: Int) in "\(count) dropped" }
        lines.print("first", notice: notice)
        // Two pieces; the second finds no room.
        lines.print(String(repeating: "x", count: 9_000), notice: notice)
        for _ in 0..<1_000 { lines.print("lost", notice: notice) }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        #expect(read(ends[0], &buffer, buffer.count) > 0)
        lines.print("last", notice: notice)
        let count = read(ends[0], &buffer, buffer.count)
        let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        #expect(text == "\n1001 dropped\nlast\n")
    }
}
