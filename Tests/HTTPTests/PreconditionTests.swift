import HTTP
import Testing

struct `Entity tags` {
    @Test(arguments: [
        ("\"a\"", EntityTag(opaque: "a")), ("W/\"a\"", EntityTag(opaque: "a", isWeak: true)),
        ("\"\"", EntityTag(opaque: "")), ("\"a\\b,c'é\"", EntityTag(opaque: "a\\b,c'é")),
        ("\"W/\"", EntityTag(opaque: "W/")),
    ])
    func `an entity tag is parsed and written`(text: String, tag: EntityTag) {
        #expect(EntityTag(text) == tag)
        #expect(tag.description == text)
    }

    @Test(arguments: [
        "", "a", "\"a", "a\"", "w/\"a\"", "W\"a\"", "W/a", "\"a\"b", "\"a b\"", "\"a\u{7F}\"",
        "\"a\", \"b\"", "*", "\"a\u{FFFD}\"", "WW/\"a\"", "/\"a\"", "\"a\" ",
    ])
    func `other text is not an entity tag`(text: String) {
        #expect(EntityTag(text) == nil)
    }

    @Test(arguments: [
        ("\"1\"", "\"1\"", true, true), ("W/\"1\"", "\"1\"", false, true),
        ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
        ("\"1\"", "\"2\"", false, false),
    ])
    func `tags are compared as in the table of RFC 9110`(
        left: String, right: String, strong: Bool, weak: Bool
    ) throws {
        let (left, right) = (try #require(EntityTag(left)), try #require(EntityTag(right)))
        #expect(left.matchesStrongly(right) == strong && right.matchesStrongly(left) == strong)
        #expect(left.matchesWeakly(right) == weak && right.matchesWeakly(left) == weak)
    }

    @Test func `tags that are equal in Unicode but differ in bytes are different`() {
        let (one, two) = (EntityTag(opaque: "\u{E9}"), EntityTag(opaque: "e\u{301}"))
        #expect(one != two)
        #expect(!one.matchesWeakly(two))
    }

    @Test func `malformed members of a list of tags are dropped`() {
        let (a, b) = (EntityTag(opaque: "a"), EntityTag(opaque: "b,", isWeak: true))
        #expect(EntityTagList("\"a\", W/\"b,\"") == .tags([a, b]))
        #expect(EntityTagList(",, \"a\" ,x,\"y\"z, W/\"b,\",") == .tags([a, b]))
        #expect(EntityTagList(" * ") == .any)
        #expect(EntityTagList("*, \"a\"") == .tags([a]))
        #expect(EntityTagList("") == .tags([]))
    }

    @Test func `a response with two entity tags has none`() {
        #expect(EntityTag.parse(["ETag": "\"a\""]) == EntityTag(opaque: "a"))
        #expect(EntityTag.parse(fields(("ETag", "\"a\""), ("ETag", "\"a\""))) == nil)
    }
}

struct `Conditional requests` {
    static let modified: Int64 = 784_111_777
    static let same = "Sun, 06 Nov 1994 08:49:37 GMT"
    static let earlier = "Sun, 06 Nov 1994 08:49:36 GMT"
    static let later = "Sun, 06 Nov 1994 08:49:38 GMT"
    static let stored = Validators(
        etag: EntityTag(opaque: "a"), lastModified: modified, date: modified + 60)

    struct Case: Sendable, CustomTestStringConvertible {
        let lines: [(String, String)]
        var method = HTTPMethod.get
        let expected: Preconditions.Outcome

        var testDescription: String { "\(method) \(lines) gives \(expected)" }
    }

    static let cases = [
        Case(lines: [], expected: .proceed),
        Case(lines: [("If-None-Match", "\"a\"")], expected: .notModified),
        Case(lines: [("If-None-Match", "W/\"a\"")], expected: .notModified),
        Case(lines: [("If-None-Match", "\"b\", \"a\"")], expected: .notModified),
        Case(
            lines: [("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")], expected: .notModified),
        Case(lines: [("If-None-Match", "*")], expected: .notModified),
        Case(lines: [("If-None-Match", "\"b\"")], expected: .proceed),
        Case(lines: [("If-None-Match", "a")], expected: .proceed),
        Case(lines: [("If-None-Match", "\"a\"")], method: .head, expected: .notModified),
        Case(lines: [("If-None-Match", "\"a\"")], method: .put, expected: .failed),
        Case(lines: [("If-None-Match", "*")], method: .post, expected: .failed),
        Case(lines: [("If-Modified-Since", same)], expected: .notModified),
        Case(lines: [("If-Modified-Since", later)], expected: .notModified),
        Case(lines: [("If-Modified-Since", earlier)], expected: .proceed),
        Case(lines: [("If-Modified-Since", "yesterday")], expected: .proceed),
        Case(lines: [("If-Modified-Since", same)], method: .post, expected: .proceed),
        Case(
            lines: [("If-None-Match", "\"b\""), ("If-Modified-Since", later)], expected: .proceed),
        Case(lines: [("If-Match", "\"a\"")], expected: .proceed),
        Case(lines: [("If-Match", "*")], expected: .proceed),
        Case(lines: [("If-Match", "W/\"a\"")], expected: .failed),
        Case(lines: [("If-Match", "\"b\"")], expected: .failed),
        Case(lines: [("If-Match", "")], expected: .failed),
        Case(lines: [("If-Unmodified-Since", same)], expected: .proceed),
        Case(lines: [("If-Unmodified-Since", earlier)], expected: .failed),
        Case(lines: [("If-Unmodified-Since", "x")], expected: .proceed),
        Case(
            lines: [("If-Match", "\"a\""), ("If-Unmodified-Since", earlier)], expected: .proceed),
        Case(
            lines: [("If-Match", "\"a\""), ("If-None-Match", "\"a\"")], expected: .notModified),
        Case(
            lines: [("If-Match", "\"b\""), ("If-None-Match", "\"a\"")], expected: .failed),
    ]

    @Test(arguments: cases)
    func `conditions are evaluated in the order of RFC 9110`(example: Case) {
        var request = Fields()
        for (name, value) in example.lines { request.append(name, value) }
        let outcome = Preconditions.evaluate(
            request, method: example.method, validators: Self.stored)
        #expect(outcome == example.expected)
    }

    @Test(arguments: cases)
    func `a request with any condition is recognized as conditional`(example: Case) {
        var request = Fields()
        #expect(!Preconditions.stand(in: request))
        for (name, value) in example.lines { request.append(name, value) }
        #expect(Preconditions.stand(in: request) == !example.lines.isEmpty)
    }

    @Test func `without validators only the asterisk matches`() {
        let bare = Validators()
        let evaluate = { Preconditions.evaluate($0, method: .get, validators: bare) }
        #expect(evaluate(["If-None-Match": "\"a\""]) == .proceed)
        #expect(evaluate(["If-None-Match": "*"]) == .notModified)
        #expect(evaluate(["If-Modified-Since": Self.same]) == .proceed)
        #expect(evaluate(["If-Unmodified-Since": Self.earlier]) == .proceed)
        #expect(evaluate(["If-Match": "\"a\""]) == .failed)
    }

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", false), ("\"b\"", false), (same, true), (earlier, false),
        (later, false), ("a", false), ("", false), ("*", false), ("\"a\", \"b\"", false),
    ])
    func `If-Range requires a strong and exact match`(value: String, expected: Bool) {
        #expect(Preconditions.useRange(["If-Range": value], validators: Self.stored) == expected)
    }

    @Test func `a range is used without If-Range, and ignored with two`() {
        #expect(Preconditions.useRange(Fields(), validators: Validators()))
        let two = fields(("If-Range", "\"a\""), ("If-Range", "\"a\""))
        #expect(!Preconditions.useRange(two, validators: Self.stored))
    }

    @Test func `a date is a weak validator if the response is as recent`() {
        var fresh = Self.stored
        fresh.date = Self.modified
        #expect(!Preconditions.useRange(["If-Range": Self.same], validators: fresh))
        fresh.date = nil
        #expect(!Preconditions.useRange(["If-Range": Self.same], validators: fresh))
        fresh.date = Self.modified + 1
        #expect(Preconditions.useRange(["If-Range": Self.same], validators: fresh))
    }

    @Test func `a weak stored tag never satisfies If-Range`() {
        let weak = Validators(etag: EntityTag(opaque: "a", isWeak: true))
        #expect(!Preconditions.useRange(["If-Range": "\"a\""], validators: weak))
    }
}
