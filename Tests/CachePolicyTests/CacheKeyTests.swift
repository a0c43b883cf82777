@testable import CachePolicy
import HLS
import Testing

/// The encoding of keys that cache folders depend on.
@Suite struct `Cache keys` {
    private static let url = "http://h:8080/a/b.m3u8?x=1"

    /// Keys and the texts that every version so far has written for them.
    private static let known: [(CacheKey, String)] = {
        func key(_ change: (inout CacheKey) -> Void = { _ in }) -> CacheKey {
            CacheKey(url: url).changing(change)
        }
        return [
            (key(), url),
            (key { $0.audience = .credentials("AbC-_123") }, url + " AbC-_123"),
            (key { $0.audience = .session("AbC-_123") }, url + " viewer AbC-_123"),
            (key { $0.audience = .mount(.private) }, url + " private"),
            (key { $0.audience = .mount(.gateway) }, url + " gateway"),
            (key { $0.audience = .children(.gateway) }, url + " children=gateway"),
            (
                key {
                    $0.audience = .mount(.gateway)
                    $0.user = "0123456789ab"
                    $0.variant = "m"
                }, url + " gateway user=0123456789ab vary=m"
            ),
            (key { $0.skip = "YES" }, url + " skip=YES"),
            (key { $0.skip = "" }, url + " skip="),
            (key { $0.epoch = Epoch(number: 1_800_000_000) }, url + " epoch=1800000000"),
            (
                key {
                    $0.audience = .mount(.shared)
                    $0.variant = "0123456789abcdefghij"
                }, url + " shared vary=0123456789abcdefghij"
            ),
            (
                key {
                    $0.audience = .credentials("AbC-_123")
                    $0.skip = "v2"
                    $0.epoch = Epoch(number: 7)
                    $0.detour = 2
                }, url + " AbC-_123 skip=v2 epoch=7 unstored 2"
            ),
        ]
    }()

    @Test(arguments: known)
    func `a key is written as in cache folders of former versions, and parsed`(
        _ key: CacheKey, _ text: String
    ) {
        #expect(key.text == text)
        #expect(CacheKey(text: text) == key)
        #expect(CacheKey.url(ofText: text) == Self.url)
    }

    @Test func `different keys have different texts`() {
        let audiences: [CacheKey.Audience] = [
            .everyone, .credentials("a"), .session("a"), .mount(.private), .mount(.shared),
            .children(.shared),
        ]
        let users: [(user: String?, variant: String?)] = [
            (nil, nil), (nil, "m"), ("u", nil), ("u", "m"),
        ]
        var texts: [String: CacheKey] = [:]
        for audience in audiences {
            for skip in [nil, "", "YES"] {
                for number in [0, 1, UInt32.max] {
                    for (user, variant) in users {
                        for detour in [nil, 0, 3] {
                            let key = CacheKey(url: Self.url).changing {
                                $0.audience = audience
                                $0.user = user
                                $0.skip = skip
                                $0.epoch = Epoch(number: number)
                                $0.variant = variant
                                $0.detour = detour
                            }
                            #expect(texts.updateValue(key, forKey: key.text) == nil)
                            #expect(CacheKey(text: key.text) == key)
                        }
                    }
                }
            }
        }
    }

    @Test func `name, list and primary key each omit their part`() {
        let key = CacheKey(text: Self.url + " shared skip=v2 epoch=9 vary=m unstored 1")
        #expect(key.name.text == Self.url + " shared skip=v2 vary=m unstored 1")
        #expect(key.list.text == Self.url + " shared epoch=9 vary=m unstored 1")
        #expect(key.primary.text == Self.url + " shared skip=v2 epoch=9")
    }

    @Test(arguments: [
        "", " ", "  ", "u epoch=0", "u epoch=-1", "u unstored", "u viewer", "u a b c",
    ])
    func `a damaged text is parsed as some key`(_ text: String) {
        #expect(CacheKey(text: text).url == CacheKey.url(ofText: text))
    }
}
