import HTTP
import Testing

struct `Byte ranges` {
    @Test(
        arguments: [
            ("bytes=0-", [.from(0)]), ("bytes=0-0", [.bounded(0, 0)]),
            ("bytes=5-9", [.bounded(5, 9)]),
            ("bytes=-500", [.suffix(500)]), ("BYTES=0-1", [.bounded(0, 1)]),
            ("bytes=-0", [.suffix(0)]),
            ("bytes=0-1,5-6 , -2", [.bounded(0, 1), .bounded(5, 6), .suffix(2)]),
            ("bytes= 0-1 ,", [.bounded(0, 1)]), ("bytes=007-08", [.bounded(7, 8)]),
            ("bytes=0-99999999999999999999", [.bounded(0, 1 << 53 - 1)]),
            ("bytes=99999999999999999999-", [.from(1 << 53 - 1)]),
            ("bytes=-99999999999999999999", [.suffix(1 << 53 - 1)]),
        ] as [(String, [ByteRangeSpec])])
    func `well-formed ranges are parsed`(value: String, expected: [ByteRangeSpec]) {
        #expect(ByteRangeSpec.parse(value) == .ranges(expected))
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=5-4", "bytes=a-b", "bytes=1",
        "bytes=1-2-3",
        "bytes=--1", "bytes=0-+1", "bytes=0x0-1", "bytes=1 -2", "bytes=1- 2", "bytes:0-1", "0-1",
        "items=0-1", "seconds=0-", "bytes =0-1", "bytes=0-1;2-3", "bytes=0-1,x", "bytes=0-1,5-4",
        "bytes=\"0-1\"", "=0-1",
    ])
    func `malformed and inverted ranges and other units are ignored`(value: String) {
        guard case .ignored(let reason) = ByteRangeSpec.parse(value) else {
            Issue.record("accepted")
            return
        }
        #expect(reason.hasSuffix("."))
    }

    @Test func `without Range there is no range, and a repeated Range is ignored`() {
        #expect(ByteRangeSpec.parse(Fields()) == .none)
        #expect(ByteRangeSpec.parse(["Range": "bytes=1-"]) == .ranges([.from(1)]))
        #expect(
            ByteRangeSpec.parse(fields(("Range", "bytes=1-"), ("range", "bytes=1-")))
                == .ignored(reason: "Range is given more than once."))
    }

    @Test func `more than 64 ranges are ignored`() {
        let many = (0..<64).map { "\($0 * 10)-\($0 * 10)" }
        guard case .ranges(let specs) = ByteRangeSpec.parse("bytes=" + many.joined(separator: ","))
        else {
            Issue.record("64 ranges are ignored")
            return
        }
        #expect(specs.count == 64)
        #expect(
            ByteRangeSpec.parse("bytes=" + (many + ["-1"]).joined(separator: ","))
                == .ignored(reason: "There are too many ranges."))
    }

    @Test func `more than two overlaps are ignored`() {
        let reason = ByteRangeSpec.Request.ignored(reason: "Too many ranges overlap.")
        #expect(ByteRangeSpec.parse("bytes=0-,0-,0-,0-") == reason)
        #expect(ByteRangeSpec.parse("bytes=9-9,0-9,1-2,3-4") == reason)
        #expect(ByteRangeSpec.parse("bytes=-1,-2,-3,-4") == reason)
        #expect(ByteRangeSpec.parse("bytes=0-,0-,0-") != reason)
        #expect(ByteRangeSpec.parse("bytes=0-1,2-3,4-5,6-7,8-9") != reason)
    }

    @Test(
        arguments: [
            (.bounded(0, 0), 10, 0, 0), (.bounded(5, 99), 10, 5, 9), (.bounded(9, 9), 10, 9, 9),
            (.from(0), 10, 0, 9), (.from(9), 10, 9, 9), (.suffix(3), 10, 7, 9),
            (.suffix(99), 10, 0, 9),
            (.bounded(0, 1 << 53 - 1), 10, 0, 9), (.suffix(1 << 53 - 1), 1, 0, 0),
            (.bounded(0, 1 << 53 - 1), 1 << 53 - 1, 0, 1 << 53 - 2),
        ] as [(ByteRangeSpec, Int64, Int64, Int64)])
    func `a satisfiable range is truncated at the length`(
        spec: ByteRangeSpec, total: Int64, first: Int64, last: Int64
    ) {
        let range = spec.resolve(total: total)
        #expect(range == ResolvedRange(first: first, last: last))
        #expect(range?.length == last - first + 1)
        #expect(range?.range == first..<(last + 1))
    }

    @Test(
        arguments: [
            (.bounded(10, 11), 10), (.from(10), 10), (.suffix(0), 10), (.from(0), 0),
            (.suffix(5), 0),
            (.bounded(0, 0), 0), (.from(1 << 53 - 1), 1 << 53 - 1),
        ] as [(ByteRangeSpec, Int64)])
    func `a range behind the end is unsatisfiable`(spec: ByteRangeSpec, total: Int64) {
        #expect(spec.resolve(total: total) == nil)
    }

    @Test func `a written range is parsed as the same range`() {
        for spec in [ByteRangeSpec.bounded(1, 2), .from(3), .suffix(4)] {
            #expect(ByteRangeSpec.parse("bytes=\(spec)") == .ranges([spec]))
        }
    }
}

struct `Content ranges` {
    @Test(
        arguments: [
            ("bytes 0-9/10", .satisfied(first: 0, last: 9, total: 10)),
            ("bytes 5-5/*", .satisfied(first: 5, last: 5, total: nil)),
            ("bytes */10", .unsatisfied(total: 10)), ("bytes */0", .unsatisfied(total: 0)),
        ] as [(String, ContentRange)])
    func `the three forms of Content-Range are parsed and written`(
        text: String, value: ContentRange
    ) {
        #expect(ContentRange(text) == value)
        #expect(value.description == text)
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-9", "bytes 0-9/", "bytes 9-0/10", "bytes 0-10/10", "bytes */*",
        "bytes=0-9/10", "items 0-9/10", "bytes -9/10", "bytes 0-/10", "bytes 0-9/10/10",
        "bytes 0-9/99999999999999999999", "bytes 0-9223372036854775807/*", "bytes  0-9/10",
        "bytes 0-9/10 ", "bytes 0-9/-1", "bytes 0--9/10",
    ])
    func `malformed and contradictory values are ignored`(text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test func `the unit is case-insensitive, and a repeated field is ignored`() {
        #expect(ContentRange("Bytes 0-0/1") != nil)
        #expect(ContentRange.parse(["Content-Range": "bytes */1"]) == .unsatisfied(total: 1))
        #expect(ContentRange.parse(Fields()) == nil)
        let twice = fields(("Content-Range", "bytes */1"), ("Content-Range", "bytes */1"))
        #expect(ContentRange.parse(twice) == nil)
    }

    @Test func `a resolved range gives the value of Content-Range`() throws {
        let range = try #require(ByteRangeSpec.suffix(3).resolve(total: 10))
        #expect(ContentRange(range, total: 10).description == "bytes 7-9/10")
    }
}
