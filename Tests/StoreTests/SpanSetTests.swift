import Store
import Testing

/// Span sets compared with a bitmap, and edge cases.
@Suite struct SpanSetTests {
    /// A small generator with a fixed seed, so that a failure can be repeated.
    struct Numbers: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 17 ^ state << 29
        }
    }

    @Test(arguments: 1...40)
    func `a set matches a bitmap after any insertions and removals`(seed: UInt64) {
        var numbers = Numbers(state: seed)
        let size = 80
        var bitmap = [Bool](repeating: false, count: size)
        var set = SpanSet()
        for _ in 0..<60 {
            let start = Int.random(in: 0..<size, using: &numbers)
            let end = Int.random(in: start...min(size, start + 12), using: &numbers)
            let isInsert = Int.random(in: 0..<4, using: &numbers) > 0
            for offset in start..<end { bitmap[offset] = isInsert }
            let range = Int64(start)..<Int64(end)
            if isInsert { set.insert(range) } else { set.remove(range) }
            check(set, bitmap)
        }
    }

    private func check(_ set: SpanSet, _ bitmap: [Bool]) {
        #expect(set.totalBytes == Int64(bitmap.count { $0 }))
        #expect(
            zip(set.ranges, set.ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        #expect(set.isComplete(total: Int64(bitmap.count)) == bitmap.allSatisfy { $0 })
        var missing = SpanSet()
        for hole in set.holes(in: 0..<Int64(bitmap.count)) { missing.insert(hole) }
        for offset in bitmap.indices {
            #expect(set.contains(Int64(offset)) == bitmap[offset])
            #expect(missing.contains(Int64(offset)) != bitmap[offset])
            let end = bitmap[offset...].firstIndex(of: false) ?? bitmap.count
            #expect(set.contiguousEnd(from: Int64(offset)) == Int64(end))
            let next = bitmap[offset...].firstIndex(of: true).map { start in
                Int64(start)..<Int64(bitmap[start...].firstIndex(of: false) ?? bitmap.count)
            }
            #expect(set.firstRange(from: Int64(offset)) == next)
        }
        #expect(set == SpanSet(set.ranges.reversed()))
    }

    @Test func `nothing is present at the largest offset`() {
        #expect(SpanSet([0..<5]).firstRange(from: .max) == nil)
        let last = Int64.max - 1
        #expect(SpanSet([0..<Int64.max]).firstRange(from: last) == last..<Int64.max)
    }

    @Test func `adjacent ranges are merged`() {
        #expect(SpanSet([0..<5, 10..<15, 5..<10]).ranges == [0..<15])
    }

    @Test func `an empty range adds nothing`() {
        #expect(SpanSet([3..<3]).isEmpty)
    }

    @Test func `an empty body is complete once its length is known`() {
        #expect(SpanSet().isComplete(total: 0))
        #expect(!SpanSet().isComplete(total: nil))
    }

    @Test func `holes are clipped to the requested range`() {
        #expect(SpanSet([10..<20, 30..<40]).holes(in: 15..<35) == [20..<30])
        #expect(SpanSet([10..<20]).holes(in: 0..<12) == [0..<10])
        #expect(SpanSet([10..<20]).holes(in: 12..<18) == [])
    }

    @Test func `blocks are counted once each, and whole`() {
        #expect(SpanSet().blockBytes == 0)
        #expect(SpanSet([0..<1]).blockBytes == 4096)
        #expect(SpanSet([10..<20, 30..<40]).blockBytes == 4096)
        #expect(SpanSet([4000..<4200]).blockBytes == 8192)
        #expect(SpanSet([0..<4097, 4098..<4099, 12_288..<12_289]).blockBytes == 12_288)
    }

    @Test(arguments: 1...40)
    func `the blocks are counted with each change`(seed: UInt64) {
        var numbers = Numbers(state: seed)
        var set = SpanSet()
        for _ in 0..<200 {
            let start = Int64.random(in: 0..<60_000, using: &numbers)
            let length = Int64.random(in: 0..<6_000, using: &numbers)
            let range = start..<start + (Bool.random(using: &numbers) ? length : length / 100)
            if Int.random(in: 0..<3, using: &numbers) > 0 {
                let expected = set.blockBytes(inserting: range)
                set.insert(range)
                #expect(set.blockBytes == expected)
            } else {
                set.remove(range)
            }
            var blocks: Set<Int64> = []
            for range in set.ranges {
                blocks.formUnion(range.lowerBound / 4096...(range.upperBound - 1) / 4096)
            }
            #expect(set.blockBytes == Int64(blocks.count) * 4096)
        }
    }

    @Test func `a range is held as far as its body reaches, and none behind its end`() {
        let set = SpanSet([0..<100, 200..<300])
        #expect(set.holds(20..<100, ofTotal: nil) && !set.holds(20..<101, ofTotal: nil))
        #expect(set.holds(250..<400, ofTotal: 300) && !set.holds(250..<400, ofTotal: 301))
        #expect(!set.holds(300..<400, ofTotal: 300) && !set.holds(300..<400, ofTotal: nil))
        #expect(set.holds(300..<300, ofTotal: 300))
    }

    @Test func `a key is the SHA-256 digest of its text`() {
        let key = ObjectKey(sha256Of: "abc")
        #expect(key.hex == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(ObjectKey(hex: key.hex) == key)
        #expect(ObjectKey(bytes: key.bytes) == key)
        #expect(ObjectKey(hex: "zz") == nil)
    }
}
