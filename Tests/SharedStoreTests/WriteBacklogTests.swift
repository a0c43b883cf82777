import Testing

@testable import SharedStore

@Suite struct WriteBacklogTests {
    private func write(_ url: String, _ generation: UInt64 = .max) -> WaitingWrite {
        WaitingWrite(
            key: String(repeating: "0a", count: 32), generation: generation, role: 0x73,
            isKey: false, setsCookies: true, isFilm: false, url: url)
    }

    private func text(_ lines: String?...) -> [UInt8] {
        Array((WriteBacklog.firstLine + lines.compactMap(\.self).joined()).utf8)
    }

    @Test func `what waits is read again, and damaged lines are skipped`() {
        let waiting = [write("http://a.example/1", 1), write("http://a.example/2?x=1")]
        let text = text(WriteBacklog.line(waiting[0]), WriteBacklog.line(waiting[1]))
        #expect(WriteBacklog.parse(text) == waiting)
        let damaged = text + Array("0a 1 2 0 0 0 http://b/\nx\n \n- 0a\n- x y\n".utf8)
        #expect(WriteBacklog.parse(damaged) == waiting)
        for count in text.indices {
            #expect(waiting.starts(with: WriteBacklog.parse(Array(text[..<count])).dropLast()))
        }
    }

    @Test func `what has left is not read, and the last line of an object counts`() {
        var second = write("http://a.example/2", 2)
        let third = write("http://a.example/3", 3)
        let before = [write("http://a.example/1", 1), second, third].map(WriteBacklog.line)
        second.isFilm = true
        let read = WriteBacklog.parse(
            text(
                before[0], before[1], before[2], WriteBacklog.line(doneWith: third.key, 1),
                WriteBacklog.line(second), WriteBacklog.line(doneWith: third.key, 9)))
        #expect(read == [second, third])
    }

    @Test func `a long URL is left out, and there is an end to what is remembered`() {
        let long = "http://a.example/" + String(repeating: "x", count: 2_000)
        #expect(WriteBacklog.line(write(long)) == nil)
        let many = (0..<20_000).map { WriteBacklog.line(write("http://a/", $0)) ?? "" }
        #expect(WriteBacklog.parse(text(many.joined())).count == WriteBacklog.most)
        #expect(WriteBacklog.parse(Array("other\n".utf8)).isEmpty)
    }
}
