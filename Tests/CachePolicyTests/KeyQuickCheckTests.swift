import FuzzSupport
import Testing
import URISyntax

@testable import CachePolicy

/// The quick check gives the same keys as the full rules.
@Suite struct KeyQuickCheckTests {
    private static let names = [
        "a", "b", "ab", "id", "w", "lang", "utm_x", "CMCD", "CMCD-x", "cmcd", "token", "expires",
        "sig", "sv", "se", "md5", "Signature", "Expires", "", "%61", "t", "sign",
    ]
    private static let values = [
        "=1", "=", "", "=x=y", "=1700000000", "=abcdefghijklmnopqrstuvwx", "=exp=1~hmac=ab",
        "=0123456789abcdef0123456789abcdef", "=en-GB", "=300",
    ]
    private static let paths = [
        "", "/", "/x.ts", "/a/tok-1/x.ts", "/exp=1~hmac=ab/x.ts", "/a=b/%7ex", "/\u{e9}",
    ]
    private static let origins = ["http://a", "HTTPS://B.example:443", "http://c:8080"]
    private static let rules = [
        "sort", "unique", "signatures", "drop utm_* b", "keep id a*", "tier w 320", "segment tok-*",
        "fold lang en en-*", "host a",
    ]

    private func anyURL(_ random: inout some RandomNumberGenerator) throws -> AbsoluteURL {
        var text = Self.origins.randomElement(using: &random) ?? ""
        text += Self.paths.randomElement(using: &random) ?? ""
        let count = Int.random(in: -1...4, using: &random)
        guard count >= 0 else { return try AbsoluteURL(text) }
        let items = (0..<count).map { _ in
            (Self.names.randomElement(using: &random) ?? "")
                + (Self.values.randomElement(using: &random) ?? "")
        }
        return try AbsoluteURL(text + "?" + items.joined(separator: "&"))
    }

    @Test func `the quick check and the full rules give the same key for 20,000 URLs`() throws {
        var random = SeededNumbers(seed: 1)
        var untouched = 0
        for _ in 0..<20_000 {
            let url = try anyURL(&random)
            let rules = try Self.rules.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
                .map { KeyRuleInForce(try KeyRule($0), .configured) }
            let made = KeyMaker(url, rules, recordsSteps: true)
            #expect(
                KeyMaker.text(of: url, rules: rules) == made.text, "\(url.text) under \(rules)")
            #expect(KeyMaker.isMerged(url, rules: rules) == made.isMerged)
            untouched += KeyMaker.rulesConcern(url, rules) ? 0 : 1
        }
        #expect(untouched > 2_000, "the quick check sufficed for \(untouched)")
    }

    @Test(arguments: [
        "http://a/x.ts?token=abc&v=2", "http://a/x.ts?quality=high", "http://a/x.ts?a=1&b=2",
    ])
    func `default rules do not concern URLs that they leave unchanged`(_ text: String)
        throws
    {
        let rules = [KeyRule.sort, .unique].map { KeyRuleInForce($0, .shipped) }
        #expect(!KeyMaker.rulesConcern(try AbsoluteURL(text), rules))
    }

    @Test func `blocks that differ in any byte have different digests`() {
        for count in [0, 1, 7, 8, 9, 64, 4_095, 4_096] {
            let block = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            var seen: Set<UInt64> = [KeyEvidence.digest(block.span)]
            for index in block.indices {
                var other = block
                other[index] ^= 0x40
                seen.insert(KeyEvidence.digest(other.span))
            }
            #expect(seen.count == count + 1)
            #expect(KeyEvidence.digest((block + [0]).span) != KeyEvidence.digest(block.span))
        }
    }
}
