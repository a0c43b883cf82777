import CachePolicy
import Testing
import URISyntax

/// Learning from responses which parameters never change the bytes.
private func print(_ bytes: UInt64, length: Int64 = 1_000) -> KeyFingerprint {
    KeyFingerprint(validator: bytes, length: length, content: bytes &* 7)
}

extension KeyEvidence {
    /// Learns from a response for a path with a query.
    fileprivate mutating func see(_ path: String, _ query: String, _ bytes: UInt64) throws {
        _ = learn(try AbsoluteURL("http://a\(path)?\(query)"), print(bytes))
    }

    /// Two visits of three paths with different values of `names`.
    fileprivate mutating func seeTokens(_ names: [String]) throws {
        for visit in 1...3 {
            for path in 1...3 {
                let query = names.map { "\($0)=v\(visit)" }.joined(separator: "&")
                try see("/\(path).ts", query, UInt64(path))
            }
        }
    }
}

@Suite struct KeyEvidenceTests {
    @Test func `a parameter that never changed the bytes is proposed`() throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens(["sess"])
        #expect(evidence.proposed(for: "http://a") == ["sess"])
    }

    @Test func `parameters that change together are proposed together`() throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens(["exp", "mac"])
        #expect(evidence.proposed(for: "http://a") == ["exp", "mac"])
    }

    @Test func `a change is reported when a finding is made or changes its state, and only then`()
        throws
    {
        var evidence = KeyEvidence()
        var news: [Bool] = []
        for visit in 1...3 {
            for path in 1...3 {
                let url = try AbsoluteURL("http://a/\(path).ts?sess=v\(visit)")
                news.append(evidence.learn(url, print(UInt64(path))) == "http://a")
            }
        }
        // A finding is made at the second visit, and proposed at the fourth pair.
        #expect(news == [false, false, false, true, false, false, true, false, false])
        #expect(evidence.learn(try AbsoluteURL("http://a/1.ts?sess=x"), print(9)) == "http://a")
    }

    @Test func `one path is not sufficient evidence`() throws {
        var evidence = KeyEvidence()
        for visit in 1...9 { try evidence.see("/1.ts", "sess=\(visit)", 1) }
        #expect(evidence.proposed(for: "http://a").isEmpty)
    }

    @Test func `one counter-example vetoes permanently`() throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens(["sess"])
        try evidence.see("/1.ts", "sess=other", 99)
        #expect(evidence.proposed(for: "http://a").isEmpty)
        try evidence.seeTokens(["sess"])
        #expect(evidence.proposed(for: "http://a").isEmpty)
        #expect(evidence.all.first?.finding.state == .vetoed)
    }

    @Test func `a counter-example against several parameters vetoes them all`() throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens(["exp", "mac"])
        try evidence.see("/1.ts", "exp=x&mac=y", 99)
        #expect(evidence.proposed(for: "http://a").isEmpty)
    }

    @Test func `a parameter that selects content is distinguished from a token beside it`() throws {
        var evidence = KeyEvidence()
        for visit in 1...3 {
            for path in 1...3 {
                for choice in 1...3 {
                    try evidence.see(
                        "/\(path)", "pick=\(choice)&sess=\(visit)", UInt64(path * 10 + choice))
                }
            }
        }
        #expect(evidence.proposed(for: "http://a") == ["sess"])
    }

    @Test(arguments: ["id", "seg", "startRange", "start", "range", "w", "quality", "lang"])
    func `parameters with names that usually select content are not learned`(name: String) throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens([name])
        #expect(evidence.all.isEmpty)
    }

    @Test func `a different length counts as different bytes`() throws {
        var evidence = KeyEvidence()
        for path in 1...4 {
            for visit in 1...3 {
                _ = evidence.learn(
                    try AbsoluteURL("http://a/\(path)?sess=\(visit)"),
                    print(7, length: Int64(visit)))
            }
        }
        #expect(evidence.proposed(for: "http://a").isEmpty)
    }

    @Test func `findings survive a restart`() throws {
        var evidence = KeyEvidence()
        try evidence.seeTokens(["sess"])
        var again = KeyEvidence()
        for (name, finding) in evidence.findings(of: "http://a") {
            again.restore(finding, of: name, origin: "http://a")
        }
        #expect(again.proposed(for: "http://a") == ["sess"])
    }

    @Test func `memory is limited whatever origins send`() throws {
        var evidence = KeyEvidence()
        for host in 0..<300 {
            for name in 0..<40 {
                for visit in 0..<2 {
                    let url = try AbsoluteURL("http://h\(host)/x?p\(name)=\(visit)")
                    _ = evidence.learn(url, print(1))
                }
            }
        }
        #expect(evidence.all.count <= 128 * 32)
    }
}
