import FixtureCDN
import ScenarioSupport
import Testing

/// The cookie of the console: where it is sent, and which daemon's it is.
extension Stories {
    @Suite(.tags(.crowded)) struct ConsoleCookieTests {}
}

extension Stories.ConsoleCookieTests {
    private static let token = "acc3ss-token"
    private static let right = [("Authorization", "Bearer \(token)")]

    @Test(arguments: [
        ("", "/hls/"), ("?path=%2F", "/"), ("?path=%2Ftv%2F", "/tv/"), ("?path=%2Ftv", "/tv/"),
        ("?path=%2F%2Fevil", "/hls/"), ("?path=%2Fa%3BDomain%3Dtest", "/hls/"),
        ("?path=a", "/hls/"), ("?path=%2Fa%0Ab", "/hls/"),
    ])
    func `the cookie has the path of the page, else the base path`(
        _ query: String, _ path: String
    ) throws {
        let story = try Story(["--token", Self.token, "--base-path", "/hls"])
        for method in ["POST", "DELETE"] {
            let answer = try story.follow(
                "/api/session\(query)", headers: Self.right, method: method)
            #expect(answer.status == 204)
            let field = try #require(answer["Set-Cookie"])
            #expect(field.contains("; Path=\(path); Max-Age="), "\(method): \(field)")
        }
    }

    @Test func `a session begins with the token, not with the cookie of another session`() throws {
        let story = try Story(["--token", Self.token])
        let begun = try story.follow("/api/session", headers: Self.right, method: "POST")
        let field = try #require(begun["Set-Cookie"])
        let cookie = [("Cookie", String(field.prefix { $0 != ";" }))]
        #expect(try story.follow("/api/stats", headers: cookie).status == 200)
        let renewed = try story.follow("/api/session", headers: cookie, method: "POST")
        #expect(renewed.status == 401 && renewed["Set-Cookie"] == nil, "\(renewed.text)")
        let both = try story.follow(
            "/api/session", headers: cookie + Self.right, method: "POST")
        #expect(both.status == 204 && both["Set-Cookie"] != nil)
    }

    @Test func `daemons on ports of one host do not end each other's sessions`() throws {
        let stories = try (0..<2).map { _ in try Story(["--token", Self.token]) }
        let fields = try stories.map { story in
            let answer = try story.follow("/api/session", headers: Self.right, method: "POST")
            return String(try #require(answer["Set-Cookie"]).prefix { $0 != ";" })
        }
        // A browser keeps one cookie of a name for the host, whatever the port.
        let names = Set(fields.map { $0.prefix { $0 != "=" } })
        #expect(names.count == 2, "\(names)")
        for (story, others) in zip(stories, [fields[1], fields[0]]) {
            let both = [("Cookie", fields.joined(separator: "; "))]
            #expect(try story.follow("/api/stats", headers: both).status == 200)
            let other = [("Cookie", others)]
            #expect(try story.follow("/api/stats", headers: other).status == 401)
        }
    }
}
