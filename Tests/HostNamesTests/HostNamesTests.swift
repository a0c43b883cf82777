import HostNames
import Testing

@Suite struct `Host names` {
    @Test(arguments: [
        ("bücher.example", "xn--bcher-kva.example"), ("MÜNCHEN.de", "xn--mnchen-3ya.de"),
        ("faß.example", "xn--fa-hia.example"), ("例。example", "xn--fsq.example"),
        ("ｅｘａｍｐｌｅ.com", "example.com"),
        // The composed and the decomposed spelling name one host.
        ("caf\u{E9}.example", "xn--caf-dma.example"),
        ("cafe\u{301}.example", "xn--caf-dma.example"),
    ])
    func `a non-ASCII name has one ASCII form`(name: String, ascii: String) {
        #expect(InternationalName.ascii(name) == ascii)
    }

    @Test(arguments: [
        "a\u{0}.example", "\u{378}.example", String(repeating: "ü", count: 80) + ".example",
    ])
    func `a name that IDNA rejects has no ASCII form`(name: String) {
        #expect(InternationalName.ascii(name) == nil)
    }

    @Test(arguments: [
        ("com", true), ("co.uk", true), ("cloudfront.net", true), ("github.io", true),
        ("kawasaki.jp", true), ("city.kawasaki.jp", false), ("example.com", false),
        ("bbc.co.uk", false), ("unknown-top-level", true), ("a.unknown-top-level", false),
    ])
    func `public suffixes are recognized by the list`(domain: String, isSuffix: Bool) {
        #expect(PublicSuffix.contains(domain) == isSuffix)
    }
}
