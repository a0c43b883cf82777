import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Addresses and interfaces that the configuration sets for origins.
extension Stories {
    @Suite(.tags(.crowded)) struct FixedAddressTests {}
}

extension Stories.FixedAddressTests {
    @Test func `a host has the addresses that are given by hand, private ones too`() throws {
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let folder = try TemporaryFolder()
        let daemon = try DaemonProcess([
            "serve", "--port", "0", "--cache-dir", folder.makeFolder("cache"), "--look-ahead",
            "off",
            "--resolve", "CDN.test:\(cdn.port)=127.0.0.1",
        ])
        defer { daemon.kill(SIGKILL) }
        let player = ScriptedPlayer(daemon.baseURL)
        let path = segment("a", 9_000)
        func get(_ authority: String, _ headers: [WireHead.Field] = []) throws -> PlayerResponse {
            try player.get("\(daemon.baseURL)/http://\(authority)\(path)", headers: headers)
        }
        // It lets no page of another site reach a private origin.
        let page = [("Origin", "https://page.example"), ("Sec-Fetch-Site", "cross-site")]
        #expect(try get("cdn.test:\(cdn.port)", page).status == 403)
        #expect(isContent(try get("cdn.test:\(cdn.port)").body, of: path))
        // Permission for one name does not cover the address under another.
        let other = try get("127.0.0.1:\(cdn.port)")
        #expect(other.status == 403 && other.text.contains("127.0.0.1"))
    }

    @Test func `an interface that this machine lacks is named as the reason`() throws {
        let story = try Story(["--origin-interface", "127.0.0.1=none0"])
        let answer = try story.get(segment("a", 9_000))
        #expect(answer.status == 502)
        #expect(
            answer.text.contains(
                "the way out to 127.0.0.1 (--origin-interface) cannot be used"), "\(answer.text)")
    }

    @Test(arguments: [
        ["--resolve", "cdn.test=1.2.3.4", "resolve is written HOST:PORT=ADDRESS[,ADDRESS]"],
        ["--resolve", "10.0.0.1:80=1.2.3.4", "with the name of a host"],
        ["--resolve", "cdn.test:80=1.2.3.4,", "are IPv4 or IPv6"],
        ["--resolve", "cdn.test:80=other.test", "are IPv4 or IPv6"],
        ["--origin-interface", "eth0", "origin-interface is written HOST=NAME"],
        ["--origin-interface", "*=if!eth0", "is the name of an interface"],
    ])
    func `an invalid address or interface is a configuration error`(_ text: [String]) throws {
        let check = try sluice("check", text[0], text[1])
        #expect(check.status != 0 && check.stderr.contains(text[2]), "\(check.stderr)")
    }

    @Test func `check lists interfaces and addresses`() throws {
        let check = try sluice(
            "check", "--origin-interface", "*.test=wg0", "--resolve",
            "cdn.test:443=192.0.2.1,[::1]",
            "--resolve", "cdn.test:443=192.0.2.2")
        #expect(check.status == 0, "\(check.stderr)")
        for line in [
            "  origin-interface *.test=wg0\n", "  resolve cdn.test:443=192.0.2.1,::1\n",
            "  resolve cdn.test:443=192.0.2.2\n",
        ] {
            #expect(check.stdout.contains(line), "\(check.stdout)")
        }
    }
}
