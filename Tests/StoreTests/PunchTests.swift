import Glibc
import Posix
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

    enum Loss: CaseIterable {
        case purge, clear, room
    }

    /// Its readers are registered only if they found it incomplete.
    @Test(arguments: Loss.allCases)
    func `a body that was complete before bytes of it were lost is not punched`(
        cause: Loss
    ) throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.add("a", total: 3 << 20)
        object.noteUnreadable(at: 2 << 20, SystemError("pread", code: EIO))
        #expect(!object.isComplete)
        switch cause {
        case .purge: store.remove(object.key)
        case .clear: _ = try store.clear(sparingPinned: false)
        case .room: store.forgetName(of: object)
        }
        #expect(store.find("a") == nil)
        object.punch(upTo: 2 << 20)
        #expect(object.spans.contains(0..<2 << 20))
        #expect(try read(object, 0..<4096) == body(0..<4096))
        // The hole can still be filled.
        try fill(object, 2 << 20..<3 << 20)
        #expect(object.isComplete)
    }

    @Test func `holes before the first bytes take no step`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.unnamedRoom = 1 << 20 }
        defer { store.close() }
        let object = try store.create(describe("a", total: nil, isStorable: false))
        let place = Int64(30) << 30
        try fill(object, place..<place + 4096)
        try fill(object, place + (1 << 20)..<place + (1 << 20) + 4096)
        object.punch(upTo: place + (1 << 20))
        #expect(object.spans.ranges == [place + (1 << 20)..<place + (1 << 20) + 4096])
    }

    @Test func `bytes that are written before readers see them are not punched`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: 3 << 20, isStorable: false))
        try store.publish(object)
        // The foremost reader is in the third MiB, and the one that wanted the first has left while
        // its bytes are between the file and the spans.
        try fill(object, 2 << 20..<3 << 20)
        let behind = object.beginFill(from: 0, to: nil)
        try body(0..<1 << 20).withUnsafeBytes { try object.write($0, at: 0) }
        object.punch(upTo: 2 << 20)
        object.extend(behind, to: 1 << 20)
        #expect(try read(object, 0..<1 << 20) == body(0..<1 << 20))
        object.punch(upTo: 2 << 20)
        #expect(object.spans == SpanSet([2 << 20..<3 << 20]))
        object.endFill(behind, failure: nil)
    }

    @Test func `bytes between the windows of two readers are freed in whole blocks`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try store.create(describe("a", total: 40 << 20, isStorable: false))
        var writer = FillWriter(object, from: 0, to: nil)
        for step in 0..<20 {
            let range = Int64(step) << 20..<Int64(step + 1) << 20
            try body(range).withUnsafeBytes { try writer.append($0) }
        }
        let windows: [Range<Int64>] = [
            (12 << 20) - 1..<13 << 20, 100..<(2 << 20) + 1,
        ]
        // It may have written its next bytes once more, and not shown them yet.
        let behind = object.beginFill(from: 16 << 20, to: nil)
        #expect(object.punch(outside: windows))
        let left: [Range<Int64>] = [0..<3 << 20, 11 << 20..<13 << 20, 16 << 20..<20 << 20]
        #expect(object.spans.ranges == left)
        #expect(store.statistics().bytes == 9 << 20)
        for range in left { #expect(try read(object, range) == body(range)) }
        object.endFill(behind, failure: nil)
        #expect(object.punch(outside: windows))
        #expect(object.spans.ranges == Array(left.dropLast()))
        writer.end(failure: nil)
    }

    @Test func `bytes outside of windows are freed in steps, and none of a stored body`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path) { $0.unnamedRoom = 1 << 20 }
        defer { store.close() }
        let object = try store.create(describe("a", total: nil, isStorable: false))
        for mebibytes in 0..<71 {
            try fill(object, Int64(mebibytes) << 20..<Int64(mebibytes) << 20 + 4096)
        }
        let isDone = [object.punch(outside: []), object.punch(outside: [])]
        #expect(isDone == [false, true])
        #expect(object.spans == SpanSet([70 << 20..<70 << 20 + 4096]))
        let stored = try store.add("b", total: 3 << 20)
        #expect(stored.punch(outside: []) && stored.isComplete)
    }
}
