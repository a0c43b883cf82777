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
    private let folder: String
    private let database: StateDatabase
    private let live: LiveMemory
    private let zero = WallTime(seconds: 1_800_000_000)
    private let base: AbsoluteURL
    private var generation: UInt64 = 0
    /// The time of the last reading, in seconds.
    private var now: Int64 = 0

    init() throws {
        folder = try makeTemporaryFolder("dropped-key-tests")
        var log = Logger(label: "dropped-key-tests")
        log.logLevel = .critical
        database = try StateDatabase(folder: folder, log: log)
        live = LiveMemory(database: database, counters: Counters(), now: zero)
        base = try AbsoluteURL("http://h/l.m3u8")
    }

    deinit {
        database.close()
        removeTree(folder)
    }

    private func times(_ seconds: Int64) -> SteadyTimes {
        let time = Monotonic(nanoseconds: seconds * 1_000_000_000)
        return SteadyTimes(requested: time, received: time)
    }

    /// Reads a window of three one-second segments with one key.
    private func read(
        _ first: Int, _ key: String, of list: String = "list", at seconds: Int64
    ) throws {
        generation += 1
        self.now = seconds
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
            + "#EXT-X-KEY:METHOD=AES-128,URI=\"\(key)\"\n"
            + (first..<(first + 3)).map { "#EXTINF:1,\ns\($0)\n" }.joined()
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
        let now = zero + Interval.seconds(seconds)
        let place = LiveMemory.Place(
            list: ObjectKey(sha256Of: list), generation: generation,
            times: EpochTable.Times(requested: now, received: now, steady: times(seconds)),
            keyVersion: 0)
        live.take(reading, at: place) { url, _ in ObjectKey(CacheKey(url: url.text)) }
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
            generation: 1_000, times: times(seconds))
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
