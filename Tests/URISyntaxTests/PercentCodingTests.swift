import Testing
import URISyntax

struct `Percent coding` {
    @Test func `bytes outside of the set are encoded with upper-case digits`() {
        #expect(PercentCoding.encode("a b/é%", allowed: .path) == "a%20b/%C3%A9%25")
        #expect(PercentCoding.encode("a/b", allowed: .pathSegment) == "a%2Fb")
        #expect(PercentCoding.queryComponent("a&b=c+d e~") == "a%26b%3Dc%2Bd%20e~")
        #expect(PercentCoding.encode(bytes: [0, 0xFF, 0x41], allowed: .unreserved) == "%00%FFA")
    }

    @Test(arguments: [
        ("", ""), ("abc", "abc"), ("%41%62", "Ab"), ("%c3%A9", "é"), ("a+b", "a+b"),
        ("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("a%", "a%"), ("%%41", "%A"), ("%2541", "%41"),
    ])
    func `a malformed escape is kept`(text: String, decoded: String) {
        #expect(PercentCoding.decode(text) == decoded)
    }

    @Test func `a plus is decoded as a space only on request`() {
        #expect(PercentCoding.decode("a+b%2B", plusAsSpace: true) == "a b+")
        #expect(PercentCoding.decode("a+b") == "a+b")
    }

    @Test func `decoding restores encoded bytes, for any bytes and any set`() {
        var random = URLResolverPropertyTests.Dice(state: 8)
        for _ in 0..<500 {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            for allowed in [PercentCoding.Allowed.unreserved, .pathSegment, .path] {
                let text = PercentCoding.encode(bytes: bytes, allowed: allowed)
                #expect(PercentCoding.decode(Array(text.utf8)[...]) == bytes)
            }
        }
    }
}
