@testable import Library
import Model
import Posix
import Routing
import Store
import Testing

@Suite struct PictureTests {
    private static func source(_ start: Int64 = 0, generation: UInt64 = 1) throws
        -> PictureSourceName
    {
        let key = ObjectKey(sha256Of: "https://cdn.example.com/a.ts")
        return PictureSourceName(key: key, generation: generation, start: start)
    }

    @Test func `the least recently used pictures are dropped beyond either limit`() throws {
        let (source, now) = (try Self.source(), Monotonic(nanoseconds: 0))
        var cache = PictureCache(mostEntries: 3, mostBytes: 100)
        func keep(_ title: UInt64, _ count: Int) {
            cache.keep(
                .picture([UInt8](repeating: 1, count: count)), for: SessionID(title), of: source,
                now: now)
        }
        func has(_ title: UInt64) -> Bool {
            cache.result(for: SessionID(title), of: source, now: now) != nil
        }
        for title in 1...3 as ClosedRange<UInt64> { keep(title, 20) }
        #expect(has(1) && cache.count == 3 && cache.bytes == 60)
        keep(4, 20)
        #expect(!has(2) && has(3) && has(1) && has(4) && cache.bytes == 60)
        keep(5, 70)
        #expect(cache.bytes <= 100 && has(5) && has(4) && !has(3))
        keep(5, 10)
        #expect(cache.bytes == 30)
        keep(6, 101)
        #expect(!has(6) && cache.bytes == 30)
        cache.remove(SessionID(5))
        #expect(!has(5) && cache.bytes == 20)
    }

    @Test func `a picture belongs to the bytes it was made from, and a failure expires`() throws {
        let (source, title) = (try Self.source(), SessionID(1))
        var cache = PictureCache(mostEntries: 3, mostBytes: 100)
        cache.keep(.picture([1]), for: title, of: source, now: Monotonic(nanoseconds: 0))
        let later = Monotonic(nanoseconds: 0) + .seconds(3_600)
        #expect(cache.result(for: title, of: source, now: later) == .picture([1]))
        #expect(cache.result(for: title, of: try Self.source(5), now: later) == nil)
        #expect(cache.result(for: title, of: try Self.source(generation: 2), now: later) == nil)
        cache.keep(.none("no"), for: title, of: source, now: later)
        #expect(
            cache.result(for: title, of: source, now: later + .seconds(59)) == .none("no"))
        #expect(cache.result(for: title, of: source, now: later + .seconds(60)) == nil)
    }

    @Test func `only a complete JPEG file of a successful program is a picture`() {
        let jpeg: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 0xFF, 0xD9]
        let result = TitlePictures.result
        #expect(result(.ended(status: 0, output: jpeg)) == .picture(jpeg))
        let others: [BoundedProgram.Outcome] = [
            .ended(status: 1, output: jpeg), .ended(status: nil, output: jpeg),
            .ended(status: 0, output: []), .ended(status: 0, output: jpeg.dropLast()),
            .ended(status: 0, output: Array("<svg onload=alert(1)>".utf8)), .tooSlow, .tooMuch,
            .cancelled,
        ]
        for outcome in others { #expect(result(outcome).bytes == 0, "\(outcome)") }
    }

    @Test func `a path to a picture has exactly twelve digits`() {
        let title = TitlePictures.title
        #expect(title("/api/titles/0123456789ab/picture") == SessionID(text: "0123456789ab"))
        for path in [
            "/api/titles/0123456789ab", "/api/titles/0123456789/picture", "/api/titles/picture",
            "/api/titles/0123456789zz/picture", "/api/titles/https://a.b/c/picture",
            "/api/titles/0123456789ab/picture/",
        ] {
            #expect(title(path) == nil, "\(path)")
        }
    }
}
