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

/// What an earlier run stored, and whether its names still mean it.
@Suite struct FormerEpochTests {
    private let list = ObjectKey(sha256Of: "list")
    private var epochs = EpochTable()
    private var generation: UInt64 = 0

    @discardableResult
    private mutating func read(
        _ numbers: Range<Int>, at time: Int64, steady: Int64? = nil, ring: Int = .max
    ) throws -> EpochTable.Relation {
        generation += 1
        return try epochs.read(
            numbers, of: list, generation: generation, at: time, steady: steady, ring: ring)
    }

    private func start(_ number: Int) -> Int64? {
        epochs.storedStart(of: ObjectKey(sha256Of: "http://h/s\(number)")).map {
            $0.seconds - 1_800_000_000
        }
    }

    @Test mutating func `each name of a stored window has the time at which it was shown first`()
        throws
    {
        try read(7..<13, at: 100)
        #expect(start(12) == 97 && start(7) == 92 && start(6) == nil)
        // The daemon was off for longer than the window.
        try read(20..<26, at: 130, steady: 1)
        #expect(start(12) == 97 && start(7) == 92 && start(20) == nil)
        try read(21..<27, at: 131, steady: 2)
        #expect(start(12) == 97 && start(7) == 92)
    }

    @Test(arguments: [(105, .goesOn), (130, .doubtful)] as [(Int64, EpochTable.Relation)])
    mutating func `a name that a ring shows again has lost its meaning, also once it has left`(
        time: Int64, relation: EpochTable.Relation
    ) throws {
        try read(7..<13, at: 100, ring: 20)
        #expect(try read(27..<33, at: time, steady: 1, ring: 20) == relation)
        #expect(start(7) == nil && start(12) == nil)
        try read(33..<39, at: time + 6, steady: 7, ring: 20)
        #expect(start(7) == nil && start(12) == nil)
    }

    @Test mutating func `a stream that counts anew takes the names that it shows`() throws {
        try read(7..<13, at: 100)
        #expect(try read(0..<8, at: 130, steady: 1) == .reset)
        #expect(start(7) == nil && start(12) == 97)
    }

    @Test mutating func `a name that this run has seen first has no such time`() throws {
        try read(7..<13, at: 100, steady: 1)
        #expect(start(7) == nil)
    }

    @Test(arguments: [(91, false), (92, true), (99, true)] as [(Int64, Bool)])
    func `what arrived while the stored window showed its name is what the name means`(
        time: Int64, isKept: Bool
    ) throws {
        let folder = try makeTemporaryFolder("former-epoch-tests")
        defer { removeTree(folder) }
        var log = Logger(label: "former-epoch-tests")
        log.logLevel = .critical
        let database = try StateDatabase(folder: folder, log: log)
        defer { database.close() }
        let zero = WallTime(seconds: 1_800_000_000)
        let live = LiveMemory(database: database, counters: Counters(), now: zero)
        let base = try AbsoluteURL("http://h/l.m3u8")
        let text =
            "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:7\n"
            + (7..<13).map { "#EXTINF:1,\ns\($0)\n" }.joined()
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
        let read = zero + Interval.seconds(Int64(100))
        let place = LiveMemory.Place(
            list: list, generation: 1, times: EpochTable.Times(requested: read, received: read),
            keyVersion: 0)
        live.take(reading, at: place) { url, _ in ObjectKey(CacheKey(url: url.text)) }
        func resource(_ policy: Policy) throws -> Resource {
            let url = try AbsoluteURL("http://h/s7")
            return Resource(
                .init(
                    url: url, cacheKey: CacheKey(url: url.text),
                    session: Session(startingAt: base), role: .segment, policy: policy,
                    forwardedFields: Fields()))
        }
        let came = zero + Interval.seconds(time)
        let facts = ObjectFacts(
            head: StoredHead(
                status: .ok, fields: Fields(), requestTime: came, responseTime: came,
                finalURL: "http://h/s7"),
            generation: 2)
        let segment = try resource(.media)
        #expect(live.isOfFormerEpoch(facts, segment))
        #expect(live.keepsMeaning(facts, segment) == isKept)
        // HTTP decides there, and the policy refresh asks for what the origin has.
        for policy in [Policy.rfc, .refresh] {
            let other = try resource(policy)
            #expect(!live.keepsMeaning(facts, other))
        }
    }
}
