import Glibc
import Posix
import Reactor
import Store
import Synchronization
import Testing

/// Pieces that a separate thread writes.
@Suite struct BodyWriterTests {
    private static let piece: Int64 = 20_000

    /// Defers the pieces of a range, and writes those for which the queue has no room.
    private func backgroundWrite(
        _ range: Range<Int64>, _ fill: inout FillWriter, _ writer: BodyWriter,
        whenFailed: @escaping @Sendable () -> Void = {}
    ) throws {
        while fill.offset < range.upperBound {
            let end = min(fill.offset + Self.piece, range.upperBound)
            var buffer = writer.takeBuffer(capacity: Int(Self.piece))
            buffer += body(fill.offset..<end)
            if fill.backgroundWrite(&buffer, to: writer, whenFailed: whenFailed) { continue }
            try buffer.withUnsafeBytes { try fill.append($0) }
            writer.giveBack(&buffer)
        }
    }

    @Test func `deferred pieces are complete and in order in the file after a drain`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let writer = try BodyWriter()
        let total = 40 * Self.piece + 7
        let objects = try (0..<3).map { try store.create(describe("\($0)", total: total)) }
        var fills = objects.map { FillWriter($0, from: 0, to: total) }
        // Interleaved, so that pieces of other bodies lie between those of each.
        for step in 1...41 {
            for index in fills.indices {
                try backgroundWrite(0..<min(Int64(step) * Self.piece, total), &fills[index], writer)
                #expect(fills[index].written <= fills[index].offset)
            }
        }
        for index in fills.indices {
            try fills[index].drain()
            #expect(objects[index].isComplete && fills[index].written == total)
            fills[index].end(failure: nil)
            #expect(try read(objects[index], 0..<total) == body(0..<total))
        }
        store.close()
    }

    @Test func `readers never see a byte before it is written`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let writer = try BodyWriter()
        let total = 100 * Self.piece
        let object = try store.create(describe("a", total: total))
        let isSound = Atomic<Bool>(true)
        let thread = try PosixThread(name: "reader") {
            var offset: Int64 = 0
            while offset < total, isSound.load(ordering: .relaxed) {
                guard case .present(let count) = object.state(at: offset) else { continue }
                let range = offset..<offset + count
                if (try? read(object, range)) != body(range) {
                    isSound.store(false, ordering: .relaxed)
                }
                offset += count
            }
        }
        var fill = FillWriter(object, from: 0, to: total)
        try backgroundWrite(0..<total, &fill, writer)
        fill.end(failure: nil)
        thread.join()
        #expect(isSound.load(ordering: .relaxed) && object.isComplete)
        store.close()
    }

    @Test func `the end of a fill waits for deferred pieces`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let writer = try BodyWriter()
        let total = 6 * Self.piece
        for round in 0..<50 {
            let object = try store.create(describe("\(round)", total: total))
            var fill = FillWriter(object, from: 0, to: total)
            try backgroundWrite(0..<total, &fill, writer)
            fill.end(failure: nil)
            #expect(object.isComplete && !object.hasFills)
        }
        store.close()
    }

    @Test func `a body that exceeds the budget continues without being stored`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 10 * Self.piece)
        let writer = try BodyWriter()
        let object = try store.create(describe("a", total: nil))
        try store.publish(object)
        #expect(object.isStorable && store.lookup(object.key) === object)
        var fill = FillWriter(object, from: 0, to: nil)
        let end = 150 * Self.piece
        try backgroundWrite(0..<end, &fill, writer)
        try fill.drain()
        #expect(!object.isStorable && store.lookup(object.key) == nil)
        #expect(try read(object, 0..<end) == body(0..<end))
        // Bytes that its readers have read are freed, block by block of the file.
        object.punch(upTo: 140 * Self.piece)
        let kept = object.spans.ranges
        #expect(kept.count == 1 && kept.last?.upperBound == end)
        #expect(object.presentBytes < end / 2)
        for range in kept { #expect(try read(object, range) == body(range)) }
        fill.end(failure: nil)
        store.close()
    }

    @Test func `buffers of deferred pieces are reused`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        let writer = try BodyWriter()
        let object = try store.create(describe("a", total: 50 * Self.piece))
        var fill = FillWriter(object, from: 0, to: nil)
        var places: Set<UInt> = []
        for step in 0..<50 {
            var buffer = writer.takeBuffer(capacity: Int(Self.piece))
            buffer += body(fill.offset..<fill.offset + Self.piece)
            places.insert(buffer.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) })
            #expect(fill.backgroundWrite(&buffer, to: writer, whenFailed: {}))
            // There is room for three at a time, whether or not the thread has run yet.
            if step % 3 == 2 { try fill.drain() }
        }
        fill.end(failure: nil)
        // As many as can wait at a time, and one that is being written.
        #expect(places.count <= 5 && object.isComplete)
        store.close()
    }
}
