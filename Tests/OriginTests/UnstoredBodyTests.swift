import Model
@testable import Origin
import Posix
import Testing

/// What is freed of a body that is not stored, and when its transfer waits.
@Suite struct UnstoredBodyTests {
    @Test func `bytes are freed beyond two windows, and again a window later`() {
        var body = UnstoredBody()
        #expect(body.kept(80_000_000) == nil)
        #expect(body.kept(80_000_001) == KeptBytes.windows(40_000_000))
        body.noteFreed(leaving: 60_000_000, window: UnstoredBody.testWindow)
        #expect(body.kept(100_000_000) == nil)
        #expect(body.kept(100_000_001) == KeptBytes.windows(40_000_000))
        body.noteFreed(leaving: 100_000_001, window: UnstoredBody.testWindow)
        // Readers that have left held much of it.
        #expect(body.kept(45_000_000) == nil)
        #expect(body.kept(85_000_000) == nil)
        #expect(body.kept(85_000_001) == KeptBytes.windows(40_000_000))
    }

    @Test func `where nothing brings the rest, readers keep what they need`() {
        var body = UnstoredBody()
        #expect(body.kept(90_000_000, mayLeaveBehind: false) == KeptBytes.needed(from: 5_000_000))
        #expect(body.kept(90_000_000, isFreeable: false) == nil)
    }

    @Test func `readers keep a window or what they need, and what a response is compared with`() {
        let needs: [Range<Int64>] = [
            0..<Int64.max, 20_000_000..<30_000_000, 60_000_000..<Int64.max,
        ]
        let compared = StoredBody.mostCompared
        let windows: [Range<Int64>] = [
            0..<40_000_000, 20_000_000 - compared..<30_000_000,
            60_000_000 - compared..<100_000_000,
        ]
        #expect(KeptBytes.windows(40_000_000).ranges(for: needs) == windows)
        // The first two were given up.
        let needed: [Range<Int64>] = [
            0..<50_000_000, 20_000_000 - compared..<30_000_000,
            60_000_000 - compared..<60_000_000 + KeptBytes.everything,
        ]
        #expect(KeptBytes.needed(from: 50_000_000).ranges(for: needs) == needed)
    }

    // MARK: Waiting

    /// The slowest reader is so far behind the end of what was fetched, at 100 MB.
    private func gap(_ length: Int64) -> UnstoredGap {
        UnstoredGap(
            slowest: 100_000_000 - length, written: 100_000_000, window: UnstoredBody.testWindow)
    }

    private func step(
        _ length: Int64, isStarving: Bool = false, mayLeaveBehind: Bool = false,
        isOnShortDisk: Bool = false
    ) -> UnstoredGap.Step {
        gap(length).step(
            isStarving: isStarving, mayLeaveBehind: mayLeaveBehind, isOnShortDisk: isOnShortDisk)
    }

    @Test func `a reader two windows behind is waited for where nothing brings it the rest`() {
        #expect(step(80_000_000) == UnstoredGap.Step.goOn)
        #expect(step(80_000_001) == UnstoredGap.Step.wait)
        #expect(step(80_000_001, isStarving: true) == UnstoredGap.Step.wait)
        #expect(step(80_000_001, isStarving: true, mayLeaveBehind: true) == UnstoredGap.Step.goOn)
    }

    @Test func `on a short disk a reader is awaited, and left behind when another one starves`() {
        let margin = UnstoredBody.margin
        #expect(step(margin, isOnShortDisk: true) == UnstoredGap.Step.goOn)
        #expect(step(margin + 1, isOnShortDisk: true) == UnstoredGap.Step.wait)
        #expect(
            step(margin + 1, mayLeaveBehind: true, isOnShortDisk: true) == UnstoredGap.Step.wait)
        let last = step(margin + 1, isStarving: true, mayLeaveBehind: true, isOnShortDisk: true)
        #expect(last == UnstoredGap.Step.free(.shares(gap(margin + 1), stuck: nil)))
    }

    /// What a flight does that looks for its slowest reader some seconds after it paused.
    private func look(
        _ body: inout UnstoredBody, at gap: UnstoredGap?, _ positions: [Readers.ID: Int64],
        after seconds: Int64, isStarving: Bool, mayLeaveBehind: Bool = false
    ) -> UnstoredBody.Look {
        let start = Monotonic(nanoseconds: 1_000_000_000_000)
        return body.look(
            at: gap, positions: positions, isStarving: isStarving, mayLeaveBehind: mayLeaveBehind,
            isOnShortDisk: true, waited: .seconds(seconds), patience: .seconds(30),
            now: start + .seconds(seconds))
    }

    @Test(arguments: [false, true])
    func `a reader that has not moved for a minute is left behind if another one starves`(
        _ mayLeaveBehind: Bool
    ) {
        let readers = Readers()
        let (slow, fast) = (readers.enter(1, from: 0, to: nil), readers.enter(1, from: 0, to: nil))
        let positions: [Readers.ID: Int64] = [slow: 10_000_000, fast: 100_000_000]
        var body = UnstoredBody()
        _ = body.beginWaiting()
        var looks: [UnstoredBody.Look] = []
        for (second, isStarving) in [(0, true), (59, true), (60, false), (61, true)] {
            looks.append(
                look(
                    &body, at: gap(90_000_000), positions, after: Int64(second),
                    isStarving: isStarving, mayLeaveBehind: mayLeaveBehind))
        }
        // The fast reader is at the end, and stands there only for want of bytes.
        let stuck: Set<Int64>? = mayLeaveBehind ? nil : [10_000_000, 100_000_000]
        let expected: [UnstoredBody.Look] = [
            .wait, .wait, .end, .free(.shares(gap(90_000_000), stuck: stuck)),
        ]
        #expect(looks == expected)
    }

    @Test func `a flight that waits already goes on to wait, and later waits anew`() {
        let readers = Readers()
        let (slow, fast) = (readers.enter(1, from: 0, to: nil), readers.enter(1, from: 0, to: nil))
        let positions: [Readers.ID: Int64] = [slow: 10_000_000, fast: 100_000_000]
        var body = UnstoredBody()
        var looks: [UnstoredBody.Look] = []
        func note(after seconds: Int64) {
            looks.append(
                look(
                    &body, at: gap(90_000_000), positions, after: seconds, isStarving: true,
                    mayLeaveBehind: true))
        }
        var begins = [body.beginWaiting()]
        note(after: 0)
        // The transfer was resumed, and is paused again.
        begins.append(body.beginWaiting())
        note(after: 60)
        body.endWaiting()
        begins.append(body.beginWaiting())
        note(after: 61)
        #expect(begins == [true, false, true])
        let expected: [UnstoredBody.Look] = [
            .wait, .free(.shares(gap(90_000_000), stuck: nil)), .wait,
        ]
        #expect(looks == expected)
    }

    @Test func `a transfer that has waited for long ends unless a reader starves`() {
        var body = UnstoredBody()
        _ = body.beginWaiting()
        var looks: [UnstoredBody.Look] = []
        for (second, isStarving) in [(29, false), (30, true), (31, false)] {
            looks.append(look(&body, at: nil, [:], after: Int64(second), isStarving: isStarving))
        }
        #expect(looks == [UnstoredBody.Look.wait, .wait, .end])
    }

    @Test func `a flight that has waited for a minute looks for its readers less often`() {
        let pauses = [0, 59, 60].map { (seconds: Int64) in
            UnstoredBody.pauseBeforeLook(afterWaiting: .seconds(seconds)).nanoseconds / 1_000_000
        }
        #expect(pauses == [50, 50, 500])
    }
}

extension UnstoredBody {
    fileprivate static let testWindow: Int64 = 40_000_000

    /// Returns what readers keep of so many present bytes, the last of which follow the hole before
    /// 5 MB.
    fileprivate mutating func kept(
        _ present: Int64, isFreeable: Bool = true, mayLeaveBehind: Bool = true
    ) -> KeptBytes? {
        kept(
            of: present, window: Self.testWindow, isFreeable: isFreeable,
            mayLeaveBehind: mayLeaveBehind, from: 5_000_000)
    }
}
