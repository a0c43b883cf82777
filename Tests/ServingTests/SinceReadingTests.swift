import CachePolicy
import HLS
import HTTP
@testable import Model
import Posix
import Routing
@testable import Serving
import Store
import Testing
import TimeShiftSupport
import TimeShifting
import URISyntax

/// How long ago a live list was read, for a plan that began at some time.
@Suite final class SinceReadingTests {
    private let folder: String
    private let table: TimeShiftTable
    /// When the list was received.
    private let wall = WallTime(seconds: 1_800_000_000)
    private let steady = Monotonic(nanoseconds: 5_000_000_000)

    init() throws {
        folder = try makeTemporaryFolder("since-reading")
        table = try TimeShiftTable(in: folder)
    }

    deinit {
        table.thread.stop()
        table.store.close()
        removeTree(folder)
    }

    /// Returns a list that was read.
    private func read() throws -> Resource {
        let url = try AbsoluteURL("http://h/l.m3u8")
        let list = Resource(
            .init(
                url: url, cacheKey: CacheKey(url: url.text),
                session: Session(id: SessionID(7), fields: Fields()), role: .playlist,
                policy: .media, forwardedFields: Fields()))
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na\n"
        let reading = try #require(
            try LiveReading(Array(text.utf8), base: url, options: PlaylistReading()))
        let place = LiveMemory.Place(
            list: list.listKey, generation: 1,
            times: EpochTable.Times(
                requested: wall, received: wall,
                steady: SteadyTimes(requested: steady, received: steady)),
            keyVersion: 0)
        table.live.take(reading, at: place) { url, _ in ObjectKey(sha256Of: url.text) }
        return list
    }

    /// Returns the time since a list was read, by the clocks of a round so much later.
    private func since(
        _ list: Resource, wall later: Interval, steady steadyLater: Interval?
    ) -> Interval {
        table.live.sinceReading(
            of: list,
            RequestCircumstances(
                fields: Fields(), now: wall + later, steadyNow: steadyLater.map { steady + $0 },
                isShared: false))
    }

    @Test func `a list received after the round had read the clock was read just now`() throws {
        let list = try read()
        let (later, before) = (Interval.seconds(2), Interval.milliseconds(-5))
        #expect(since(list, wall: later, steady: later) == later)
        #expect(since(list, wall: before, steady: before) == Interval.zero)
        // A clock that was set back shows nothing.
        let unknown = Interval(nanoseconds: .max)
        #expect(since(list, wall: before, steady: nil) == unknown)
    }
}
