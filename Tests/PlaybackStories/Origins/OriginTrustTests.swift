import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Which certificates the daemon trusts for which origin, and its messages if it does not.
extension Stories {
    @Suite(.tags(.crowded), .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct OriginTrustTests {}
}

extension Stories.OriginTrustTests {
    private static let path = segment("a", 9_000)

    /// A CDN and an nginx with TLS in front of it.
    private func front(asksForCertificate: Bool = false, days: Int = 3_650) throws -> (
        FixtureCDN, NginxFront
    ) {
        let cdn = FixtureCDN()
        try cdn.start()
        return (
            cdn,
            try NginxFront(.proxy(cdn), asksForCertificate: asksForCertificate, days: days)
        )
    }

    private func get(_ story: Story, _ front: NginxFront, host: String = "127.0.0.1") throws
        -> PlayerResponse
    {
        try story.player().get(story.url(for: "https://\(host):\(front.port)\(Self.path)"))
    }

    /// The pin of a certificate's public key, computed by openssl.
    private func pin(of certificate: String) throws -> String {
        let script =
            "openssl x509 -in \(certificate) -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64"
        return "sha256//" + (try Tool.run(["sh", "-c", script]).stdout.prefix { $0 != "\n" })
    }

    @Test func `an authority is trusted only for the origins that name it`() throws {
        let (cdn, front) = try front()
        defer {
            front.stop()
            cdn.stop()
        }
        let story = try Story(["--origin-ca", "127.0.0.1:\(front.port)=\(front.caFile)"])
        let answer = try get(story, front)
        #expect(isContent(answer.body, of: Self.path))
        let refusal = try get(story, front, host: "localhost")
        #expect(refusal.status == 502)
        let advice = "name its certificate or its authority with --origin-ca localhost=FILE"
        #expect(refusal.text.contains(advice), "\(refusal.text)")
        #expect(eventually { story.daemon.standardError.contains(advice) })
    }

    @Test func `an origin with another authority than its setting names is rejected`() throws {
        let (cdn, front) = try front()
        let (otherCDN, other) = try self.front()
        defer {
            front.stop()
            other.stop()
            cdn.stop()
            otherCDN.stop()
        }
        // The general file does not apply if the origin has its own.
        let story = try Story([
            "--ca-file", front.caFile, "--origin-ca", "localhost=\(other.caFile)",
        ])
        #expect(isContent(try get(story, front).body, of: Self.path))
        let refusal = try get(story, front, host: "localhost")
        #expect(refusal.status == 502)
        #expect(refusal.text.contains("correct --origin-ca localhost=FILE"), "\(refusal.text)")
    }

    @Test func `a client certificate is sent to an origin that requests one`() throws {
        let (cdn, front) = try front(asksForCertificate: true)
        defer {
            front.stop()
            cdn.stop()
        }
        let story = try Story([
            "--ca-file", front.caFile,
            "--origin-cert", "localhost=\(front.certificate),\(front.key)",
        ])
        #expect(isContent(try get(story, front, host: "localhost").body, of: Self.path))
        #expect(try get(story, front).status == 400, "nginx's answer without a certificate")
    }

    @Test func `an origin must have one of its pinned keys`() throws {
        let (cdn, front) = try front()
        defer {
            front.stop()
            cdn.stop()
        }
        let (right, wrong) = (try pin(of: front.certificate), try pin(of: front.caFile))
        let story = try Story([
            "--ca-file", front.caFile, "--origin-pin", "127.0.0.1=\(wrong);\(right)",
            "--origin-pin", "localhost=\(wrong)",
        ])
        #expect(isContent(try get(story, front).body, of: Self.path))
        let refusal = try get(story, front, host: "localhost")
        #expect(refusal.status == 502)
        #expect(refusal.text.contains("none of those that --origin-pin names"), "\(refusal.text)")
        #expect(!refusal.text.contains("--origin-ca"))
    }

    @Test func `a certificate for another name and an expired one have different messages`() throws
    {
        let proxy = try WayOutProxy(.socks5)
        let (cdn, front) = try front()
        let (oldCDN, old) = try self.front(days: -1)
        defer {
            front.stop()
            old.stop()
            cdn.stop()
            oldCDN.stop()
            proxy.stop()
        }
        let story = try Story([
            "--origin-proxy", "other.test=socks5h://127.0.0.1:\(proxy.port)",
            "--origin-ca", "*:\(front.port)=\(front.caFile)",
            "--origin-ca", "*:\(old.port)=\(old.caFile)",
        ])
        let misnamed = try get(story, front, host: "other.test")
        #expect(misnamed.status == 502)
        #expect(misnamed.text.contains("certificate is for another name"), "\(misnamed.text)")
        let expired = try get(story, old)
        #expect(expired.status == 502)
        #expect(expired.text.contains("has to renew the certificate"), "\(expired.text)")
        for text in [misnamed.text, expired.text] { #expect(!text.contains("--origin-ca")) }
    }

    @Test func `an unusable file is a configuration error`() throws {
        let (cdn, front) = try front()
        defer {
            front.stop()
            cdn.stop()
        }
        let faults: [(String, String, String)] = [
            ("--origin-ca", "cdn.test=/nowhere.pem", "/nowhere.pem cannot be read"),
            ("--origin-ca", "cdn.test=\(front.key)", "holds no certificate in PEM form"),
            ("--origin-ca", "/a.pem", "origin-ca is written HOST=FILE"),
            ("--origin-cert", "cdn.test=\(front.certificate)", "is two files, CERT,KEY"),
            (
                "--origin-cert", "cdn.test=\(front.caFile),\(front.key)",
                "does not belong to the certificate"
            ),
            ("--origin-pin", "cdn.test=sha256//abc", "is sha256// and 44 characters of base64"),
        ]
        for (name, value, words) in faults {
            let check = try sluice("check", name, value)
            #expect(check.status != 0 && check.stderr.contains(words), "\(check.stderr)")
        }
        let good = try sluice(
            "check", "--origin-ca", "cdn.test=\(front.caFile)", "--origin-cert",
            "cdn.test=\(front.certificate),\(front.key)")
        #expect(good.status == 0 && good.stdout.contains("origin-ca cdn.test=\(front.caFile)\n"))
    }
}
