import FixtureCDN
import ScenarioSupport
import Testing

/// Accounts that allow one connection, with default options.
extension Stories {
    @Suite(.tags(.timed)) struct OneConnectionTests {
        /// An account: what a player asks for is refused while the CDN sends anything else.
        ///
        /// A path that was refused before waits for the account to notice that the rest has ended.
        ///
        /// - Parameters:
        ///   - cdn: the CDN.
        ///   - film: a path that is redirected to the CDN.
        /// - Returns: the origin.
        /// - Throws: if it cannot listen.
        private func account(_ cdn: FixtureCDN, film: String? = nil) throws -> AnsweringOrigin {
            let asked = Shared<[String: Int]>([:])
            return try AnsweringOrigin { head, _ in
                if let film, head.path == film {
                    return .response(302, [("Location", cdn.url(film))], [])
                }
                asked.update { $0[head.path, default: 0] += 1 }
                let isFirst = asked.value[head.path] == 1
                let isAlone =
                    isFirst ? cdn.activeRequests == 0 : eventually { cdn.activeRequests == 0 }
                return isAlone
                    ? .response(200, [("Content-Type", "video/mp2t")], [0x47])
                    : .response(403, [], [])
            }
        }

        /// Has the daemon download what the CDN does not send to its end.
        private func download(_ path: String, on story: Story, from base: String? = nil) throws {
            story.cdn.hold(path)
            let url = percentEncoded(base.map { $0 + path } ?? story.cdn.url(path))
            _ = try story.api("downloads?url=\(url)", method: "POST")
            #expect(eventually { story.cdn.activeRequests == 1 })
        }

        @Test func `a player that is refused beside a download gets the connection`() throws {
            let story = try Story()
            let account = try account(story.cdn)
            defer { account.stop() }
            try download(segment("film", 9_000), on: story)
            let first = try story.player().get(story.url(for: account.baseURL + "/1.ts"))
            #expect(first.status == 200 && first.body == [0x47])
            #expect(try story.api("origins").contains("\"connection_limit\":null"))
            // The download goes on, and has to make room for good.
            #expect(eventually(within: .seconds(30)) { story.cdn.activeRequests == 1 })
            let second = try story.player().get(story.url(for: account.baseURL + "/2.ts"))
            #expect(second.status == 200)
            #expect(try story.api("origins").contains("\"connection_limit\":1"))
            #expect(eventually { story.daemon.standardError.contains("--host-limit 1") })
        }

        /// The account counts what its host has redirected to another one.
        @Test func `a player that is refused beside a redirected download gets the connection`()
            throws
        {
            let story = try Story()
            let film = segment("film", 9_000)
            let account = try account(story.cdn, film: film)
            defer { account.stop() }
            let panel = "http://localhost:\(account.port)"
            try download(film, on: story, from: panel)
            let first = try story.player().get(story.url(for: panel + "/1.ts"))
            #expect(first.status == 200 && first.body == [0x47])
            #expect(eventually(within: .seconds(30)) { story.cdn.activeRequests == 1 })
            let second = try story.player().get(story.url(for: panel + "/2.ts"))
            #expect(second.status == 200)
            #expect(try story.api("origins").contains("\"connection_limit\":1"))
        }

        @Test func `a refusal that has another reason is passed on`() throws {
            let story = try Story()
            let count = Shared(0)
            let origin = try AnsweringOrigin { _, _ in
                count.update { $0 += 1 }
                return .response(403, [], [])
            }
            defer { origin.stop() }
            try download(segment("film", 9_000), on: story)
            let answer = try story.player().get(story.url(for: origin.baseURL + "/1.ts"))
            #expect(answer.status == 403 && count.value == 2)
            #expect(eventually(within: .seconds(30)) { story.cdn.activeRequests == 1 })
            _ = try story.player().get(story.url(for: origin.baseURL + "/2.ts"))
            #expect(count.value == 3, "no other trial so soon")
            #expect(try story.api("origins").contains("\"connection_limit\":null"))
        }
    }
}
