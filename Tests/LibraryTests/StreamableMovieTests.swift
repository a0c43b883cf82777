import FuzzSupport
import Testing

@testable import Library

struct StreamableMovieTests {
    private func box(_ name: String, _ content: [UInt8], size: UInt32? = nil) -> [UInt8] {
        number(size ?? UInt32(content.count + 8), 4) + Array(name.utf8) + content
    }

    private func number(_ value: some FixedWidthInteger, _ width: Int) -> [UInt8] {
        (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - $0))) }
    }

    private func offsets(_ name: String, _ values: [UInt64], count: UInt32? = nil) -> [UInt8] {
        let width = name == "stco" ? 4 : 8
        return box(
            name,
            number(0, 4) + number(count ?? UInt32(values.count), 4)
                + values.flatMap { number($0, width) })
    }

    private func movie(_ tables: [UInt8]) -> [UInt8] {
        box("moov", box("mvhd", [9]) + box("trak", box("mdia", box("minf", box("stbl", tables)))))
    }

    private func reorder(_ file: [UInt8], most: Int = 10_000) -> [UInt8]? {
        StreamableMovie(total: Int64(file.count), most: most) { range in
            #expect(range.lowerBound >= 0 && range.upperBound <= file.count)
            return Array(file[Int(range.lowerBound)..<Int(range.upperBound)])
        }?.bytes
    }

    private let type: [UInt8] = Array("\0\0\0\u{10}ftypisomxxxx".utf8)

    @Test(arguments: ["stco", "co64"])
    func `the movie box moves before the media, and its offsets follow`(_ table: String) throws {
        let media = box("mdat", Array("abcdef".utf8))
        let before = movie(offsets(table, [24 + 8, 24 + 8 + 3]))
        let file = type + box("free", []) + media + before
        let result = try #require(reorder(file))
        let start = UInt64(type.count + before.count)
        #expect(result == type + movie(offsets(table, [start + 8, start + 11])) + media)
    }

    @Test func `the media is cut, and offsets outside of it become zero`() throws {
        let media = box("mdat", [UInt8](repeating: 7, count: 5_000))
        let tables = offsets("stco", [3, 4_294_967_295]) + offsets("co64", [.max])
        let result = try #require(reorder(type + media + movie(tables), most: 1_000))
        #expect(result.count == 1_000)
        let middle = movie(tables).count
        let expected = movie(
            offsets("stco", [0, 0]) + offsets("co64", [UInt64(Int64.max)]))
        #expect(Array(result[type.count..<type.count + middle]) == expected)
        #expect(result.suffix(10) == [UInt8](repeating: 7, count: 10)[...])
    }

    @Test func `a file in the order of a stream, or without a box, is left as it is`() {
        let media = box("mdat", [1])
        let middle = movie(offsets("stco", [9]))
        for file in [
            type + middle + media, type + media, media + middle, type, [], Array("<html>".utf8),
            type + middle, type + media + middle.dropLast(),
        ] {
            #expect(reorder(file) == nil, "\(file.count)")
        }
    }

    @Test func `sizes that lie end the reading`() {
        let media = box("mdat", [1, 2])
        let tables = offsets("stco", [20], count: .max) + box("stco", [], size: 9)
        #expect(reorder(type + media + movie(tables)) != nil)
        for size: UInt32 in [0, 1, 2, 7, 4_000_000_000] {
            #expect(reorder(type + box("mdat", [1, 2], size: size) + movie([])) == nil, "\(size)")
            _ = reorder(type + media + box("moov", box("trak", [1, 2], size: size)))
        }
        let deep = (0..<100).reduce([UInt8]()) { inner, _ in box("trak", inner) }
        #expect(reorder(type + media + box("moov", deep)) != nil)
        let many = (0..<100).flatMap { _ in box("free", []) }
        #expect(reorder(type + many + media + movie([])) == nil)
    }

    @Test func `random files neither trap nor are read outside`() {
        var generator = SeededNumbers(seed: 1)
        let good = type + box("mdat", [1, 2, 3]) + movie(offsets("co64", [26]))
        for _ in 0..<20_000 {
            var file = good
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                file[Int.random(in: 0..<file.count, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            _ = reorder(file)
        }
    }
}
