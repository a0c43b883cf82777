import Store
import Testing

/// Freeing what all readers of an object without a name have passed.
@Suite struct PunchTests {
    @Test func `a large body is punched in steps`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.unnamedRoom = 1 << 20 }
        defer { store.close() }
        let object = try store.create(describe("a", total: nil, isStorable: false))
        let kept = [0, 63, 64, 127, 128, 150].map { (mebibytes: Int64) -> Range<Int64> in
            mebibytes << 20..<(mebibytes << 20) + 4096
        }
        for range in kept { try fill(object, range) }
        for left in [4, 2, 1, 1] {
            object.punch(upTo: 150 << 20)
            #expect(object.spans == SpanSet(Array(kept.suffix(left))))
            #expect(store.statistics().bytes == Int64(left) * 4096)
        }
        #expect(try read(object, kept[5]) == body(kept[5]))
    }
}
