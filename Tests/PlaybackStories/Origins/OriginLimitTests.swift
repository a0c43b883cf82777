import FixtureCDN
import ScenarioSupport
import Testing

/// Accounts that allow two connections, with `--origin-limit`.
extension Stories {
    @Suite(.tags(.timed)) struct OriginLimitTests {
        private static let limit = ["--origin-limit", "127.0.0.1=2"]

        /// The account counts the CDN's transfers and its own, and notices late that one has ended:
        /// it refuses each path once.
        @Test func `two players share an account for two, and a download makes way`() throws {
            let story = try Story(Self.limit)
            let asked = Shared(0)
            let account = try AnsweringOrigin { [cdn = story.cdn] _, _ in
                asked.update { $0 += 1 }
                let isNoticed = asked.value > 1 && eventually { cdn.activeRequests == 1 }
                return isNoticed
                    ? .response(200, [("Content-Type", "video/mp2t")], [0x47])
                    : .response(403, [], [])
            }
            defer { account.stop() }
            let film = segment("film", 9_000)
            story.cdn.hold(film)
            let order = percentEncoded(story.cdn.url(film))
            _ = try story.api("downloads?url=\(order)", method: "POST")
            #expect(eventually { story.cdn.activeRequests == 1 })
            let watched = segment("watched", 9_000)
            story.cdn.hold(watched, afterBytes: 1_000)
            let first = try story.open(watched)
            _ = try first.read(1_000)
            #expect(story.cdn.activeRequests == 2)
            let second = try story.player().get(story.url(for: account.baseURL + "/2.ts"))
            #expect(second.status == 200 && second.body == [0x47] && asked.value == 2)
            // The download goes on with the connection that is free again.
            #expect(eventually(within: .seconds(30)) { story.cdn.activeRequests == 2 })
            #expect(try story.api("origins").contains("\"connection_limit\":2"))
            let table = try sluice("origins", "--daemon", story.daemon.baseURL).stdout
            #expect(table.contains("up, 2 at once"), "\(table)")
            story.cdn.release(watched)
            #expect(try first.readRest().count == 8_000)
            story.cdn.release(film)
            #expect(story.cdn.peakConcurrentRequests == 2)
        }

        @Test func `no more transfers than that run, also if the host redirects them`() throws {
            let story = try Story(["--origin-limit", "localhost=2"])
            story.cdn.setBehaviour("fb=20", for: "/bytes/*")
            let panel = try AnsweringOrigin { [cdn = story.cdn] head, _ in
                .response(302, [("Location", cdn.url(head.path))], [])
            }
            defer { panel.stop() }
            let base = "http://localhost:\(panel.port)"
            let answers = try inParallel(12) {
                try story.player().get(story.url(for: base + segment("h\($0)", 5_000)))
            }
            #expect(answers.count { $0.status == 200 && $0.body.count == 5_000 } == 12)
            #expect(story.cdn.peakConcurrentRequests == 2)
        }

        @Test func `a refusal that follows no end of a transfer is passed on`() throws {
            let story = try Story(Self.limit)
            let count = Shared(0)
            let origin = try AnsweringOrigin { _, _ in
                count.update { $0 += 1 }
                return .response(403, [], [])
            }
            defer { origin.stop() }
            for number in 1...2 {
                let url = story.url(for: origin.baseURL + "/\(number).ts")
                #expect(try story.player().get(url).status == 403 && count.value == number)
            }
        }

        @Test func `a player that waits for the host for long is told of the option`() throws {
            let story = try Story([
                "--origin-limit", "127.0.0.1=1", "--slot-timeout", "1", "--stall-timeout", "60",
            ])
            let endless = segment("endless", 1_000_000)
            story.cdn.hold(endless, afterBytes: 1_000)
            let running = try story.open(endless)
            _ = try running.read(1_000)
            let answer = try story.get(segment("waits", 1_000))
            #expect(answer.status == 503, "\(answer.text)")
            #expect(answer.text.contains("all 1 transfers that may run at once to 127.0.0.1"))
            #expect(answer.text.contains("raise --origin-limit, or --slot-timeout"))
        }
    }
}
