import Library
import Posix
import Testing
import URISyntax

@testable import TimeShifting

/// When a recording is over while the wall clock is set.
@Suite struct RecordingTimeTests {
    private let wall = WallTime(seconds: 1_700_000_000)
    private let now = Monotonic(nanoseconds: 7)

    /// A recording of two hours.
    private func order() throws -> RecordingOrder {
        try RecordingOrder(query: "url=http%3A%2F%2Fa.example%2Fl.m3u8&for=2h", now: wall) {
            try? AbsoluteURL($0)
        }
    }

    /// The first minute in which a recording is over, which is looked at once a minute.
    private func end(
        _ order: inout RecordingOrder, _ time: RecordingTime, set seconds: Int64, at minute: Int64
    ) -> Int64? {
        for elapsed: Int64 in 0..<1_000 {
            let length = Interval.seconds(60 * elapsed)
            let civil = wall + length + .seconds(elapsed >= minute ? seconds : 0)
            let moved = time.move(&order, wall: civil, now: now + length)
            #expect(!moved || elapsed == minute)
            if time.isOver(order, wall: civil, now: now + length) { return elapsed }
        }
        return nil
    }

    @Test(arguments: [0, 3 * 3_600, -3 * 3_600, 9 * 86_400, 5] as [Int64])
    func `one that this run began has its length, and times by the clock as it is set`(
        seconds: Int64
    ) throws {
        var order = try order()
        let asked = order
        let time = RecordingTime(order, isNew: true, wall: wall, now: now)
        let end = end(&order, time, set: seconds, at: 1)
        #expect(end == 120)
        let step = Interval.seconds(seconds == 5 ? 0 : seconds)
        #expect(order.until == asked.until + step && order.started == asked.started + step)
        // Another node takes it.
        #expect(RecordingOrder(id: order.id, sharedQuery: order.query) == order)
    }

    @Test(
        arguments: [
            (0, 90), (3 * 3_600, 45), (-3 * 3_600, 120), (-600, 100),
        ] as [(Int64, Int64)])
    func `one of an earlier run ends by the wall clock, within its length`(
        seconds: Int64, minute: Int64
    ) throws {
        var order = try order()
        order.started = order.started + .seconds(-1_800 as Int64)
        order.until = order.until + .seconds(-1_800 as Int64)
        let asked = order
        let time = RecordingTime(order, isNew: false, wall: wall, now: now)
        let end = end(&order, time, set: seconds, at: 45)
        #expect(end == minute && order == asked)
    }

    @Test func `what is received after the second of its end was received after it`() throws {
        var order = try order()
        #expect(!order.hadEnded(before: wall + .seconds(60 as Int64)))
        order.ended = wall + .milliseconds(300)
        let saved = try #require(RecordingOrder(order.record))
        for order in [order, saved] {
            #expect(!order.hadEnded(before: wall))
            #expect(!order.hadEnded(before: wall + .milliseconds(200)))
            #expect(order.hadEnded(before: wall + .seconds(1 as Int64)))
        }
    }
}
