import Posix
import SharedStore
import Testing

struct SharedChangeTests {
    private let time = WallTime(nanoseconds: 1_700_000_000_000_000_000)

    @Test func `a change is what it was after the way through the bucket`() throws {
        let change = try #require(
            SharedChange(
                path: "/api/purge", query: "host=CDN.example", given: time, node: "ab12"))
        #expect(change.name == "v1/rules/1700000000000000000-ab12")
        #expect(SharedChange(name: change.name, text: change.text) == change)
        #expect(change.mark == .host("cdn.example"))
        #expect(change.isPurge)
    }

    @Test func `a purge by prefix marks what is below the prefix`() throws {
        let change = try #require(
            SharedChange(
                path: "/api/purge", query: "prefix=http%3A%2F%2FH%2FShow7", given: time, node: "1"))
        #expect(change.mark == .prefix("http://H/Show7"))
        #expect(SharedChange(name: change.name, text: change.text) == change)
    }

    @Test func `a pin marks nothing`() throws {
        let change = try #require(
            SharedChange(path: "/api/pin", query: "title=0123456789ab", given: time, node: "1"))
        #expect(change.mark == nil)
    }

    /// All who may use the bucket can read it.
    @Test(arguments: [
        ("title=0123456789ab&token=secret", "title=0123456789ab"),
        ("token=secret&url=http://user:secret@h/a.m3u8", "url=http%3A%2F%2Fh%2Fa.m3u8"),
        ("prefix=http://user:secret@h/a", "prefix=http%3A%2F%2Fh%2Fa"),
        ("url=http://h/a%7CAuthorization=secret", "url=http%3A%2F%2Fh%2Fa"),
        ("url=http://h/a%7Cb", "url=http%3A%2F%2Fh%2Fa%7Cb"),
    ])
    func `a change holds nothing of its request that is a secret`(
        _ query: String, _ public: String
    ) throws {
        let change = try #require(
            SharedChange(path: "/api/purge", query: query, given: time, node: "1"))
        #expect(change.query == `public`)
    }

    @Test(arguments: [
        ("/api/purge", "token=secret"),
        ("/api/clear", "pinned=true"), ("/api/purge", ""), ("/api/purge", "older-than=3d"),
        ("/api/purge", "host=a&given=1"), ("/api/purge", "host=a b"), ("/api/purge", "a\n/x"),
    ])
    func `what concerns one node alone is no change`(_ path: String, _ query: String) {
        #expect(SharedChange(path: path, query: query, given: time, node: "1") == nil)
    }

    @Test(arguments: [
        ("v1/rules/1700000000000000000-ab", "sluice change 2\n/api/pin?title=a\n"),
        ("v1/rules/1700000000000000000-ab", "sluice change 1\n/api/stop?x=1\n"),
        ("v1/rules/1700000000000000000-ab", "sluice change 1\n/api/pin?title=a\nmore\n"),
        ("v1/rules/1700000000000000000-ab", "sluice change 1\n"),
        ("v1/rules/17-ab", "sluice change 1\n/api/pin?title=a\n"),
        ("v1/rules/9999999999999999999-ab", "sluice change 1\n/api/pin?title=a\n"),
        ("v1/rules/9223372036854775807-ab", "sluice change 1\n/api/pin?title=a\n"),
        ("v1/rules/1700000000000000000-xyz", "sluice change 1\n/api/pin?title=a\n"),
        ("v1/o/1700000000000000000-ab", "sluice change 1\n/api/pin?title=a\n"),
    ])
    func `other texts and names are no change`(_ name: String, _ text: String) {
        #expect(SharedChange(name: name, text: Array(text.utf8)) == nil)
    }
}
