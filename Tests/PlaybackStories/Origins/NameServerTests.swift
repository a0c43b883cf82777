import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Names of origins that a server resolves over HTTPS (RFC 8484).
extension Stories {
    @Suite(.tags(.timed), .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct NameServers {
        /// A DNS message (RFC 1035 section 4.1): the answer to any question, 127.0.0.1 for all
        /// subdomains of `host`.
        private func message(_ host: String?) -> [UInt8] {
            let code: UInt8 = host == nil ? 3 : 0
            let head: [UInt8] = [0, 0, 0x81, 0x80 | code, 0, 0, 0, host == nil ? 0 : 1, 0, 0, 0, 0]
            guard let host else { return head }
            let name = host.split(separator: ".").flatMap {
                [UInt8($0.utf8.count)] + Array($0.utf8)
            }
            return head + name + [0, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]
        }

        private func story(_ front: NginxFront, _ path: String = "/dns-query") throws -> Story {
            try Story(["--ca-file", front.caFile, "--doh-url", front.url(path)])
        }

        @Test func `an origin that only the server can resolve is found`() throws {
            let server = try ScriptedOrigin()
            let front = try NginxFront(.address(server.baseURL))
            defer { front.stop() }
            let story = try story(front)
            for _ in 0..<2 {
                server.answer(
                    "/dns-query",
                    .respond(
                        200, [("Content-Type", "application/dns-message")], message("film.test")))
            }
            let path = segment("a", 9_000)
            let url = story.url(for: "http://film.test:\(story.cdn.port)\(path)")
            #expect(isContent(try story.player().get(url).body, of: path))
            // One question for each family of addresses, in the wire format.
            #expect(server.requestCount("/dns-query") == 2)
            let question = [4] + Array("film".utf8) + [4] + Array("test".utf8) + [0, 0]
            #expect(
                server.bodies.allSatisfy {
                    $0.count == 27 && Array($0[12..<24]).starts(with: question)
                })
            #expect(Set(server.bodies.map { $0[24] }) == [1, 28])
        }

        @Test func `a server that fails is reported as the cause, not the origin`() throws {
            let server = try ScriptedOrigin()
            let front = try NginxFront(.address(server.baseURL))
            let story = try story(front)
            let url = story.url(for: "http://film.test/a.ts")
            // The daemon retries while its player has patience.
            for _ in 0..<100 { server.answer("/dns-query", .respond(200, [], message(nil))) }
            let unknown = try story.player().get(url)
            #expect(unknown.status == 502)
            #expect(unknown.text.contains("the DNS server of --doh-url gave no address for it"))
            front.stop()
            let failed = try story.player().get(story.url(for: "http://other.test/a.ts"))
            #expect(failed.status == 502)
            #expect(failed.text.contains("the DNS server of --doh-url failed, not the origin"))
        }

        @Test func `a resolver that is not an https URL is a configuration error`() throws {
            for url in ["http://127.0.0.1/dns-query", "9.9.9.9", "https://me:word@host/"] {
                let run = try Tool.run([try DaemonProcess.builtBinary(), "check", "--doh-url", url])
                #expect(run.status != 0 && run.stderr.contains("doh-url"), "\(url): \(run.stderr)")
            }
        }
    }
}
