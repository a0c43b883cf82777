import CachePolicy
import HTTP
import Testing

/// Which requests select the same variant, and how an index of variants is kept (RFC 9111 section
/// 4.1).
@Suite struct `Selecting fields` {
    private func text(_ vary: String, _ request: Fields) -> String {
        SelectingFields(["Vary": vary]).text(of: request)
    }

    // RFC 9111 section 4.1.
    @Test(
        arguments: [
            ("Foo", ["Foo": "1, 2"], ["Foo": " 1,2 "]),
            ("Accept-Language", ["Accept-Language": "en, de"], ["Accept-Language": "De ,eN"]),
            (
                "Accept-Language", ["Accept-Language": "de;q=0.5, en"],
                ["Accept-Language": "en;q=1.0,de;q=0.50"]
            ),
            ("Accept-Encoding", ["Accept-Encoding": "gzip, br"], ["Accept-Encoding": "br,GZIP"]),
            ("bar, foo", ["Foo": "1", "Bar": "2"], ["Bar": "2", "Foo": "1"]),
        ] as [(String, Fields, Fields)])
    func `requests that mean the same select the same`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) == text(vary, b))
    }

    @Test(
        arguments: [
            ("Foo", ["Foo": "1"], ["Foo": "2"]), ("Foo", ["Foo": "1"], [:]),
            ("Foo", ["Foo": ""], [:]),
            ("Foo", ["Foo": "a"], ["Foo": "A"]),
            ("Accept-Language", ["Accept-Language": "en"], ["Accept-Language": "en;q=0.5"]),
        ] as [(String, Fields, Fields)])
    func `requests that differ do not`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) != text(vary, b))
    }

    @Test(arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo"])
    func `a star anywhere selects nothing`(_ vary: String) {
        #expect(SelectingFields(["Vary": vary]).isAny)
    }

    @Test func `a coded body depends on the codings that are accepted, said or not`() {
        #expect(SelectingFields(["Content-Encoding": "gzip"]).names == ["accept-encoding"])
        #expect(SelectingFields(["Content-Encoding": "identity"]).isEmpty)
    }

    @Test func `an index of variants comes back from disk as it was`() {
        var index = VariantIndex()
        index.note(
            SelectingFields(names: ["a", "b"]),
            VariantIndex.variant(
                of: ["ETag": "W/\"x y\"", "Content-Language": "DE"], mark: "m1"))
        index.note(SelectingFields(names: ["c"]), .init(mark: "m2", tag: "", language: ""))
        #expect(VariantIndex(encoded: index.encoded) == index)
        #expect(index.variants.map(\.mark) == ["m2", "m1"])
    }

    @Test func `a response's head is no index, and an index no head`() {
        let index = VariantIndex()
        #expect(StoredHead(encoded: index.encoded) == nil)
        #expect(VariantIndex(encoded: Array("1 200 5 9 media https://h/\n".utf8)) == nil)
    }
}
