import CachePolicy
import DurableState
import HLS
import HTTP
import Logging
import Posix
import Routing
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

    /// A stage for what is stored of a stream of one-second segments.
    private final class Stage {
        private let folder: LiveMemoryFolder
        private let base: AbsoluteURL
        private var generation: UInt64 = 0
        var live: LiveMemory { folder.live }

        init() throws {
            folder = try LiveMemoryFolder("former-epoch-tests")
            base = try AbsoluteURL("http://h/l.m3u8")
        }

        /// Reads the list as received at a time, in seconds, of this run or an earlier one.
        func read(_ numbers: Range<Int>, at seconds: Int64, ofThisRun isOfThisRun: Bool) throws {
            generation += 1
            let text =
                "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:\(numbers.lowerBound)\n"
                + numbers.map { "#EXTINF:1,\ns\($0)\n" }.joined()
            let reading = try #require(
                try LiveReading(Array(text.utf8), base: base, options: PlaylistReading()))
            let time = folder.zero + Interval.seconds(seconds)
            let place = LiveMemory.Place(
                list: ObjectKey(sha256Of: "list"), generation: generation,
                times: EpochTable.Times(
                    requested: time, received: time,
                    steady: isOfThisRun ? steadyTimes(seconds) : nil),
                keyVersion: 0)
            live.take(reading, at: place) { url, _ in ObjectKey(CacheKey(url: url.text)) }
        }

        /// What was stored at a time, in seconds, of this run or an earlier one.
        func stored(at seconds: Int64, inThisRun isOfThisRun: Bool) -> ObjectFacts {
            let time = folder.zero + Interval.seconds(seconds)
            return ObjectFacts(
                head: StoredHead(
                    status: .ok, fields: Fields(), requestTime: time, responseTime: time,
                    finalURL: "http://h/s"),
                generation: 1_000, times: isOfThisRun ? steadyTimes(seconds) : nil)
        }

        /// A segment in a session with the origin's window, or with a longer one.
        func segment(
            _ number: Int, _ policy: Policy = .media, isShifted: Bool = false
        ) throws -> Resource {
            let url = try AbsoluteURL("http://h/s\(number)")
            let shifted = Session(
                id: SessionID(7), fields: Fields(), shift: Session.Shift(window: 600))
            return Resource(
                .init(
                    url: url, cacheKey: CacheKey(url: url.text),
                    session: isShifted ? shifted : Session(startingAt: base), role: .segment,
                    policy: policy, forwardedFields: Fields()))
        }
    }

    @Test(arguments: [(91, false), (92, true), (99, true)] as [(Int64, Bool)])
    func `what arrived while the stored window showed its name is what the name means`(
        time: Int64, isKept: Bool
    ) throws {
        let stage = try Stage()
        try stage.read(7..<13, at: 100, ofThisRun: false)
        let facts = stage.stored(at: time, inThisRun: false)
        let segment = try stage.segment(7)
        #expect(stage.live.isOfFormerEpoch(facts, segment))
        #expect(stage.live.keepsMeaning(facts, segment) == isKept)
        // HTTP decides there, and the policy refresh asks for what the origin has.
        for policy in [Policy.rfc, .refresh] {
            let other = try stage.segment(7, policy)
            #expect(!stage.live.keepsMeaning(facts, other))
        }
    }

    @Test func `a list that lagged once has no place of a longer window revalidated for ever`()
        throws
    {
        let stage = try Stage()
        try stage.read(10..<16, at: 100, ofThisRun: true)
        let facts = stage.stored(at: 101, inThisRun: true)
        func doubted(isShifted: Bool) throws -> [Int] {
            try (10..<16).filter {
                stage.live.isOfFormerEpoch(facts, try stage.segment($0, isShifted: isShifted))
            }
        }
        #expect(try doubted(isShifted: false).isEmpty)
        try stage.read(8..<14, at: 102, ofThisRun: true)
        try stage.read(12..<18, at: 104, ofThisRun: true)
        // The origin still has those of its window.
        #expect(try doubted(isShifted: true) == Array(12..<16))
        try stage.read(18..<24, at: 110, ofThisRun: true)
        #expect(try doubted(isShifted: true).isEmpty)
        #expect(try doubted(isShifted: false) == Array(10..<16))
    }
}
