import CachePolicy
import HLS
import HTTP
@testable import Model
@testable import Origin
import Posix
import Store
import Testing
import URISyntax
import Upstream

/// The rules of flights that need no state.
@Suite struct `Rules of flights` {
    private let limits = FlightStory.limits

    private func delay(
        _ failures: Int, hasBody: Bool = true, waited: Int64 = 0, jitter: Double = 0
    ) -> Int64? {
        limits.delay(
            afterFailures: failures, hasBody: hasBody, waited: .milliseconds(waited),
            jitter: jitter
        ).map { $0.nanoseconds / 1_000_000 }
    }

    // MARK: Delays

    @Test func `delays double from 100 ms, with up to half of each added`() {
        #expect((1...4).map { delay($0) } == [100, 200, 400, 800])
        #expect((1...4).map { delay($0, jitter: 1) } == [150, 300, 600, 1_200])
    }

    @Test func `attempts are counted, and fewer are made for a head`() {
        #expect(delay(4) != nil && delay(5) == nil)
        #expect(delay(2, hasBody: false) != nil && delay(3, hasBody: false) == nil)
    }

    @Test func `no attempt follows the end of patience except the first of a stalled body`() {
        #expect(delay(2, waited: 7_800) == 200 && delay(2, waited: 7_801) == nil)
        #expect(delay(1, waited: 60_000) == 100)
        #expect(delay(1, hasBody: false, waited: 60_000) == nil)
    }

    @Test func `an absurd number of failures does not trap`() {
        var limits = limits
        limits.retries = .max
        limits.patience = Interval(nanoseconds: .max)
        for failures in [0, 7, 8, 64, 1_000, .max] {
            let delay = limits.delay(
                afterFailures: failures, hasBody: true, waited: .zero, jitter: 1)
            #expect(delay.map { $0 <= .milliseconds(9_600) } == true)
        }
    }

    // MARK: The return of an origin

    /// The mark of an origin that answered at the time 0 and has been silent since.
    private func mark(_ kind: UpstreamError.Kind = .connectTimeout) throws -> OriginHealth.Mark {
        let health = OriginHealth()
        let origin = FlightStory.resource().url.origin
        let start = Monotonic(nanoseconds: 0)
        _ = health.answered(origin, now: start)
        for seconds: Int64 in [5, 6] {
            _ = health.failed(
                OriginHealth.Failure(
                    origin: origin, error: UpstreamError(kind, host: "h"),
                    silentSince: start + .seconds(1 as Int64), now: start + .seconds(seconds)))
        }
        return try #require(health.mark(of: origin))
    }

    private func machine(
        begunAt seconds: Int64, _ change: (inout FlightJob) -> Void = { _ in }
    ) -> FlightMachine {
        FlightStory {
            $0 = FlightJob(
                resource: FlightStory.resource(), limits: limits,
                begunAt: Monotonic(nanoseconds: seconds * 1_000_000_000), awaitsReturn: true)
            change(&$0)
        }.machine
    }

    @Test func `a request waits for its origin for 15 s, and in the first 30 s of a silence`()
        throws
    {
        let mark = try mark()
        let waits: [(begun: Int64, now: Int64, ReturnWait)] = [
            (6, 6, .lasts), (6, 20, .lasts), (6, 21, .over), (20, 30, .lasts), (20, 31, .over),
        ]
        for (begun, now, wait) in waits {
            let time = Monotonic(nanoseconds: now * 1_000_000_000)
            #expect(machine(begunAt: begun).returnWait(for: mark, now: time) == wait)
        }
        let later = Monotonic(nanoseconds: 7_000_000_000)
        #expect(machine(begunAt: 6).returnWait(for: nil, now: later) == .none)
        let refusing = try self.mark(.connect)
        #expect(machine(begunAt: 6).returnWait(for: refusing, now: later) == .none)
    }

    @Test func `a request that joins one that waits for its origin has all of the time`() throws {
        let mark = try mark()
        var story = FlightStory {
            $0 = FlightJob(
                resource: FlightStory.resource(), limits: limits,
                begunAt: Monotonic(nanoseconds: 6_000_000_000), awaitsReturn: true)
        }
        for seconds: Int64 in [6, 20] {
            story.now = Monotonic(nanoseconds: seconds * 1_000_000_000)
            story.join()
        }
        let late = story.now + .seconds(10 as Int64)
        #expect(story.machine.returnWait(for: mark, now: late) == .lasts)
        #expect(story.machine.returnWait(for: mark, now: late + .seconds(1 as Int64)) == .over)
    }

    @Test func `what may be answered otherwise, and what no player waits for, does not wait`()
        throws
    {
        let mark = try mark()
        let later = Monotonic(nanoseconds: 7_000_000_000)
        let changes: [(inout FlightJob) -> Void] = [
            { $0.awaitsReturn = false }, { $0.beganAhead = true }, { $0.revalidates = true },
            { $0.hasDirectives = true },
        ]
        for change in changes {
            #expect(machine(begunAt: 6, change).returnWait(for: mark, now: later) == .none)
        }
    }

    @Test func `a body in flight waits for as long as its origin is awaited, then asks once more`()
        throws
    {
        var story = FlightStory { $0.awaitsReturn = false }
        story.join()
        story.start()
        story.whole(1_000_000)
        story.bytes(1_000)
        let mark = try mark()
        let waits: [(now: Int64, ReturnWait)] = [(7, .lasts), (30, .lasts), (31, .none)]
        for (now, wait) in waits {
            let time = Monotonic(nanoseconds: now * 1_000_000_000)
            #expect(story.machine.returnWait(for: mark, now: time) == wait)
        }
    }

    // MARK: Resumption

    private func resumption(
        _ fill: FillFacts, wanted: Wanted = .whole, isOpaque: Bool = false,
        wasObjectGiven: Bool = true, isOpenText: Bool = false,
        _ change: (inout Resource.Parts) -> Void = { _ in }
    ) -> Resumption? {
        let job = FlightJob(
            resource: FlightStory.resource(change), limits: limits,
            begunAt: Monotonic(nanoseconds: 0))
        return Resumption(
            fill, of: wanted, isOpaque: isOpaque, wasObjectGiven: wasObjectGiven,
            isOpenText: isOpenText,
            job)
    }

    @Test func `the rest of a body is requested if its version can be verified`() {
        let known = FillFacts(offset: 10, total: 100)
        #expect(resumption(known) == .from(10, to: nil))
        #expect(resumption(known, wanted: .span(start: 0, end: 50)) == .from(10, to: 50))
        #expect(resumption(FillFacts(offset: 10, hasStrongValidator: true)) == .from(10, to: nil))
        #expect(resumption(FillFacts(offset: 10)) == nil)
        #expect(resumption(known, wanted: .suffix(5)) == nil)
    }

    @Test func `a length alone verifies playlists' media, but nothing under a mount`() {
        #expect(resumption(FillFacts(offset: 10, total: 100)) { $0.kind = .shared } == nil)
        let strong = FillFacts(offset: 10, total: 100, hasStrongValidator: true)
        #expect(resumption(strong) { $0.kind = .shared } == .from(10, to: nil))
    }

    @Test func `text that no player has received is fetched anew`() {
        let fill = FillFacts(offset: 10, total: 100)
        #expect(resumption(fill, wasObjectGiven: false, isOpenText: true) == .afresh)
        #expect(resumption(fill, wasObjectGiven: false) { $0.role = .json } == .afresh)
        #expect(resumption(fill, wasObjectGiven: false) == .from(10, to: nil))
    }

    @Test func `decoded bodies without a length and bytes at unknown offsets are not resumed`() {
        let strong = FillFacts(offset: 10, hasStrongValidator: true)
        #expect(resumption(strong) { $0.role = .json } == nil)
        #expect(resumption(strong, isOpaque: true) == nil)
        #expect(resumption(FillFacts(offset: 10, total: 100, hasHead: false)) == nil)
        #expect(resumption(FillFacts(offset: 0)) == .again)
    }

    @Test func `the rest of a body is left to a later request only if no range was ignored`() {
        let fill = FillFacts(offset: 1_500, total: 1_000_000)
        let both: FlightMachine.RangeSupport = [.taken, .ignored]
        var story = FlightStory(wanted: .span(start: 500, end: nil))
        story.join()
        story.start()
        // It claims to take ranges.
        story.whole(1_000_000)
        #expect(story.machine.ranges == both)
        #expect(!story.machine.mayContinueLater(fill))
        story.bytes(1_500)
        story.breaks()
        story.timer()
        // It takes this one; other nodes of it may not.
        story.part(1_500, 999_999, of: 1_000_000)
        #expect(story.machine.isFilling && story.machine.ranges == both)
        #expect(!story.machine.mayContinueLater(fill) && story.broken == [])
    }

    @Test func `the rest of a body is left to a later request if that proves to belong to it`() {
        func mayContinue(_ fill: FillFacts, takesRanges: Bool = true) -> Bool {
            var story = FlightStory()
            story.beginning.takesRanges = takesRanges
            story.join()
            story.start()
            story.whole(1_000_000)
            return story.machine.mayContinueLater(fill)
        }
        #expect(mayContinue(FillFacts(offset: 1_000, total: 1_000_000)))
        #expect(mayContinue(FillFacts(offset: 1_000, hasStrongValidator: true)))
        #expect(!mayContinue(FillFacts(offset: 1_000)))
        #expect(!mayContinue(FillFacts(offset: 1_000, total: 1_000_000), takesRanges: false))
    }

    // MARK: Joining

    private func covers(
        _ flight: Wanted, _ request: Wanted, position: Int64? = 0, hasObject: Bool = true,
        isAtHand: Bool = true, _ change: (inout JoinFacts) -> Void = { _ in }
    ) -> Bool {
        let story = FlightStory(wanted: flight)
        var facts = JoinFacts(
            isSameQuestion: true, wanted: request, position: position, hasObject: hasObject,
            isAtHand: isAtHand)
        change(&facts)
        return story.machine.covers(facts)
    }

    @Test func `a request joins the flight that reaches its bytes soon`() {
        #expect(covers(.whole, .whole))
        #expect(covers(.whole, .span(start: 1 << 20, end: nil)))
        #expect(!covers(.whole, .span(start: 1 << 20 + 1, end: nil)))
        #expect(covers(.whole, .span(start: 1 << 21, end: nil), position: 1 << 20))
        #expect(!covers(.span(start: 100, end: nil), .whole, position: 100))
        #expect(!covers(.span(start: 0, end: 100), .span(start: 100, end: nil)))
    }

    @Test func `a request joins only if the response is the same`() {
        #expect(!covers(.whole, .whole) { $0.isSameQuestion = false })
        #expect(!covers(.whole, .whole) { $0.isAlone = true })
        #expect(!covers(.whole, .whole) { $0.isSameObject = false })
        #expect(!covers(.whole, .whole, isAtHand: false))
        #expect(covers(.suffix(5), .suffix(5), position: nil))
        #expect(!covers(.suffix(5), .suffix(6), position: nil))
        #expect(!covers(.suffix(5), .whole, position: nil))
    }

    @Test func `no request joins a flight that is outdated or has ended`() {
        let facts = JoinFacts(
            isSameQuestion: true, wanted: .whole, position: 0, hasObject: false, isAtHand: true)
        var outdated = FlightStory()
        outdated.machine.isOutdated = true
        #expect(!outdated.machine.covers(facts))
        var ended = FlightStory()
        ended.perform(ended.machine.abandon())
        #expect(!ended.machine.covers(facts))
    }

    // MARK: What is compared

    private let body = StoredBody(spans: SpanSet([0..<100, 200..<20_000]), total: 30_000)

    @Test func `bytes before and behind a hole are requested with it`() {
        #expect(body.before(.span(start: 100, end: 200)) == 100)
        #expect(body.behind(.span(start: 100, end: 200)) == 8 << 10)
        #expect(body.before(.span(start: 150, end: 200)) == 0)
        #expect(body.behind(.span(start: 100, end: 190)) == 0)
        #expect(body.before(.span(start: 20_000, end: nil)) == 8 << 10)
        #expect(body.behind(.span(start: 20_000, end: nil)) == 0)
        #expect(body.before(.whole) == 0 && body.before(.suffix(5)) == 0)
        let attempt = FlightMachine.Attempt(
            wanted: .span(start: 100, end: 200), before: 100, behind: 50)
        #expect(attempt.rangeField == "bytes=0-249")
        #expect(attempt.askedRange == .span(start: 100, end: 200))
    }

    @Test func `a response is compared from its first byte on`() {
        #expect(body.provenStart(of: Placement(start: 0), wanted: 100) == 100)
        #expect(body.provenStart(of: Placement(start: 100), wanted: 100) == nil)
        #expect(body.provenStart(of: Placement(start: 0, total: 30_001), wanted: 100) == nil)
        #expect(body.provenStart(of: Placement(start: 0, end: 50), wanted: 100) == nil)
        // The hole begins before the wanted bytes: the stored beginning is compared.
        #expect(body.provenStart(of: Placement(start: 0), wanted: 150) == 100)
        #expect(body.provenStart(of: Placement(start: 120), wanted: 150) == nil)
    }

    // MARK: Abandonment

    @Test func `a flight is about to end if its pace predicts it`() {
        var progress = FlightProgress(
            first: 0, position: 500, end: 1_000, elapsed: .seconds(1 as Int64))
        #expect(progress.isAboutToEnd(within: .seconds(1 as Int64)))
        #expect(!progress.isAboutToEnd(within: .milliseconds(900)))
        // One burst at the beginning does not determine the pace.
        progress.elapsed = .milliseconds(1)
        progress.position = 100
        #expect(!progress.isAboutToEnd(within: .seconds(1 as Int64)))
    }

    @Test func `a flight without players is finished if little is left, or half is done`() {
        let progress = FlightProgress(first: 0, position: 500, end: 1_000, elapsed: .zero)
        #expect(progress.isMostlyDone(remainder: 500, half: 0))
        #expect(progress.isMostlyDone(remainder: 0, half: 500))
        #expect(!progress.isMostlyDone(remainder: 499, half: 499))
        let early = FlightProgress(first: 0, position: 499, end: 1_000, elapsed: .zero)
        #expect(!early.isMostlyDone(remainder: 0, half: 1_000))
    }

    @Test func `a flight without players has a grace time once the origin has its request`() {
        var story = FlightStory()
        #expect(!story.machine.hasGrace(isWithOrigin: false))
        #expect(story.machine.hasGrace(isWithOrigin: true))
        story.start(after: .milliseconds(20))
        #expect(!story.machine.hasGrace(isWithOrigin: true))
        story.machine.waiters.noteReaders()
        #expect(story.machine.hasGrace(isWithOrigin: false))
    }

    @Test func `a flight is needed while requests wait, read or arrive`() {
        var story = FlightStory()
        func isNeeded(isRead: Bool) -> Bool {
            story.machine.isNeeded(isRead: isRead, now: story.now)
        }
        #expect(!isNeeded(isRead: true), "nobody can read what was not handed out")
        let id = story.join()
        #expect(isNeeded(isRead: false))
        story.start()
        story.whole(1_000_000)
        #expect(story.told[id] == .object && isNeeded(isRead: false))
        story.pass(50)
        #expect(!isNeeded(isRead: false) && isNeeded(isRead: true))
    }

    @Test func `an object that readers have had for long is not one that was just given`() {
        var story = FlightStory(wasObjectGiven: true)
        // The clock counts from the start of the machine.
        let early = Monotonic(nanoseconds: 10_000_000)
        func isNeeded() -> Bool {
            story.machine.isNeeded(isRead: false, now: early)
        }
        #expect(story.machine.wasObjectGiven && !isNeeded())
        story.machine.waiters.noteReaders()
        #expect(!isNeeded())
        var joined = FlightStory()
        joined.machine.waiters.noteReaders()
        #expect(joined.machine.wasObjectGiven)
        #expect(!joined.machine.waiters.wasObjectGivenLately(early, within: .milliseconds(50)))
    }

    @Test func `progress is known while a body with a known end arrives`() {
        var story = FlightStory(wanted: .span(start: 100, end: nil), wasObjectGiven: true)
        story.start()
        #expect(story.machine.progress(at: 100, total: 1_000, now: story.now) == nil)
        story.part(100, 999, of: 1_000)
        story.pass(10)
        let progress = story.machine.progress(at: 200, total: 1_000, now: story.now)
        #expect(
            progress
                == FlightProgress(
                    first: 100, position: 200, end: 1_000, elapsed: .milliseconds(10)))
    }
}
