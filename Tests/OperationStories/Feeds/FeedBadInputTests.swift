import FixtureCDN
import ScenarioSupport
import Testing

/// Invalid orders and positions of feeds are rejected with the reason, and do no harm.
extension Stories {
    @Suite(.tags(.crowded)) struct FeedBadInputTests {
        @Test func `invalid orders are refused with the reason`() throws {
            let feed = try ShownFeed(items: 1)
            let orders = [
                ("", "no JSON"), ("{", "no JSON"), ("[]", "entries"), ("{}", "entries"),
                (#"{"entries":[]}"#, "empty"), (#"{"entries":5}"#, "entries"),
                (#"{"entries":["http://a.test/"],"index":1}"#, "index"),
                (#"{"entries":["http://a.test/"],"index":-1}"#, "index"),
                (#"{"entries":["http://a.test/"],"direction":"up"}"#, "direction"),
                (#"{"entries":["http://a.test/"],"scheme":"x"}"#, "scheme"),
                (#"{"entries":["http://a.test/"],"height":"tall"}"#, "height"),
                (#"{"entries":["http://a.test/"],"parameters":{"speed":1}}"#, "speed"),
                (#"{"entries":["http://a.test/"],"parameters":{"ahead":"two"}}"#, "ahead"),
                (#"{"entries":["http://a.test/"]} x"#, "follows the value"),
                (String(repeating: "[", count: 1_000), "deep"),
            ]
            for (order, word) in orders {
                let answer = try feed.send("PUT", "", order)
                #expect(answer.status == 400, "\(order)")
                #expect(answer.text.contains(word), "\(order): \(answer.text)")
            }
            #expect(try feed.send("GET", "").status == 404)
        }

        @Test func `entries that cannot be fetched affect only their own items`() throws {
            let feed = try ShownFeed(items: 1)
            let good = #""\#(feed.story.cdn.url(feed.list(0)))""#
            let bad = [
                #""ftp://a.test/x""#, "7", "{}", #"{"url":"http://a.test/","headers":{"a b":"c"}}"#,
                #"{"url":"http://a.test/","weight":0}"#, #""http://""#,
            ]
            let body = #"{"entries":[\#((bad + [good]).joined(separator: ","))],"index":6}"#
            let answer = try feed.send("PUT", "", body)
            #expect(answer.status == 200)
            #expect(answer.text.split(separator: "\"reason\":\"").count > bad.count)
            #expect(try feed.settles(6, "whole"))
            _ = try feed.move(to: 0)
            #expect(try feed.settles(0, "dead"))
        }

        @Test func `positions outside of the list are refused`() throws {
            let feed = try ShownFeed(items: 6)
            _ = try feed.put()
            let queries = [
                "?index=6", "?index=-1", "?index=x", "", "?index=99999999999999999999",
                "?index=1&direction=up",
            ]
            for query in queries {
                #expect(try feed.send("POST", "/position\(query)").status == 400, "\(query)")
            }
            #expect(try feed.send("POST", "/position?index=5&direction=backward").status == 200)
            #expect(try feed.settles(5, "whole"))
        }

        @Test func `a position that a shorter order ends is ignored`() throws {
            let feed = try ShownFeed(items: 40)
            _ = try feed.put()
            // The order takes a while to read, so that positions are checked against the former.
            let padding = String(repeating: " ", count: 8_000_000)
            let order = #"{"entries":["\#(feed.story.cdn.url(feed.list(0)))"]\#(padding)}"#
            let story = feed.story
            let replaced = Background {
                try story.player().get("/api/feeds/f", method: "PUT", body: Array(order.utf8))
                    .status
            }
            while !replaced.isDone {
                let status = try feed.send("POST", "/position?index=39").status
                #expect(status == 200 || status == 400)
            }
            #expect(try replaced.value() == 200)
            #expect(try feed.send("POST", "/position?index=39").status == 400)
            #expect(try feed.send("POST", "/position?index=0").status == 200)
        }

        @Test func `unknown methods and names are refused`() throws {
            let feed = try ShownFeed(items: 1)
            #expect(try feed.send("POST", "/position?index=0").status == 404)
            #expect(try feed.send("DELETE", "").status == 404)
            _ = try feed.put()
            #expect(try feed.send("GET", "/position").status == 405)
            #expect(try feed.send("GET", "/speed").status == 404)
            #expect(try feed.send("POST", "").status == 405)
            #expect(try feed.send("PUT", "%2F%2Fx", "{}").status == 400)
            #expect(try feed.story.follow("/api/feeds", method: "DELETE").status == 405)
            #expect(try feed.story.follow("/api/feeds").text.contains("\"name\":\"f\""))
        }

        @Test func `a page of another site may not make a feed`() throws {
            let feed = try ShownFeed(items: 1)
            let answer = try feed.story.player().get(
                "/api/feeds/f", headers: [("Origin", "https://evil.test")], method: "PUT",
                body: Array("{}".utf8))
            #expect(answer.status == 403)
        }

        @Test func `a store without room keeps nothing of a feed, and plays all the same`() throws {
            let story = try Story(["--cache-size", "1MB"])
            story.cdn.put("/v.m3u8", text: vod((0..<4).map { "/bytes/700000/r\($0).ts" }))
            let body = #"{"entries":["\#(story.cdn.url("/v.m3u8"))"]}"#
            let path = "/api/feeds/full"
            _ = try story.player().get(path, method: "PUT", body: Array(body.utf8))
            #expect(eventually { story.cdn.requestCount("/bytes/700000/r1.ts") > 0 })
            let links = try story.links(in: "/v.m3u8")
            for (number, link) in links.enumerated() {
                let answer = try story.follow(link)
                #expect(isContent(answer.body, of: "/bytes/700000/r\(number).ts"))
            }
            #expect(try story.follow(path).status == 200)
        }
    }
}
