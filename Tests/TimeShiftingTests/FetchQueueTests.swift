import Posix
import Testing

@testable import TimeShifting

/// The pieces of a growing playlist: attempts, outages and refusals.
@Suite struct FetchQueueTests {
    /// Fails a piece until it is tried no more; returns the last verdict and the seconds it took.
    private static func exhaust(
        _ queue: inout FetchQueue<Int>, _ piece: Int, mayPass: Bool
    ) -> (verdict: FetchQueue<Int>.Verdict, seconds: Double) {
        var seconds = 0.0
        while true {
            let verdict = queue.failed(piece, mayPass: mayPass)
            guard case .again(let delay) = verdict else { return (verdict, seconds) }
            seconds += delay.inSeconds
            queue.retry(piece)
            guard queue.next() == piece else { return (verdict, -1) }
        }
    }

    /// Fetches all that wait, each with success or failure; returns them.
    private static func fetch(
        _ queue: inout FetchQueue<Int>, stores: (Int) -> Bool
    ) -> [Int] {
        var fetched: [Int] = []
        while let piece = queue.next() {
            fetched.append(piece)
            if stores(piece) {
                queue.stored(piece)
            } else {
                _ = queue.failed(piece, mayPass: true)
            }
        }
        return fetched
    }

    private static func lapsed(_ count: Int) -> FetchQueue<Int> {
        var queue = FetchQueue<Int>()
        for piece in 0..<count { _ = exhaust(&queue, piece, mayPass: true) }
        return queue
    }

    @Test func `a piece is tried six times in a quarter of a minute`() {
        var queue = FetchQueue<Int>()
        queue.add(1)
        #expect(queue.next() == 1 && queue.next() == nil)
        let end = Self.exhaust(&queue, 1, mayPass: false)
        #expect(end.verdict == .givenUp && end.seconds == 15.5)
        #expect(queue.isIdle)
        queue.tryLapsed(most: 4) { _ in true }
        #expect(queue.next() == nil)
    }

    @Test func `a piece that the origin has removed for good is requested once`() {
        var queue = FetchQueue<Int>()
        #expect(queue.failed(1, mayPass: false, isFinal: true) == .givenUp)
        #expect(queue.isIdle)
        // What is not there yet at the live edge is asked for again.
        #expect(queue.failed(2, mayPass: false) == .again(after: .milliseconds(500)))
        #expect(!queue.isIdle)
        // It has left the window since.
        #expect(queue.failed(2, mayPass: false, isFinal: true) == .givenUp)
        #expect(queue.isIdle)
    }

    @Test func `an outage of any length keeps no piece from being fetched after it`() {
        var queue = Self.lapsed(50)
        #expect(queue.isIdle)
        // The origin answers again, but not at once.
        queue.tryLapsed(most: 4) { _ in true }
        #expect(Self.fetch(&queue) { _ in false } == [0, 1, 2, 3])
        queue.tryLapsed(most: 4) { _ in true }
        let fetched = Self.fetch(&queue) { _ in true }
        #expect(fetched == Array(4..<50) + [0, 1, 2, 3])
        #expect(queue.isIdle)
    }

    @Test func `an origin that refuses pieces is asked for a few at a time`() {
        var queue = Self.lapsed(50)
        var asked: [Int] = []
        for _ in 0..<25 {
            queue.tryLapsed(most: 4) { _ in true }
            // Another reading of the playlist brings no more while these are under way.
            queue.tryLapsed(most: 4) { _ in true }
            asked += Self.fetch(&queue) { _ in false }
        }
        #expect(asked.count == 100)
        // Each in its turn.
        #expect(Set(asked.prefix(50)).count == 50)
    }

    @Test func `pieces that are put off are fetched once the origin answers, with all attempts`() {
        var queue = FetchQueue<Int>()
        _ = queue.failed(1, mayPass: true)
        queue.retry(1)
        for piece in 2...4 { queue.add(piece) }
        while let piece = queue.next() { queue.putOff(piece) }
        #expect(queue.isIdle && queue.next() == nil)
        queue.add(5)
        queue.tryLapsed(most: 1) { $0 != 3 }
        let next = (1...5).map { _ in queue.next() }
        #expect(next == [1, 2, 4, 5, nil])
        // It may not be there yet.
        #expect(queue.failed(2, mayPass: false) == .again(after: .milliseconds(500)))
    }

    @Test func `a probe that is put off stays one`() {
        var queue = Self.lapsed(3)
        queue.tryLapsed(most: 1) { _ in true }
        #expect(queue.next() == 0)
        queue.putOff(0)
        queue.tryLapsed(most: 1) { _ in true }
        #expect(Self.fetch(&queue) { _ in true } == [1, 2, 0])
    }

    @Test func `a piece that has left the window is not tried again`() {
        var queue = Self.lapsed(6)
        queue.tryLapsed(most: 10) { $0 >= 4 }
        #expect(Self.fetch(&queue) { _ in true } == [4, 5])
        queue.tryLapsed(most: 10) { _ in true }
        #expect(queue.next() == nil)
    }

    @Test func `a piece that may be removed at any moment waits for all others`() {
        var queue = FetchQueue<Int>()
        for piece in 0..<10 { queue.add(piece) }
        queue.sort { $0 < 2 ? .over : $0 < 5 ? .late : .inTime }
        #expect(queue.hasPieceInTime)
        #expect(queue.next() == 5 && queue.next() == 6)
        // More of them become so while they wait.
        queue.sort { $0 < 4 ? .over : $0 < 8 ? .late : .inTime }
        queue.add(10)
        #expect(Self.fetch(&queue) { _ in true } == [8, 9, 10, 7, 4])
        #expect(queue.isIdle && !queue.hasPieceInTime)
    }

    @Test func `a piece that gave way to others is fetched after them while it may be there`() {
        var queue = FetchQueue<Int>()
        for piece in 1...6 { queue.add(piece) }
        let begun = [queue.next(), queue.next(), queue.next()]
        #expect(begun == [1, 2, 3])
        // The window has moved on before their turn came.
        queue.putBack(1, as: .over)
        queue.putBack(2, as: .late)
        queue.putBack(3, as: .inTime)
        #expect(Self.fetch(&queue) { _ in true } == [3, 4, 5, 6, 2])
        #expect(queue.isIdle)
    }

    @Test func `a retried piece that is dropped leaves nothing behind`() {
        var queue = FetchQueue<Int>()
        _ = queue.failed(1, mayPass: true)
        queue.retry(1)
        queue.sort { _ in .late }
        #expect(!queue.isIdle && !queue.hasPieceInTime)
        queue.sort { _ in .over }
        #expect(queue.isIdle)
        // A probe that is dropped makes room for another one.
        queue = Self.lapsed(2)
        queue.tryLapsed(most: 1) { _ in true }
        queue.sort { _ in .over }
        queue.tryLapsed(most: 1) { _ in true }
        #expect(queue.next() == 1)
    }

    @Test func `a queue that is served at half its pace still gets every second piece in time`() {
        // The origin keeps six pieces, and one is fetched while two appear.
        var queue = FetchQueue<Int>()
        var fetched = 0
        for newest in 0..<400 {
            queue.add(newest)
            let start = newest - 5
            queue.sort { $0 < start - 8 ? .over : $0 <= start ? .late : .inTime }
            guard newest % 2 == 0, let piece = queue.next() else { continue }
            if piece >= start { fetched += 1 }
        }
        #expect(fetched == 200)
    }

    @Test func `nothing is tried again after all was removed or cancelled`() {
        var queue = Self.lapsed(3)
        queue.add(9)
        _ = queue.next()
        _ = queue.failed(9, mayPass: true)
        queue.removeAll()
        queue.retry(9)
        queue.tryLapsed(most: 4) { _ in true }
        #expect(queue.next() == nil && queue.isIdle)
        queue = Self.lapsed(1)
        queue.tryLapsed(most: 1) { _ in true }
        _ = queue.next()
        queue.cancelled(0)
        queue.tryLapsed(most: 1) { _ in true }
        #expect(queue.next() == nil)
    }
}
