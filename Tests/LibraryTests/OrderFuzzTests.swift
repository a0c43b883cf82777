import FuzzSupport
import HTTP
import Testing
import URISyntax

@testable import Library
@testable import Model

/// Random orders and arguments, by seed: each is parsed or rejected with a message.
@Suite struct OrderFuzzTests {
    /// Extreme values of numbers, texts and durations.
    private static let edges = [
        "0", "-0", "1", "-1", "9223372036854775807", "-9223372036854775808",
        "9223372036854775808", "18446744073709551616", "1e308", "1e309", "-1e-400", "0.1", "1e",
        "-", "+1", "nan", "inf", "0x10", "", " ", "%", "%0", "%00", "%ff%fe", "%F0%9F%98%80", "é",
        "100000w", "100001w", "9223372036854775807w", "-1s", "1:2:3", "::", "720p", "-720p",
        "99999999999999999999p", "best", "all", "none", "000000000000", "ffffffffffff",
        "0-000000000000", "9223372036854775807-ffffffffffff", "-9223372036854775808-0",
        "http://h/a", "http%3A%2F%2Fh%2Fa", "file:///x", "https://h:99999/", "null", "true", "[]",
        "{}", "\"\"", String(repeating: "9", count: 400), String(repeating: "[", count: 100),
    ]

    private static let orders = [
        #"{"entries":["http://h/a",{"url":"http://h/b","weight":2,"headers":{"Referer":"x"}}],"index":0,"direction":"forward","height":720,"scheme":"published","parameters":{"activeFirst":true,"items":3}}"#,
        #"{"entries":[{"url":7},[],null,"x"],"index":-1,"height":null,"parameters":{}}"#,
        #"{"VERSION":1,"TTL":300,"PATHWAY-CLONES":[{"a":"\ud83d\ude00"}]}"#,
    ]

    private static let queries = [
        "url=http%3A%2F%2Fh%2Fa&variant=best&audio=en&subtitles=all&from=1:30&to=2:00&rate=1000",
        "url=http%3A%2F%2Fh%2Fa&variant=720p,360&audio=en,de&audio=fr&subtitles=en&subtitles=de",
        "limit=5&after=1-000000000001", "title=000000000001&older-than=30d&host=h",
        "url=http%3A%2F%2Fh%2Fa&h_Referer=x&h_%ff=y&for=2h&at=10",
    ]

    /// Replaces numbers, texts and bytes, truncates and repeats.
    private static func mutated(_ text: String, _ random: inout SeededNumbers) -> [UInt8] {
        var bytes = Array(text.utf8)
        for _ in 0...random.next() % 4 {
            guard !bytes.isEmpty else { break }
            let place = Int(random.next() % UInt64(bytes.count))
            let end = min(place + Int(random.next() % 8), bytes.count)
            switch random.next() % 5 {
            case 0: bytes.replaceSubrange(place..<end, with: random.pick(edges).utf8)
            case 1: bytes[place] = UInt8(truncatingIfNeeded: random.next())
            case 2: bytes.removeSubrange(place..<end)
            case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
            default:
                // A whole value, up to the next delimiter.
                let marks: Set<UInt8> = [0x2C, 0x26, 0x3D, 0x3A, 0x7D, 0x5D]
                let start = bytes[..<place].lastIndex(where: marks.contains).map { $0 + 1 } ?? 0
                let stop = bytes[place...].firstIndex(where: marks.contains) ?? bytes.count
                bytes.replaceSubrange(start..<max(start, stop), with: random.pick(edges).utf8)
            }
        }
        return bytes
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `random orders and arguments are parsed or rejected`(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        for _ in 0..<2_000 {
            let body = Self.mutated(random.pick(Self.orders), &random)
            if let value = try? JSONValue(parsing: body) {
                let again = try JSONValue(parsing: Array(value.encoded.utf8))
                #expect(again.encoded == value.encoded)
            }
            if let order = try? FeedOrder(parsing: body) {
                #expect(order.items.indices.contains(order.index))
            }
            let bytes = Self.mutated(random.pick(Self.queries), &random)
            let query = String(decoding: bytes, as: UTF8.self)
            let order = try? DownloadOrder(query: query) { try? AbsoluteURL($0) }
            if let order {
                #expect(DownloadOrder(order.record) == order)
            }
            let arguments = AdministrationQuery(query)
            _ = arguments.number("limit", in: 1...1_000, default: 100)
            _ = arguments["older-than"].flatMap(AdministrationQuery.duration)
            if let place = arguments["after"].flatMap(TitlePlace.init) {
                #expect(TitlePlace(place.text)?.text == place.text)
            }
        }
    }
}
