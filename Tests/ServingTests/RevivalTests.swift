import Playlists
import Testing
import URISyntax

/// The URLs that replace those whose tokens have expired.
@Suite struct RevivalTests {
    private let revival = Revival()

    private func url(_ token: String) throws -> AbsoluteURL {
        try AbsoluteURL("http://h/s.ts?t=\(token)")
    }

    private func note(_ dead: String, _ next: String) throws {
        revival.note([(dead: try url(dead), url: try url(next))])
    }

    private func successor(_ token: String) throws -> AbsoluteURL? {
        revival.successor(of: try url(token))
    }

    @Test func `an origin that returns to a former token makes no cycle of successors`() throws {
        try note("a", "b")
        #expect(try successor("a") == url("b"))
        try note("b", "a")
        #expect(try successor("b") == url("a"))
        #expect(try successor("a") == nil)
        try note("a", "c")
        #expect(try successor("b") == url("c"))
        try note("c", "b")
        #expect(try successor("c") == url("b") && successor("a") == url("b"))
        #expect(try successor("b") == nil)
    }

    @Test func `successors are bounded in bytes, and one that is used stays`() throws {
        let long = String(repeating: "x", count: 60_000)
        for number in 0..<400 {
            try note("\(number)", "\(number)\(long)")
            #expect(try successor("0") == url("0\(long)"))
        }
        let left = try (0..<400).filter { try successor("\($0)") != nil }.count
        #expect((100..<300).contains(left))
        #expect(try successor("399") != nil)
    }

    @Test func `the oldest of many tokens leads to the last one`() throws {
        for number in 0..<3_000 { try note("\(number)", "\(number + 1)") }
        for _ in 0..<3 { _ = try successor("0") }
        #expect(try successor("0") == url("3000"))
        #expect(try successor("2999") == url("3000"))
        #expect(try successor("3000") == nil)
    }
}
