import Posix
import SharedStore
import Testing

struct SharedHeaderTests {
    private func header(total: Int64, head: [UInt8] = Array("head".utf8)) -> SharedHeader? {
        let shift = Int64(SharedHeader.shift(for: total) ?? 16)
        let count = Int((total + (1 << shift) - 1) >> shift)
        return SharedHeader(
            key: (0..<32).map { UInt8($0) }, total: total, role: 0x73,
            written: WallTime(nanoseconds: 5), head: head, sums: (0..<count).map { UInt32($0) })
    }

    @Test(arguments: [0, 1, 65_536, 65_537, 1 << 30, 1 << 34] as [Int64])
    func `a header is what it was after the way through the bucket`(_ total: Int64) throws {
        let made = try #require(header(total: total))
        #expect(made.bodyOffset == Int64(made.encoded.count))
        #expect(SharedHeader(made.encoded + [1, 2, 3]) == made)
        #expect(SharedHeader.preamble(made.encoded) == .length(made.encoded.count))
    }

    @Test func `every single wrong byte makes it unusable`() throws {
        let bytes = try #require(header(total: 200_000)).encoded
        for index in bytes.indices {
            var wrong = bytes
            wrong[index] ^= 0x20
            #expect(SharedHeader(wrong) == nil, "at \(index)")
        }
    }

    @Test func `every cut makes it unusable or incomplete`() throws {
        let bytes = try #require(header(total: 200_000)).encoded
        for count in 0..<bytes.count {
            let cut = Array(bytes.prefix(count))
            #expect(SharedHeader(cut) == nil)
            if count < 16 { #expect(SharedHeader.preamble(cut) == .incomplete) }
        }
    }

    @Test func `what the form does not hold is no header`() {
        #expect(SharedHeader.shift(for: 1 << 34 + 1) == nil)
        #expect(SharedHeader.shift(for: -1) == nil)
        #expect(header(total: 5, head: [UInt8](repeating: 0, count: 65_537)) == nil)
        #expect(SharedHeader.preamble(Array("<html><head>".utf8)) == .foreign)
        let long = Array("SLUICE01".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]
        #expect(SharedHeader.preamble(long) == .foreign)
    }

    @Test func `a range takes the whole stretches that it touches`() throws {
        let made = try #require(header(total: 200_000))
        #expect(made.aligned(0..<1) == 0..<65_536)
        #expect(made.aligned(65_535..<65_537) == 0..<131_072)
        #expect(made.aligned(199_999..<500_000) == 196_608..<200_000)
        #expect(made.aligned(300_000..<400_000).isEmpty)
        #expect(made.range(ofStretch: made.stretch(at: 199_999)) == 196_608..<200_000)
    }
}
