import FuzzSupport
import HTTP
import Testing

/// Field values of a hostile origin or client.
struct `Hostile values` {
    @Test func `no parser of field values traps on any bytes`() {
        var random = SeededNumbers(seed: 9)
        let alphabet =
            Array("\"\\,;=*/- 09azW:%&+[]bytesGMT".utf8) + [0, 9, 0x7F, 0x80, 0xFF, 0xC3]
        for _ in 0..<4000 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            let text = String(decoding: bytes, as: UTF8.self)
            _ = (EntityTag(text), EntityTagList(text), MediaType(text)?.description)
            _ = (CacheControl(text), ContentRange(text), HTTPDate.parse(text, now: Int64.min))
            _ = RequestHead(method: .get, target: text).queryItems.map { $0.name() }
            _ = RequestHead(method: .get, target: text).host
            if case .ranges(let specs) = ByteRangeSpec.parse("bytes=" + text) {
                for spec in specs {
                    let range = spec.resolve(total: Int64.random(in: 0...Int64.max, using: &random))
                    #expect((range?.length ?? 1) > 0)
                }
            }
            var lines = Fields()
            _ = lines.append(line: bytes[...])
            for name in [FieldName.connection, .acceptEncoding, .transferEncoding, .expect] {
                lines.append(nameBytes: name.spelling.utf8, valueBytes: bytes)
            }
            _ = (endToEndFields(lines), ContentCoding.acceptsGzip(lines))
            let head = RequestHead(method: .get, target: "/", fields: lines)
            _ = (head.keepAlive, head.expectsContinue, head.bodyFraming)
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: ["a,", "\"\\,", "no-cache=a,", ",", "0-0,", "=;,"])
    func `long lists are parsed in linear time`(part: String) {
        let value = String(repeating: part, count: 10_000)
        var lines = Fields()
        for _ in 0..<100 { lines.append("X-Field", "1") }
        lines.append(.connection, value)
        lines.append(.acceptEncoding, value)
        lines.append(.cacheControl, value)
        #expect(endToEndFields(lines).contains("x-field"))
        #expect(!ContentCoding.acceptsGzip(lines))
        _ = (CacheControl(lines), EntityTagList(value), ByteRangeSpec.parse("bytes=" + value))
    }
}
