import CachePolicy
import HTTP
import Model
import Posix
import Routing
import Testing

/// Rewritten texts that are in memory.
@Suite struct KeptTextTests {
    private let facts = ObjectFacts(
        head: StoredHead(
            status: .ok, fields: Fields(), requestTime: WallTime(seconds: 1),
            responseTime: WallTime(seconds: 2), finalURL: "http://cdn.test/a.m3u8",
            isPlaylist: true),
        generation: 1)
    private let key = ObjectFacts.RewriteKey(session: SessionID(1), prefix: "/")

    /// Keeps a text with short names from a version of their table.
    private func keep(
        _ names: UInt64, host: String? = nil, for key: ObjectFacts.RewriteKey
    ) {
        facts.keep(
            PreparedPlaylist(
                bytes: [0x23], facts: PlaylistFacts(isLive: false), form: .origin, host: host,
                names: names),
            for: key, within: RewrittenBudget(limit: 1_000))
    }

    @Test func `a text is not served again once short names were deleted`() {
        var key = key
        keep(1, for: key)
        let known = facts.prepared(&key, names: 1, own: "http://a")
        #expect(known?.names == 1)
        let later = facts.prepared(&key, names: 2, own: "http://a")
        #expect(later?.names == nil && key == self.key)
        #expect(facts.isPrepared(for: SessionID(1)), "its session has received it")
        keep(2, for: key)
        let anew = facts.prepared(&key, names: 2, own: "http://a")
        #expect(anew?.names == 2)
    }

    @Test func `a text for another host is not served again once short names were deleted`() {
        keep(1, host: "http://a", for: key)
        var other = key
        let missing = facts.prepared(&other, names: 1, own: "http://b")
        #expect(missing?.names == nil && other.host == "http://b")
        keep(1, host: "http://b", for: other)
        for (names, found) in [(1, 1), (2, nil)] as [(UInt64, UInt64?)] {
            var key = key
            let known = facts.prepared(&key, names: names, own: "http://b")
            #expect(known?.names == found && key == other)
        }
    }
}
