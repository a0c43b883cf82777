import CachePolicy
import DurableState
import HLS
import HTTP
import Logging
import Posix
import Store
import Testing
import URISyntax

@testable import Model

/// Stored keys of live streams that their origin has dropped.
@Suite final class DroppedKeyTests {
    private let folder: LiveMemoryFolder
    private let base: AbsoluteURL
    private var generation: UInt64 = 0
    /// The time of the last reading, in seconds.
    private var now: Int64 = 0

    init() throws {
        folder = try LiveMemoryFolder("dropped-key-tests")
        base = try AbsoluteURL("http://h/l.m3u8")
    }

    private var live: LiveMemory { folder.live }
    private var zero: WallTime { folder.zero }

    /// The last text of a list, as received at a time.
    private func place(of list: String, at seconds: Int64) -> LiveMemory.Place {
        let now = zero + Interval.seconds(seconds)
        return LiveMemory.Place(
            list: ObjectKey(sha256Of: list), generation: generation,
            times: EpochTable.Times(requested: now, received: now, steady: steadyTimes(seconds)),
            keyVersion: 0)
    }

    /// Reads a window of one-second segments with one key; without the key and the first segments
    /// if it is a delta update.
    private func read(
        _ first: Int, _ key: String, of list: String = "list", count: Int = 3,
        skipping skipped: Int = 0, at seconds: Int64
    ) throws {
        generation += 1
        now = seconds
        var text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        text += "#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=6.0\n"
        text +=
            skipped > 0
            ? "#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n"
            : "#EXT-X-KEY:METHOD=AES-128,URI=\"\(key)\"\n"
        for number in (first + skipped)..<(first + count) { text += "#EXTINF:1,\ns\(number)\n" }
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
        live.take(reading, at: place(of: list, at: seconds)) { url, _ in
            ObjectKey(CacheKey(url: url.text))
        }
    }

    private func resource(
        _ name: String, epoch: Epoch = .first, role: ResourceRole = .key, policy: Policy = .media
    ) throws -> Resource {
        let url = try AbsoluteURL("http://h/\(name)")
        return Resource(
            .init(
                url: url, cacheKey: CacheKey(url: url.text, epoch: epoch),
                session: Session(startingAt: base), role: role, policy: policy,
                forwardedFields: Fields()))
    }

    /// Whether a key that was fetched at a time is the one that its segments need, for the origin's
    /// answer at the time of the last reading.
    private func keeps(_ resource: Resource, fetchedAt seconds: Int64) -> Bool {
        let came = zero + Interval.seconds(seconds)
        let facts = ObjectFacts(
            head: StoredHead(
                status: .ok, fields: Fields(), requestTime: came, responseTime: came,
                finalURL: resource.url.text),
            generation: 1_000, times: steadyTimes(seconds))
        let name = ObjectKey(CacheKey(url: resource.url.text))
        return live.keepsKey(
            facts, resource, named: name, at: Monotonic(nanoseconds: now * 1_000_000_000))
    }

    @Test func `a key is kept once no list shows it`() throws {
        let (key, next) = (try resource("k0"), try resource("k1"))
        try read(0, "k0", at: 100)
        #expect(!keeps(key, fetchedAt: 101), "its origin may have changed it")
        try read(3, "k1", at: 103)
        #expect(keeps(key, fetchedAt: 101))
        #expect(!keeps(key, fetchedAt: 99), "it came before its name had this meaning")
        #expect(!keeps(next, fetchedAt: 104))
    }

    @Test func `a list that nobody reads any more shows no key`() throws {
        let key = try resource("k0")
        try read(0, "k0", at: 100)
        try read(0, "k0", of: "another variant", at: 101)
        try read(3, "k1", at: 103)
        #expect(!keeps(key, fetchedAt: 102), "the other variant may still be read")
        try read(6, "k1", at: 106)
        #expect(keeps(key, fetchedAt: 102))
        #expect(!keeps(key, fetchedAt: 99), "it came before its name had this meaning")
        try read(3, "k0", of: "another variant", at: 107)
        #expect(!keeps(key, fetchedAt: 102))
    }

    @Test func `a list whose text stands still is read all the same`() throws {
        let key = try resource("k0")
        try read(0, "k0", at: 100)
        for seconds in [104, 108, 112] as [Int64] {
            now = seconds
            let isKnown = live.knows(place(of: "list", at: seconds))
            #expect(isKnown)
            #expect(!keeps(key, fetchedAt: 101), "the origin has said that the list is current")
        }
        now = 116
        #expect(keeps(key, fetchedAt: 101), "nobody reads the list any more")
    }

    @Test func `a list shows the key of the segments that its delta updates skip`() throws {
        let key = try resource("k0")
        try read(0, "k0", count: 6, at: 100)
        try read(0, "k0", of: "another variant", at: 101)
        try read(1, "k0", count: 6, skipping: 5, at: 103)
        try read(3, "k0", count: 6, skipping: 4, at: 105)
        #expect(!keeps(key, fetchedAt: 102), "the other variant is not read any more")
        try read(6, "k1", count: 6, at: 108)
        #expect(keeps(key, fetchedAt: 102))
    }

    @Test func `a key that changes under one URL is never taken for the next one`() throws {
        let key = try resource("k")
        try read(0, "k", at: 100)
        try read(3, "k", at: 103)
        #expect(!keeps(key, fetchedAt: 101))
    }

    @Test func `a key that no list of this run has shown is kept`() throws {
        let key = try resource("k0")
        try read(30, "k5", at: 100)
        #expect(keeps(key, fetchedAt: 10))
    }

    @Test func `a key of a former epoch is kept, and not a copy for one session`() throws {
        let former = try resource("k")
        try read(100, "k", at: 100)
        try read(0, "k", at: 130)
        let epoch = live.epoch(of: former.nameKey)
        let present = try resource("k", epoch: epoch)
        #expect(epoch != .first)
        #expect(keeps(former, fetchedAt: 101))
        #expect(!keeps(present, fetchedAt: 131))
        #expect(!keeps(former.ownCopy, fetchedAt: 101))
    }

    @Test func `only keys that playlist semantics apply to are kept`() throws {
        for policy in Policy.allCases {
            let key = try resource("k0", policy: policy)
            #expect(keeps(key, fetchedAt: 1) == (policy == .media))
        }
        let segment = try resource("s0", role: .segment)
        #expect(!keeps(segment, fetchedAt: 1))
    }
}
