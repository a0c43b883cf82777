import Testing
import URISyntax

/// The fast paths of the resolver, compared with the general one on generated references.
@Suite struct URLResolverPropertyTests {
    /// A small deterministic generator: each run makes the same references.
    struct Dice: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    static let pieces = [
        "a", "b.ts", "..", ".", "/", "/", "/", "?", "#", ":", "@", "http:", "https://h", "//g",
        "%2F", "%2e", " ", "ü", "..a", "x:", "[::1]", ":80", "\\", "\u{1}", "{$v}", "seg1",
    ]

    @Test(arguments: [
        "http://h", "http://h/", "https://u:p@h:81/a/b/c?d=/../e", "http://h/a/../b/./c/l",
        "http://h//a//b/", "http://[::1]/x/y",
    ])
    func `all ways of resolving give the same URL`(base: String) throws {
        let url = try AbsoluteURL(base)
        let resolver = URLResolver(base: url)
        var dice = Dice(state: 7)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...6, using: &dice)
            let reference = (0..<count).compactMap { _ in Self.pieces.randomElement(using: &dice) }
                .joined()
            let general = URIReference.resolve(
                URIReference(reference), against: URIReference(base))
            let hasControl = reference.prefix { $0 != "#" }.contains("\u{1}")
            let expected = hasControl ? nil : try? AbsoluteURL(bytes: general.bytes)
            let resolved = try? resolver.resolve(reference)
            #expect(resolved == expected, "\(reference)")
            #expect(resolved?.origin == expected?.origin, "\(reference)")
            #expect(resolved?.pathAndQuery == expected?.pathAndQuery, "\(reference)")
        }
    }

    @Test func `random bytes never trap`() {
        var dice = Dice(state: 11)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...24, using: &dice)
            let tail = (0..<count).map { _ in UInt8.random(in: 0...255, using: &dice) }
            for head in ["", "http://", "https://[", "http://h:"] {
                guard let url = try? AbsoluteURL(bytes: Array(head.utf8) + tail) else { continue }
                #expect(url.requestForm.utf8.allSatisfy { (0x21..<0x7F).contains($0) })
                #expect(url.redacted.utf8.count < 2_000)
                #expect((try? AbsoluteURL(url.text))?.requestForm == url.requestForm)
            }
        }
    }
}
