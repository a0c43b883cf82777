import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The daemon's routes to origins by settings: proxies, trust, client certificates.
extension Stories {
    @Suite(.tags(.crowded)) struct WaysOutTests {}
}

extension Stories.WaysOutTests {
    /// A host in the URL of an origin that no resolver knows, so that only the proxy can connect.
    private func named(_ story: Story, _ path: String, host: String = "cdn.test") -> String {
        story.url(for: "http://\(host):\(story.cdn.port)\(path)")
    }

    private static let secret = "s3cret"

    private static func scheme(_ kind: WayOutProxy.Kind) -> String {
        kind == .http ? "http" : "socks5h"
    }

    @Test(arguments: [WayOutProxy.Kind.socks5, .http])
    func `an origin is reached through its proxy, and its password shows nowhere`(
        _ kind: WayOutProxy.Kind
    ) throws {
        let proxy = try WayOutProxy(kind, user: "me", password: "s3cret@1")
        defer { proxy.stop() }
        let way = "\(Self.scheme(kind))://me:s3cret%401@127.0.0.1:\(proxy.port)"
        let story = try Story(["--origin-proxy", "*.test=\(way)", "--log-level", "trace"])
        let path = segment("a", 90_000)
        #expect(isContent(try story.player().get(named(story, path)).body, of: path))
        #expect(proxy.asked == ["cdn.test:\(story.cdn.port)"] && proxy.refused == 0)
        #expect(isContent(try story.get(path).body, of: path))
        #expect(proxy.asked.count == 1, "another origin is reached directly")
        for page in ["/api/stats", "/api/origins", "/metrics"] {
            #expect(!(try story.player().get(page).text.contains(Self.secret)))
        }
        #expect(!story.daemon.standardError.contains(Self.secret))
        let check = try sluice("check", "--origin-proxy", "*.test=\(way)")
        let shown = "origin-proxy *.test=\(Self.scheme(kind))://127.0.0.1:\(proxy.port) (with cred"
        #expect(check.status == 0 && check.stdout.contains(shown))
        #expect(!check.stdout.contains(Self.secret))
    }

    @Test(
        .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"),
        arguments: [WayOutProxy.Kind.socks5, .http])
    func `TLS to the origin goes through the proxy end to end`(_ kind: WayOutProxy.Kind) throws {
        let proxy = try WayOutProxy(kind)
        defer { proxy.stop() }
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let front = try NginxFront(.proxy(cdn))
        defer { front.stop() }
        let story = try Story([
            "--origin-proxy", "cdn.test=\(Self.scheme(kind))://127.0.0.1:\(proxy.port)",
            "--ca-file", front.caFile,
        ])
        let path = segment("a", 90_000)
        let url = story.url(for: "https://cdn.test:\(front.port)\(path)")
        let answer = try story.player().get(url)
        #expect(isContent(answer.body, of: path))
        #expect(!answer.head.fields.contains { $0.name == "X-Of-Proxy" })
        #expect(proxy.asked == ["cdn.test:\(front.port)"])
        let wrong = story.url(for: "https://cdn.test:\(front.port + 1)\(path)")
        let refusal = try story.player().get(wrong)
        #expect(refusal.status == 502 && refusal.text.contains("the proxy (--origin-proxy)"))
    }

    @Test func `the first matching pattern decides, and direct means no proxy`() throws {
        let proxy = try WayOutProxy(.socks5)
        defer { proxy.stop() }
        let story = try Story([
            "--origin-proxy", "127.0.0.1=direct",
            "--origin-proxy", "*=socks5h://127.0.0.1:\(proxy.port)",
            "--origin-proxy", "cdn.test=direct",
        ])
        let path = segment("a", 9_000)
        #expect(isContent(try story.get(path).body, of: path))
        #expect(proxy.asked.isEmpty)
        #expect(isContent(try story.player().get(named(story, path)).body, of: path))
        #expect(proxy.asked.count == 1)
    }

    @Test func `hosts are shown in the spelling that is matched`() throws {
        let check = try sluice(
            "check", "--origin-interface", "[2001:DB8:0::5]=tun0",
            "--origin-proxy", "b\u{fc}cher.test=direct")
        #expect(check.status == 0, "\(check.stderr)")
        #expect(check.stdout.contains("origin-interface 2001:db8::5=tun0"))
        #expect(check.stdout.contains("origin-proxy xn--bcher-kva.test=direct"))
        let wrong = try sluice("check", "--origin-policy", "u@a=rfc")
        #expect((wrong.stdout + wrong.stderr).contains("an origin is a host"))
    }

    @Test func `proxy variables of the environment are ignored`() throws {
        let proxy = try WayOutProxy(.http)
        let other = try WayOutProxy(.http)
        defer {
            proxy.stop()
            other.stop()
        }
        let story = try Story(
            ["--origin-proxy", "cdn.test=http://127.0.0.1:\(proxy.port)"],
            environment: [
                ("http_proxy", "http://127.0.0.1:\(other.port)"), ("no_proxy", "*"),
                ("NO_PROXY", "cdn.test"),
            ])
        let path = segment("a", 9_000)
        #expect(isContent(try story.player().get(named(story, path)).body, of: path))
        #expect(isContent(try story.get(path).body, of: path))
        #expect(proxy.asked.count == 1 && other.asked.isEmpty)
    }

    @Test func `a proxy gets no requests for literally private hosts`() throws {
        let proxy = try WayOutProxy(.socks5)
        defer { proxy.stop() }
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess([
            "serve", "--port", "0", "--cache-dir", folder.makeFolder("cache"), "--look-ahead",
            "off",
            "--origin-proxy", "*=socks5h://127.0.0.1:\(proxy.port)", "--allow-host", "nas.local",
        ])
        defer { daemon.kill(SIGKILL) }
        let player = ScriptedPlayer(daemon.baseURL)
        let path = segment("a", 9_000)
        func get(_ host: String) throws -> PlayerResponse {
            try player.get("\(daemon.baseURL)/http://\(host):\(cdn.port)\(path)")
        }
        for host in ["127.0.0.1", "localhost", "127.1", "router", "box.local", "10.0.0.1", "[::1]"]
        {
            let refusal = try get(host)
            #expect(refusal.status == 403, "\(host): \(refusal.text)")
            #expect(refusal.text.contains("--allow-host"))
        }
        #expect(proxy.asked.isEmpty)
        #expect(isContent(try get("nas.local").body, of: path))
        #expect(isContent(try get("cdn.test").body, of: path))
    }

    @Test(arguments: [WayOutProxy.Kind.socks5, .http])
    func `a proxy that refuses, or is unreachable, is reported as the cause`(
        _ kind: WayOutProxy.Kind
    ) throws {
        let proxy = try WayOutProxy(kind, user: "me", password: "right")
        defer { proxy.stop() }
        let gone = try WayOutProxy(kind)
        gone.stop()
        let scheme = Self.scheme(kind)
        let story = try Story([
            "--origin-proxy", "cdn.test=\(scheme)://me:\(Self.secret)@127.0.0.1:\(proxy.port)",
            "--origin-proxy", "gone.test=\(scheme)://127.0.0.1:\(gone.port)",
        ])
        let path = segment("a", 9_000)
        let refused = try story.player().get(named(story, path)).text
        #expect(refused.contains("the proxy for cdn.test (--origin-proxy) cannot be used"))
        #expect(refused.contains("does not accept the user and password"), "\(refused)")
        #expect(!refused.contains(Self.secret))
        let lost = try story.player().get(named(story, path, host: "gone.test"))
        #expect(lost.status == 502 && lost.text.contains("it does not accept connections"))
        #expect(!story.daemon.standardError.contains(Self.secret))
    }

    @Test(arguments: [
        ["cdn.test=ftp://u:s3cret@h:1", "its scheme is http, https, socks5 or socks5h"],
        ["cdn.test=http://u:s3cret@h", "it needs a port"],
        ["cdn.test=socks5://u:s3cret@h:1/x", "it has neither path nor query"],
        ["cdn.test=socks5://u:s3cret@h:70000", "it is written socks5://[USER:PASSWORD@]HOST:PORT"],
        ["http://u:s3cret@h:1/?a=b", "origin-proxy is written HOST=URL"],
        ["s3cret", "origin-proxy is written HOST=URL or HOST=direct"],
    ])
    func `an invalid proxy is a configuration error that contains no secret`(
        _ text: [String]
    ) throws {
        let check = try sluice("check", "--origin-proxy", text[0])
        #expect(check.status != 0 && check.stderr.contains(text[1]), "\(check.stderr)")
        #expect(!check.stderr.contains(Self.secret))
    }
}
