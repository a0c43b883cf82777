import Glibc
import Posix
import Retention
import Store
import Testing

/// What a power cut, a failing disk or an older version leaves, and how it is read.
@Suite struct DurabilityTests {
    private static let slotLength = 2048

    /// Makes a store with one object of 2 MB, and closes it or leaves it as a kill would.
    private func makeStore(_ path: String, isClean: Bool, total: Int64 = 2 << 20) throws {
        let store = try openStore(path)
        try store.add("a", total: total)
        store.close()
        if !isClean { unlink(path + "/clean") }
    }

    private func flip(_ path: String, at offset: Int) throws {
        let file = try openFile(path, flags: O_RDWR)
        let byte = try readBytes(file.number, at: Int64(offset), count: 1)
        try write([byte[0] ^ 1], to: file.number, at: Int64(offset))
    }

    // MARK: Headers

    /// A torn write of the newest header loses its claims, not those of the previous header.
    @Test func `a torn header falls back to the previous one`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        let made = try first.add("a", total: 100_000, filled: 0..<30_000)
        try first.flushed()
        let before = try readBytes(made.descriptor.number, at: 0, count: 4096)
        try fill(made, 30_000..<60_000)
        try first.flushed()
        let after = try readBytes(made.descriptor.number, at: 0, count: 4096)
        let slot = before.prefix(Self.slotLength) == after.prefix(Self.slotLength) ? 1 : 0
        first.close()
        try flip(objectPath(folder.path, "a"), at: slot * Self.slotLength + 40)

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.spans == SpanSet([0..<30_000]))
        #expect(try read(object, 0..<30_000) == body(0..<30_000))
    }

    @Test func `more spans than fit into a header page survive a clean stop`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        let made = try first.create(describe("a", total: 4 << 20))
        try first.publish(made)
        let spans = SpanSet((0..<400).map { Int64($0) * 10_000..<Int64($0) * 10_000 + 500 })
        for span in spans.ranges { try fill(made, span) }
        first.finish(made)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.spans == spans)
        for span in spans.ranges { #expect(try read(object, span) == body(span)) }
    }

    @Test func `a file is not rewritten for its spans at the cost of other objects`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path, budget: 6 << 20)
        defer { store.close() }
        try store.add("b", total: 3 << 20)
        let made = try store.create(describe("a", total: nil))
        try store.publish(made)
        // They take 1.8 MB, and as much again while the file is rewritten.
        for first in (0..<400).map({ Int64($0) * 10_000 }) { try fill(made, first..<first + 500) }
        store.finish(made)
        try store.flushed()
        #expect(store.statistics().storageFailures == 0)
        #expect(!store.statistics().isStoringSuspended)
        #expect(store.find("a") === made && store.find("b")?.isComplete == true)
    }

    @Test func `a long body has room for more spans from the start`() throws {
        let folder = try TemporaryFolder()
        let store = try openStore(folder.path)
        defer { store.close() }
        let made = try store.create(describe("a", total: 200 << 20))
        try store.publish(made)
        for first in (0..<150).map({ Int64($0) << 20 }) { try fill(made, first..<first + 500) }
        store.finish(made)
        try store.flushed()
        // A rewritten file would be another object.
        #expect(store.find("a") === made)
        #expect(made.spans.ranges.count == 150)
    }

    /// A header may claim less than is present, but not more.
    @Test func `a head that outgrew its page is found again with the body`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        let made = try first.add("a", total: 50_000)
        try first.flushed()
        let head = [UInt8](repeating: 7, count: 20_000)
        made.replaceHead(head)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.head == head)
        #expect(object.isComplete)
        #expect(try read(object, 0..<50_000) == body(0..<50_000))
        #expect(store.statistics().objects == 1)
    }

    @Test func `title and kind are restored without the index`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        var description = describe("a", total: 10)
        description.title = 0xFACE_0000_0001
        description.kind = .structure
        description.isRead = false
        let made = try first.create(description)
        try first.publish(made)
        try fill(made, 0..<10)
        first.close()
        unlink(folder.path + "/index.sqlite")

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.title == 0xFACE_0000_0001)
        #expect(object.kind == .structure)
        try eventually { store.rows(ofTitle: 0xFACE_0000_0001).map(\.key) == [object.key] }
    }

    @Test func `a kind that the body has shown is restored, and listed`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        var description = describe("a", total: 10)
        description.title = 0xFACE_0000_0002
        description.kind = .media
        let made = try first.create(description)
        made.replaceHead([1, 2, 3], kind: .structure)
        try fill(made, 0..<10)
        try first.publish(made)
        made.replaceHead([4, 5, 6])
        #expect(made.kind == .structure)
        first.close()

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.rows(ofTitle: 0xFACE_0000_0002).map(\.kind) == [.structure])
        let object = try #require(store.find("a"))
        #expect(object.kind == .structure)
        #expect(object.head == [4, 5, 6])
    }

    // MARK: Checksums

    @Test func `a damaged block is a hole after an unclean stop, the rest is served`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: false, total: 3 << 20)
        try flip(objectPath(folder.path, "a"), at: 4096 + 1 << 20 + 77)

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.state(at: 0) == .present(count: 1 << 20))
        guard case .hole(let hole) = object.state(at: 1 << 20) else {
            Issue.record("damaged bytes are offered")
            return
        }
        #expect(hole.end == 2 << 20)
        #expect(object.state(at: 2 << 20) == .present(count: 1 << 20))
        #expect(!object.isComplete)
        #expect(store.statistics().damagedBytes == 1 << 20)
        try fill(object, 1 << 20..<2 << 20)
        #expect(object.isComplete)
        #expect(object.state(at: 0) == .present(count: 3 << 20))
    }

    @Test func `what a write leaves of a block that was not compared is a hole`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: false, total: 3 << 20)
        try flip(objectPath(folder.path, "a"), at: 4096 + 600_077)

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        // As when an origin ignores the range of a request for what is missing.
        try fill(object, 0..<16_384)
        #expect(object.state(at: 0) == .present(count: 16_384))
        guard case .hole(let hole) = object.state(at: 600_000) else {
            Issue.record("damaged bytes are offered")
            return
        }
        #expect(hole.end == 1 << 20)
        #expect(object.state(at: 1 << 20) == .present(count: 1 << 20))
        #expect(try read(object, 0..<16_384) == body(0..<16_384))
    }

    @Test func `an object that loses its name is still compared with its checksums`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        var description = describe("a", total: 8 << 20)
        description.expectsWholeBody = false
        let made = try first.create(description)
        try first.publish(made)
        try fill(made, 2 << 20..<4 << 20)
        first.finish(made)
        first.close()
        unlink(folder.path + "/clean")
        try flip(objectPath(folder.path, "a"), at: 4096 + 3 << 20 + 77)

        let store = try openStore(folder.path, budget: 3 << 20)
        defer { store.close() }
        let object = try #require(store.find("a"))
        var writer = FillWriter(object, from: 0, to: 2 << 20)
        while object.isStorable, writer.offset < 2 << 20 {
            let bytes = body(writer.offset..<writer.offset + 65_536)
            try bytes.withUnsafeBytes { try writer.append($0) }
        }
        #expect(!object.isStorable)
        #expect(object.state(at: 2 << 20) == .present(count: 1 << 20))
        guard case .hole = object.state(at: 3 << 20) else {
            Issue.record("damaged bytes are offered")
            return
        }
        // What was fetched without a name needs no comparison.
        #expect(object.state(at: 0) == .present(count: writer.offset))
        writer.end(failure: nil)
    }

    @Test func `a small object's checksums are verified before it is returned`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: false, total: 9000)
        try flip(objectPath(folder.path, "a"), at: 4096 + 8000)

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(store.find("a") == nil)
        #expect(store.statistics().damagedBytes == 9_000)
    }

    @Test func `a long body that is read whole is compared first`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: false, total: 3 << 20)
        try flip(objectPath(folder.path, "a"), at: 4096 + 2 << 20 + 77)

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(throws: SystemError.self) { try readBody(of: object, count: 3 << 20) }
        #expect(object.spans == SpanSet([0..<2 << 20]))
        try fill(object, 2 << 20..<3 << 20)
        let isWhole = try readBody(of: object, count: 3 << 20) == body(0..<3 << 20)
        #expect(isWhole)
    }

    @Test func `a text that decayed after a clean stop is not read`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: true, total: 9_000)
        try flip(objectPath(folder.path, "a"), at: 4096 + 8_000)

        let store = try openStore(folder.path)
        defer { store.close() }
        let object = try #require(store.find("a"))
        #expect(object.isComplete)
        // A part of a stretch has no checksum of its own.
        #expect(try readBody(of: object, count: 100) == body(0..<100))
        #expect(throws: SystemError.self) { try readBody(of: object, count: 9_000) }
        #expect(object.presentBytes == 0)
        try fill(object, 0..<9_000)
        #expect(try readBody(of: object, count: 9_000) == body(0..<9_000))
    }

    @Test func `an object is verified only once`() throws {
        let folder = try TemporaryFolder()
        try makeStore(folder.path, isClean: false)
        let second = try openStore(folder.path)
        let object = try #require(second.find("a"))
        #expect(object.state(at: 0) == .present(count: 1 << 20))
        #expect(object.state(at: 1 << 20) == .present(count: 1 << 20))
        #expect(object.state(at: 0) == .present(count: 2 << 20))
        second.close()

        let third = try openStore(folder.path)
        defer { third.close() }
        #expect(third.find("a")?.state(at: 0) == .present(count: 2 << 20))
        #expect(third.statistics().start.wasClosedCleanly || !third.statistics().isReconciled)
    }

    @Test func `a check of every byte finds damage`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in 0..<5 { try first.add("\(name)", total: 3 << 20) }
        first.close()
        try flip(objectPath(folder.path, "2"), at: 4096 + 5)

        let store = try openStore(folder.path)
        defer { store.close() }
        var last: VerifyProgress?
        let report = store.verify { last = $0 }
        #expect(report.intactObjects == 4)
        #expect(report.repairedObjects == 1)
        #expect(report.checkedBytes == 15 << 20)
        #expect(report.lostBytes == 1 << 20)
        #expect(!report.isSound)
        #expect(last?.objects == 5)
        #expect(store.find("2")?.spans == SpanSet([1 << 20..<3 << 20]))
        #expect(store.verify { _ in }.isSound)
    }

    @Test func `a check of every byte that is stopped reads no further extent`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in 0..<2 { try first.add("\(name)", total: 3 << 20) }
        first.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        var asked = 0
        let report = store.verify(
            { _ in },
            goesOn: {
                asked += 1
                // Before the object and before each of its extents.
                return asked <= 3
            })
        #expect(report.isStopped && report.checkedBytes == 2 << 20)
        #expect(!store.verify { _ in }.isStopped)
    }

    @Test func `an object that is evicted during a check of every byte is no damage`() throws {
        let folder = try TemporaryFolder()
        // Progress is told after 64 objects, and the names of a folder are read at once.
        let names = (0..<40_000).map { "\($0)" }.filter {
            ObjectKey(sha256Of: $0).hex.hasPrefix("00")
        }
        try #require(names.count > 64)
        let first = try openStore(folder.path)
        for name in names { try first.add(name, total: 1_000) }
        first.close()
        let store = try openStore(folder.path)
        defer { store.close() }
        let report = store.verify { progress in
            guard progress.objects == 64 else { return }
            for name in names { store.remove(ObjectKey(sha256Of: name)) }
        }
        #expect(report.isSound && report.intactObjects == 64 && report.deletedObjects == 0)
    }

    @Test func `checksums are equal with and without the processor's instruction`() throws {
        let bytes = body(0..<70_000)
        for count in [0, 1, 7, 8, 4095, 12_288, 12_289, 70_000] {
            let (fast, slow) = bytes.prefix(count).withUnsafeBytes {
                (crc32c($0), softwareCRC32C($0))
            }
            #expect(fast == slow)
        }
        #expect(Array("123456789".utf8).withUnsafeBytes { crc32c($0) } == 0xE306_9283)
        let (first, second) = (bytes.prefix(50_000), bytes.dropFirst(50_000))
        let joined = joinedCRC32C(
            first.withUnsafeBytes { crc32c($0) }, second.withUnsafeBytes { crc32c($0) },
            secondCount: second.count)
        #expect(joined == bytes.withUnsafeBytes { crc32c($0) })
    }

    // MARK: Stops

    @Test func `only a completed close marks the folder as clean`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        #expect(!exists(folder.path + "/clean"))
        first.close()
        #expect(exists(folder.path + "/clean"))

        let store = try openStore(folder.path)
        defer { store.close() }
        #expect(!exists(folder.path + "/clean"))
        try eventually { store.statistics().isReconciled }
        #expect(store.statistics().start.wasClosedCleanly)
    }

    @Test func `remains of an interrupted file replacement are removed`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        for name in ["clean.new", "pins.new", "format.new"] {
            try writeFile("\(folder.path)/\(name)", [1])
        }
        let store = try openStore(folder.path)
        defer { store.close() }
        for name in ["clean.new", "pins.new", "format.new"] {
            #expect(!exists("\(folder.path)/\(name)"), "\(name)")
        }
    }

    @Test func `the start reports what it found`() throws {
        let folder = try TemporaryFolder()
        let first = try openStore(folder.path)
        for name in 0..<6 { try first.add("\(name)", total: 1000) }
        first.close()
        unlink(folder.path + "/clean")
        unlink(objectPath(folder.path, "0"))
        truncate(objectPath(folder.path, "1"), 100)
        try writeFile(folder.path + "/objects/00/letter", [1])
        try writeFile(folder.path + "/new/17", [1])

        let store = try openStore(folder.path)
        defer { store.close() }
        try eventually { store.statistics().isReconciled }
        let report = store.statistics().start
        #expect(!report.wasClosedCleanly)
        #expect(report.kept == 4)
        #expect(report.dropped == 1)
        #expect(report.damaged == 1)
        #expect(report.orphans == 2)
        #expect(store.statistics().objects == 4)
    }
}
