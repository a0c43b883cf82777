import CommandSupport
import Glibc
import Testing

/// The journal behind standard error.
struct JournalStreamTests {
    @Test func `only the descriptor that the variable names is the journal's`() throws {
        var ends: [CInt] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        var found = stat()
        try #require(fstat(ends[1], &found) == 0)
        let name = "\(found.st_dev):\(found.st_ino)"
        #expect(JournalStream.isJournal(ends[1], variable: name))
        #expect(!JournalStream.isJournal(ends[1], variable: nil))
        #expect(!JournalStream.isJournal(ends[1], variable: "\(found.st_dev):1"))
        #expect(!JournalStream.isJournal(-1, variable: name))
    }

    @Test func `each line of a text gets the priority`() {
        #expect(JournalStream.marked("one\ntwo", priority: 3) == "<3>one\n<3>two")
    }
}
