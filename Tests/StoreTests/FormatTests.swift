import Glibc
import Posix
import Retention
import Testing

@testable import Store

/// The current formats of headers and checksums, and the first format.
@Suite struct FormatTests {
    private static let bytes = body(0..<5 << 20)

    private func decoded(_ slot: [UInt8], epoch: UInt64) -> ObjectHeader? {
        slot.withUnsafeBytes { ObjectHeader(decodingSlot: $0, epoch: epoch) }
    }

    /// A file in the first format: one slot, no checksums.
    private func formerFile(_ name: String, total: Int64, spans: [Range<Int64>]) -> [UInt8] {
        var out = ByteWriter()
        let description = describe(name, total: total)
        let url = Array(description.url.utf8)
        out.bytes += Array("SLUICE1\n".utf8)
        out.append(UInt32(1))
        out.append(UInt32(1))
        out.bytes += description.key.bytes
        out.append(UInt64(77))
        out.append(total)
        out.append(description.created.nanoseconds)
        out.bytes += [spans == [0..<total] ? 1 : 0, 7, 0, 0]
        out.append(UInt32(url.count))
        out.append(UInt32(description.head.count))
        out.append(UInt32(spans.count))
        out.bytes += url + description.head
        for span in spans {
            out.append(span.lowerBound)
            out.append(span.upperBound)
        }
        out.bytes += SHA256Digest.of(out.bytes).prefix(16)
        out.bytes += [UInt8](repeating: 0, count: 4096 - out.bytes.count)
        out.bytes += body(0..<total)
        return out.bytes
    }

    @Test func `a store of the first format is read and continued in the current one`() throws {
        let folder = try TemporaryFolder()
        try openStore(folder.path).close()
        unlink(folder.path + "/clean")
        unlink(folder.path + "/index.sqlite")
        try writeFile(folder.path + "/format", Array("SLUICE STORE 1\n".utf8))
        let path = objectPath(folder.path, "a")
        try writeFile(path, formerFile("a", total: 9000, spans: [0..<4000]))

        let store = try openStore(folder.path)
        let object = try #require(store.find("a"))
        #expect(object.spans == SpanSet([0..<4000]))
        #expect(object.head == Array("head of a".utf8))
        try fill(object, 4000..<9000)
        store.finish(object)
        store.close()
        #expect(try readFile(folder.path + "/format") == Array("SLUICE STORE 3\n".utf8))
        // The former header still exists, and the new one is written behind it.
        #expect(try readFile(path).prefix(8) == Array("SLUICE1\n".utf8)[...])
        #expect(try readFile(path)[2048..<2056] == Array("SLUICE2\n".utf8)[...])

        let again = try openStore(folder.path)
        defer { again.close() }
        #expect(again.find("a")?.isComplete == true)
        #expect(again.verify { _ in }.isSound)
    }

    @Test func `a header is restored as it was written`() throws {
        var description = describe("a", total: 5 << 20)
        description.title = 9
        description.kind = .other
        var extents = ExtentMap()
        let span = Int64(100)..<3 << 20
        let sums = body(span).withUnsafeBytes { checksums(of: $0, at: span.lowerBound) }
        extents.insert(span, sums: sums)
        var header = ObjectHeader(
            pages: 1, generation: 3, description: description, spans: SpanSet([span]),
            extents: extents)
        header.sequence = 41
        header.epoch = 5
        let encoded = try #require(header.encoded())
        #expect(encoded.isWhole)
        #expect(decoded(encoded.bytes, epoch: 5) == header)
        #expect(decoded(encoded.bytes, epoch: 6)?.extents.isProven == false)
        for index in encoded.bytes.indices {
            var torn = encoded.bytes
            torn[index] ^= 0x10
            #expect(decoded(torn, epoch: 5) == nil)
        }
        for count in 0..<encoded.bytes.count {
            #expect(decoded(Array(encoded.bytes.prefix(count)), epoch: 5) == nil)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `checksums match the bytes after additions and removals`(seed: UInt64) throws {
        var numbers = SpanSetTests.Numbers(state: seed)
        let bytes = Self.bytes
        var (extents, spans) = (ExtentMap(), SpanSet())
        for _ in 0..<60 {
            let start = Int64.random(in: 0..<Int64(bytes.count) - 1, using: &numbers)
            let length = Int64.random(in: 1...700_000, using: &numbers)
            let range = start..<min(Int64(bytes.count), start + length)
            if Int.random(in: 0..<4, using: &numbers) == 0 {
                extents.remove(range)
                spans.remove(range)
            } else {
                let part = bytes[Int(range.lowerBound)..<Int(range.upperBound)]
                let sums = part.withUnsafeBytes { checksums(of: $0, at: range.lowerBound) }
                extents.insert(range, sums: sums)
                spans.insert(range)
            }
        }
        func sum(_ range: Range<Int64>) -> UInt32 {
            bytes[Int(range.lowerBound)..<Int(range.upperBound)].withUnsafeBytes { crc32c($0) }
        }
        var (kept, removed) = (extents, extents)
        for range in extents.unsummed { removed.remove(range) }
        kept.keepSummed()
        #expect(kept == removed)
        let ranges = kept.summedSpans.ranges
        for range in ranges.dropFirst(ranges.count / 2) { removed.remove(range) }
        kept.keepSummed(in: Array(ranges.prefix(ranges.count / 2)))
        #expect(kept == removed)
        for range in extents.unsummed { extents.note(sum(range), of: range) }
        #expect(extents.summedSpans == spans)
        for extent in extents.extents { #expect(extent.sum == sum(extent.range)) }
        extents.coarsen(to: 3)
        for extent in extents.extents { #expect(extent.sum == sum(extent.range)) }
        #expect(extents.summedSpans == spans)
        let read = ExtentMap(
            spans: spans, sums: extents.sums, blockShift: extents.blockShift, isProven: true)
        #expect(read == extents)
    }
}
