import Model
import Synchronization
import Testing

@Suite struct ReadersTests {
    private let readers = Readers()

    @Test func `a flight is wanted up to the end of a reader's range`() {
        let id = readers.enter(1, from: 0, to: 1_000)
        #expect(readers.isWanted(1, at: 999, within: 0))
        #expect(!readers.isWanted(1, at: 1_000, within: 0))
        readers.leave(id, of: 1)
        #expect(!readers.isWanted(1, at: 0, within: 0) && readers.count(1) == 0)
    }

    @Test func `a hold wants no more than the reader requested that it stands for`() {
        var hold: Readers.Hold? = readers.hold(1, from: 500, to: 1_000)
        #expect(readers.isWanted(1, at: 999, within: 0) && readers.least(1) == 500)
        #expect(!readers.isWanted(1, at: 1_000, within: 0))
        hold = nil
        #expect(hold == nil && readers.least(1) == nil)
        let open = readers.hold(1, from: 500, to: nil)
        withExtendedLifetime(open) { #expect(readers.isWanted(1, at: 1 << 40, within: 0)) }
    }

    @Test func `a reader far ahead of a flight does not want it`() {
        let id = readers.enter(1, from: 10_000, to: nil)
        #expect(!readers.isWanted(1, at: 0, within: 9_999))
        #expect(readers.isWanted(1, at: 0, within: 10_000))
        #expect(readers.lead(1, at: 0, within: 9_999) == nil)
        #expect(readers.lead(1, at: 0, within: 10_000) == 10_000)
        readers.leave(id, of: 1)
    }

    @Test func `the least position is that of the reader furthest behind, whoever moves`() {
        var positions: [Readers.ID: Int64] = [:]
        for step in 0..<2_000 {
            let place = Int64(step * 7_919 % 1_009)
            let known = positions.keys.first
            switch step % 5 {
            case 0, 1: positions[readers.enter(1, from: place, to: nil)] = place
            case 2, 3:
                guard let known else { continue }
                readers.move(known, of: 1, to: place)
                positions[known] = place
            default:
                guard let known else { continue }
                readers.leave(known, of: 1)
                positions[known] = nil
            }
            #expect(readers.least(1) == positions.values.min())
        }
        for id in positions.keys { readers.leave(id, of: 1) }
        #expect(readers.least(1) == nil && readers.count(1) == 0)
    }

    /// Bytes after the reported position of a single reader are not freed: once it has company, a
    /// flight would take it for one that was given up.
    @Test func `the least position of a single reader is the one that it reported last`() {
        let first = readers.enter(1, from: 100, to: nil)
        #expect(readers.least(1) == 100)
        readers.move(first, of: 1, to: 500)
        #expect(readers.least(1) == 500 && readers.needs(1) == [500..<Int64.max])
        let second = readers.enter(1, from: 700, to: nil)
        #expect(readers.least(1) == 500)
        readers.leave(first, of: 1)
        readers.move(second, of: 1, to: 900)
        #expect(readers.least(1) == 900)
        readers.leave(second, of: 1)
        #expect(readers.least(1) == nil)
    }

    @Test func `a watch fires once, when a reader arrives or leaves`() {
        let calls = Mutex(0)
        let wake: @Sendable () -> Void = { calls.withLock { $0 += 1 } }
        let id = readers.enter(1, from: 0, to: nil)
        readers.watch(1, for: 100...200, at: 200, wake: wake)
        readers.move(id, of: 1, to: 99)
        #expect(calls.withLock { $0 } == 0)
        readers.move(id, of: 1, to: 150)
        readers.move(id, of: 1, to: 160)
        #expect(calls.withLock { $0 } == 1)
        readers.watch(1, for: 300...400, at: 400, wake: wake)
        readers.leave(id, of: 1)
        #expect(calls.withLock { $0 } == 2)
        readers.watch(1, for: 300...400, at: 400, wake: wake)
        #expect(calls.withLock { $0 } == 3)
    }

    @Test func `a reader of what was fetched does not fire a watch for what is to come`() {
        let calls = Mutex(0)
        let wake: @Sendable () -> Void = { calls.withLock { $0 += 1 } }
        let near = readers.enter(1, from: 150, to: 180)
        let far = readers.enter(1, from: 0, to: nil)
        readers.watch(1, for: 100...200, at: 180, wake: wake)
        readers.move(near, of: 1, to: 160)
        #expect(calls.withLock { $0 } == 0)
        readers.move(far, of: 1, to: 100)
        #expect(calls.withLock { $0 } == 1)
        readers.leave(near, of: 1)
        readers.leave(far, of: 1)
    }

    @Test func `a distance beyond the last offset reaches all readers`() {
        let id = readers.enter(1, from: 10, to: nil)
        #expect(readers.isWanted(1, at: Int64.max - 1, within: 1 << 20))
        #expect(readers.lead(1, at: Int64.max - 1, within: 1 << 20) == 10)
        readers.leave(id, of: 1)
    }

    @Test func `readers within a stretch of bytes are found if they need what follows it`() {
        var ids = [10, 40, 70].map { readers.enter(1, from: $0, to: nil) }
        // Everything that it needs is there at 100.
        ids.append(readers.enter(1, from: 20, to: 60))
        #expect(readers.least(1, within: 11..<100) == 40 && readers.least(1, within: 10..<40) == 10)
        #expect(readers.least(1, within: 11..<59) == 20 && readers.least(1, within: 11..<60) == 40)
        #expect(readers.least(1, within: 71..<100) == nil)
        for id in ids { readers.leave(id, of: 1) }
    }

    @Test func `a reader needs what lies between its position and its end`() {
        let ids = [
            readers.enter(1, from: 70, to: nil), readers.enter(1, from: 20, to: 60),
            readers.enter(1, from: 0, to: 10),
        ]
        readers.move(ids[1], of: 1, to: 30)
        // Of a range that ends before its first byte.
        readers.move(ids[2], of: 1, to: 15)
        let needs = readers.needs(1).sorted { $0.lowerBound < $1.lowerBound }
        let expected: [Range<Int64>] = [15..<15, 30..<60, 70..<Int64.max]
        #expect(needs == expected && readers.needs(2).isEmpty)
        let positions: [Readers.ID: Int64] = [ids[0]: 70, ids[1]: 30, ids[2]: 15]
        #expect(readers.positions(1) == positions && readers.positions(2).isEmpty)
        for id in ids { readers.leave(id, of: 1) }
    }
}
