import CachePolicy
import HTTP
import Testing

/// Which requests select the same variant, and the format of an index of variants (RFC 9111 section
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
            (
                "Accept-Language", ["Accept-Language": "de;q=0.3333, en"],
                ["Accept-Language": "en;q=1.,de;q=0.333"]
            ),
            ("Accept-Encoding", ["Accept-Encoding": "gzip, br"], ["Accept-Encoding": "br,GZIP"]),
            ("bar, foo", ["Foo": "1", "Bar": "2"], ["Bar": "2", "Foo": "1"]),
        ] as [(String, Fields, Fields)])
    func `equivalent requests select the same variant`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) == text(vary, b))
    }

    @Test(
        arguments: [
            ("Foo", ["Foo": "1"], ["Foo": "2"]), ("Foo", ["Foo": "1"], [:]),
            ("Foo", ["Foo": ""], [:]),
            ("Foo", ["Foo": "a"], ["Foo": "A"]),
            ("Accept-Language", ["Accept-Language": "en"], ["Accept-Language": "en;q=0.5"]),
        ] as [(String, Fields, Fields)])
    func `different requests select different variants`(_ vary: String, _ a: Fields, _ b: Fields) {
        #expect(text(vary, a) != text(vary, b))
    }

    // Members that are no names may mean anything; the index could not be read back with them.
    @Test(arguments: ["*", "*, *", ", *", "Foo, *", "*, Foo", "Foo Bar", "Foo, Bar;q=1", "\"Foo\""])
    func `a Vary of any matches no request`(_ vary: String) {
        #expect(SelectingFields(["Vary": vary]).isAny)
    }

    @Test func `the variant of a coded body depends on Accept-Encoding, present or absent`() {
        #expect(SelectingFields(["Content-Encoding": "gzip"]).names == ["accept-encoding"])
        #expect(SelectingFields(["Content-Encoding": "identity"]).isEmpty)
    }

    @Test func `an index of variants is restored from disk`() {
        var index = VariantIndex()
        index.note(
            SelectingFields(names: ["a", "b"]),
            VariantIndex.variant(
                of: ["ETag": "W/\"x y\"", "Content-Language": "DE"], mark: "m1"))
        index.note(SelectingFields(names: ["c"]), .init(mark: "m2", tag: "", language: ""))
        #expect(VariantIndex(encoded: index.encoded) == index)
        #expect(index.variants.map(\.mark) == ["m2", "m1"])
    }

    @Test func `an index names the oldest variant, which it has no more room for`() {
        var index = VariantIndex()
        let set = SelectingFields(names: ["cookie"])
        func variant(_ number: Int) -> VariantIndex.Variant {
            VariantIndex.Variant(mark: "m\(number)", tag: "", language: "")
        }
        let most = VariantIndex.mostVariants
        for number in 1...most { #expect(index.note(set, variant(number)) == []) }
        #expect(index.note(set, variant(1)) == [], "it is stored anew")
        #expect(index.note(set, variant(most + 1)) == ["m2"])
        #expect(index.lists("m1") && !index.lists("m2") && index.lists("m3"))
    }

    @Test func `heads of responses and indexes of variants are distinguishable`() {
        let index = VariantIndex()
        #expect(StoredHead(encoded: index.encoded) == nil)
        #expect(VariantIndex(encoded: Array("1 200 5 9 media https://h/\n".utf8)) == nil)
    }
}
