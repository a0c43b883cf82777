import FixtureCDN
import ScenarioSupport
import Testing

/// Browser players of pages on other sites.
extension Stories {
    @Suite(.tags(.crowded)) struct CrossOriginTests {}
}

extension Stories.CrossOriginTests {
    private func story(_ arguments: [String] = []) throws -> Story {
        let story = try Story(arguments)
        story.cdn.put("/l.m3u8", text: vod(["a.ts"]))
        story.cdn.put("/a.ts", Array("bytes".utf8))
        return story
    }

    @Test
    func `a page of this machine may read, without credentials`() throws {
        let story = try story()
        for path in ["/l.m3u8", "/a.ts", "/missing.ts"] {
            for _ in 0..<2 {
                let answer = try story.get(path, headers: [("Origin", "http://localhost:5173")])
                #expect(answer.head.all("Access-Control-Allow-Origin") == ["*"])
                #expect(answer["Access-Control-Allow-Credentials"] == nil)
            }
        }
    }

    @Test
    func `an origin that was named is echoed, with credentials; others are not`() throws {
        let story = try story(["--cors-origin", "https://site.example"])
        let known = try story.get("/a.ts", headers: [("Origin", "https://site.example")])
        #expect(known.head.all("Access-Control-Allow-Origin") == ["https://site.example"])
        #expect(known["Access-Control-Allow-Credentials"] == "true")
        #expect(known["Vary"]?.contains("Origin") == true)
        let other = try story.get("/a.ts", headers: [("Origin", "http://127.0.0.1:5173")])
        #expect(other.head.all("Access-Control-Allow-Origin") == ["*"])
        #expect(
            other["Access-Control-Allow-Credentials"] == nil
                && other["Vary"]?.contains("Origin") == true)
    }

    @Test
    func `a preflight is answered here, for any header, and may be remembered`() throws {
        let story = try story()
        let answer = try story.get(
            "/a.ts",
            headers: [
                ("Origin", "http://app.localhost"), ("Access-Control-Request-Method", "GET"),
                ("Access-Control-Request-Headers", "range,cmcd-request,x-own"),
                ("Access-Control-Request-Private-Network", "true"),
            ], method: "OPTIONS")
        #expect(answer.status == 204 && answer.body.isEmpty && story.cdn.requestCount() == 0)
        #expect(answer["Access-Control-Allow-Headers"] == "range,cmcd-request,x-own")
        #expect(answer["Access-Control-Allow-Methods"]?.contains("GET") == true)
        #expect((answer["Access-Control-Max-Age"].flatMap { Int($0) } ?? 0) > 0)
        #expect(answer["Access-Control-Allow-Private-Network"] == "true")
    }

    @Test
    func `what players measure by is exposed`() throws {
        let answer = try story().get("/a.ts", range: "bytes=0-1")
        let exposed = answer["Access-Control-Expose-Headers"] ?? ""
        for name in ["Content-Range", "Content-Length", "Age", "Date", "Cache-Status"] {
            #expect(exposed.contains(name) && answer[name] != nil, "\(name)")
        }
    }

    @Test
    func `fields that speak for the origin are not replayed, and Vary does not split`() throws {
        let story = try story()
        let fields = [
            "Set-Cookie:a=b", "Strict-Transport-Security:max-age=9", "Alt-Svc:h3=\":443\"",
            "Content-Security-Policy:default-src x",
            "Link:</x>;rel=preload", "Access-Control-Allow-Origin:https://origin.example",
            "Access-Control-Allow-Credentials:true",
            "Keep-Alive:timeout=1", "X-Private:1", "Connection:X-Private", "Vary:Origin",
        ]
        let query = fields.map { "header=\(percentEncoded($0))" }.joined(separator: "&")
        for path in ["/a.ts", "/l.m3u8"] {
            story.cdn.setBehaviour(Behaviour(query: query), for: path)
        }
        for path in ["/a.ts", "/l.m3u8", "/a.ts", "/l.m3u8"] {
            let answer = try story.get(
                path, headers: [("Origin", "http://localhost:\(path.count)")])
            for name in [
                "Set-Cookie", "Strict-Transport-Security", "Alt-Svc", "Content-Security-Policy",
                "Link", "X-Private",
            ] {
                #expect(answer[name] == nil, "\(path) \(name)")
            }
            #expect(answer.head.all("Access-Control-Allow-Origin") == ["*"])
            #expect(answer["Access-Control-Allow-Credentials"] == nil)
        }
        #expect(story.cdn.requestCount("/a.ts") == 1 && story.cdn.requestCount("/l.m3u8") == 1)
    }

    @Test
    func `hop-by-hop fields of the player go no farther`() throws {
        let story = try story()
        _ = try story.get(
            "/a.ts",
            headers: [
                ("Connection", "keep-alive, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "timeout=9"),
                ("TE", "trailers"),
                ("Proxy-Authorization", "Basic x"), ("Cookie", "ours=1"),
                ("Origin", "http://localhost"),
            ])
        let request = try #require(story.cdn.requests.last)
        for name in ["X-Hop", "Keep-Alive", "TE", "Proxy-Authorization", "Cookie", "Origin"] {
            #expect(request[name] == nil, "\(name)")
        }
    }

    @Test
    func `markup is never served as such from our origin`() throws {
        let story = try story()
        story.cdn.put("/x", Array("<script>alert(1)</script>".utf8), contentType: "text/html")
        story.cdn.put(
            "/x.svg", Array("<svg onload='1'/>".utf8), contentType: "image/svg+xml; charset=utf-8")
        for path in ["/x", "/x.svg"] {
            let answer = try story.get(path)
            #expect(answer["Content-Type"] == "application/octet-stream")
            #expect(answer["X-Content-Type-Options"] == "nosniff")
        }
    }
}
