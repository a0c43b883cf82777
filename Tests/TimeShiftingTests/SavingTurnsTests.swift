import Posix
import Testing
@testable import TimeShifting

/// When windows are saved.
@Suite struct SavingTurnsTests {
    private var turns = SavingTurns()

    /// Windows that change all the time, with the times of their saves in seconds.
    private struct Windows {
        var savedAt: [Int?]
        let segmentCount: Int
        let byteCount: Int
        var recorded: Set<Int> = []

        var candidates: [SavingTurns.Candidate<Int>] {
            savedAt.indices.map { index in
                SavingTurns.Candidate(
                    item: index, isRecorded: recorded.contains(index),
                    savedAt: savedAt[index].map { Monotonic(seconds: $0) },
                    segmentCount: segmentCount, byteCount: savedAt[index] == nil ? 0 : byteCount)
            }
        }
    }

    @Test mutating func `hundreds of windows of hours take 5 MB a second, each in its turn`() {
        var windows = Windows(
            savedAt: Array(repeating: nil, count: 500), segmentCount: 5_400, byteCount: 900_000)
        var saved = 0
        for second in 0..<120 {
            let next = turns.next(of: windows.candidates, now: Monotonic(seconds: second))
            // Neither does the first turn save all.
            #expect(next.count <= 7)
            for window in next { windows.savedAt[window.item] = second }
            saved += next.count
        }
        #expect(saved * 900_000 <= 121 * SavingTurns.bytesPerTurn)
        // All within 500 * 0.9 MB / 5 MB s, and none twice before another.
        #expect(windows.savedAt.allSatisfy { ($0 ?? 0) >= 120 - 100 })
    }

    @Test func `windows of recordings come first, then those saved longest ago or never`() {
        let saves: [(name: String, isRecorded: Bool, seconds: Int?)] = [
            ("late", false, 30), ("early", false, 20), ("recorded", true, 40),
            ("never", false, nil), ("recorded first", true, 10),
        ]
        let windows = saves.map { save in
            SavingTurns.Candidate(
                item: save.name, isRecorded: save.isRecorded,
                savedAt: save.seconds.map { Monotonic(seconds: $0) }, segmentCount: 100,
                byteCount: 17_000)
        }
        let names = SavingTurns.inOrder(windows).map(\.item)
        #expect(names == ["recorded first", "recorded", "never", "early", "late"])
    }

    @Test mutating func `a few windows are saved as soon as they are due`() {
        var windows = Windows(
            savedAt: Array(repeating: nil, count: 3), segmentCount: 1_000, byteCount: 170_000)
        var times: [Int] = []
        for second in 0..<16 {
            let next = turns.next(of: windows.candidates, now: Monotonic(seconds: second))
            #expect(next.isEmpty || next.count == 3)
            for window in next { windows.savedAt[window.item] = second }
            if !next.isEmpty { times.append(second) }
        }
        #expect(times == [0, 5, 10, 15])
    }

    @Test mutating func `a window longer than a turn's bytes is saved, and the next ones wait`() {
        let long = Windows(savedAt: [0, 1], segmentCount: 100, byteCount: 12_000_000)
        var counts: [Int] = []
        for second in 10..<14 {
            counts.append(
                turns.next(of: long.candidates, now: Monotonic(seconds: second)).count)
        }
        #expect(counts == [1, 0, 1, 0])
    }

    @Test mutating func `a long window that was not reached in time is chosen again at once`() {
        let windows = [12_000_000, 170_000, 170_000].enumerated().map { index, byteCount in
            SavingTurns.Candidate(
                item: index, isRecorded: false, savedAt: Monotonic(seconds: 2 - index),
                segmentCount: 100, byteCount: byteCount)
        }
        var next = turns.next(of: windows, now: Monotonic(seconds: 10))
        #expect(next.map(\.item) == [2, 1, 0])
        // The disk was slow: the long one was not saved.
        turns.giveBack(next.dropFirst(2))
        next = turns.next(of: [windows[0]], now: Monotonic(seconds: 11))
        #expect(next.map(\.item) == [0])
        #expect(turns.next(of: [windows[1]], now: Monotonic(seconds: 12)).isEmpty)
    }

    @Test mutating func `recordings are saved when they are due, however many windows wait`() {
        let count = 500
        var windows = Windows(
            savedAt: Array(repeating: 0, count: count), segmentCount: 1_000, byteCount: 900_000,
            recorded: [7, 499])
        var times: [Int] = []
        for second in 1..<16 {
            let next = turns.next(of: windows.candidates, now: Monotonic(seconds: second))
                .map(\.item)
            for index in next { windows.savedAt[index] = second }
            guard next.contains(7) else { continue }
            #expect(Set(next.prefix(2)) == [7, 499])
            // They leave the others as much as they have without them.
            #expect(next.count >= 7)
            times.append(second)
        }
        #expect(times == [5, 10, 15])
    }
}

extension Monotonic {
    fileprivate init(seconds: Int) { self.init(nanoseconds: Int64(seconds) * 1_000_000_000) }
}
