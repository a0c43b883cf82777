import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Tokens that expire during play: the player's old links continue to work.
extension Stories {
    @Suite(.tags(.crowded)) struct KeysRevivalTests {}
}

extension Stories.KeysRevivalTests {
    /// Puts a film with three segments under a token: the entry is free, everything else requires
    /// it.
    private func put(_ story: Story, _ token: String, playlistToo: Bool = false) {
        let names = (0..<3).map { "/bytes/30000/s\($0).ts?\(token)" }
        let list = playlistToo ? "/v/l.m3u8?\(token)" : "/v/l.m3u8"
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(list)\n")
        story.cdn.put("/v/l.m3u8", text: vod(names))
        let need = Behaviour(query: "need\(token)")
        for index in 0..<3 { story.cdn.setBehaviour(need, for: "/bytes/30000/s\(index).ts") }
        if playlistToo { story.cdn.setBehaviour(need, for: "/v/l.m3u8") }
    }

    /// The links to the segments, as a player got them from the entry on.
    fileprivate func segmentLinks(_ story: Story) throws -> [String] {
        let variant = try #require(uriLines(try story.get("/m.m3u8").text).first)
        return uriLines(try story.follow(variant).text)
    }

    @Test(arguments: [true, false])
    func `a dead token costs one refresh of the playlist`(isKnownKind: Bool) throws {
        let story = try Story()
        let tokens = isKnownKind ? [signature(1), signature(2)] : ["token=a", "token=b"]
        put(story, tokens[0])
        let links = try segmentLinks(story)
        #expect(try story.follow(links[0]).status == 200)
        put(story, tokens[1])
        for index in 0..<3 {
            let answer = try story.follow(links[index])
            #expect(answer.status == 200)
            #expect(isContent(answer.body, of: "/bytes/30000/s\(index).ts"))
        }
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(story.cdn.requestCount("/m.m3u8") == 1)
    }

    @Test func `links to later segments do not request the dead URL again`() throws {
        let story = try Story()
        put(story, "token=a")
        let links = try segmentLinks(story)
        put(story, "token=b")
        for link in links { #expect(try story.follow(link).status == 200) }
        let refused = story.cdn.requests.filter { $0.status == 403 }
        #expect(refused.count == 1)
    }

    @Test func `a playlist whose own token expired is found through its parent`() throws {
        let story = try Story()
        put(story, signature(1), playlistToo: true)
        let links = try segmentLinks(story)
        put(story, signature(2), playlistToo: true)
        #expect(try story.follow(links[0]).status == 200)
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
    }

    @Test(arguments: [true, false])
    func `a live playlist whose own token expired is reloaded at its new URL`(
        isKnownKind: Bool
    ) throws {
        let story = try Story()
        func show(_ token: String, from first: Int) {
            let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/v/l.m3u8?\(token)\n"
            story.cdn.put("/m.m3u8", text: master)
            let segments = (first..<first + 3).map { "#EXTINF:2,\ns\($0).ts\n" }.joined()
            let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
            story.cdn.put("/v/l.m3u8", text: head + segments)
            story.cdn.setBehaviour(Behaviour(query: "need\(token)"), for: "/v/l.m3u8")
        }
        let tokens = isKnownKind ? [signature(1), signature(2)] : ["token=a", "token=b"]
        show(tokens[0], from: 0)
        let link = try #require(uriLines(try story.get("/m.m3u8").text).first)
        func isList(from first: Int) throws -> Bool {
            try story.follow(link).text.contains("#EXT-X-MEDIA-SEQUENCE:\(first)\n")
        }
        #expect(try isList(from: 0))
        for first in 1...3 {
            show(tokens[1], from: first)
            // Until half of the target duration is over, the last one is served.
            #expect(try eventually { try isList(from: first) })
        }
        #expect(story.cdn.requests.filter { $0.status == 403 }.count == 1)
        // Without the origin it is still the list of the new URL that players get.
        story.cdn.stop()
        var list = try story.follow(link)
        #expect(
            try eventually {
                list = try story.follow(link)
                return list["Cache-Status"]?.contains("origin-unreachable") == true
            })
        #expect(list.text.contains("#EXT-X-MEDIA-SEQUENCE:3\n"))
    }

    /// Puts a channel whose only variant has a name of its own in each session of the origin.
    private func air(_ story: Story, _ name: String, from first: Int) {
        let master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n/c/\(name).m3u8\n"
        story.cdn.put("/m.m3u8", text: master)
        let segments = (first..<first + 3).map { "#EXTINF:2,\ns\($0).ts\n" }.joined()
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
        story.cdn.put("/c/\(name).m3u8", text: head + segments)
    }

    @Test(arguments: ["status=404", "status=400"])
    func `a live playlist that the origin has renamed is found through its parent`(
        refusal: String
    ) throws {
        let story = try Story()
        air(story, "one", from: 0)
        let link = try #require(uriLines(try story.get("/m.m3u8").text).first)
        #expect(try story.follow(link).text.contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
        air(story, "two", from: 1)
        story.cdn.setBehaviour(Behaviour(query: refusal), for: "/c/one.m3u8")
        #expect(
            try eventually {
                try story.follow(link).text.contains("#EXT-X-MEDIA-SEQUENCE:1\n")
            })
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
        // Whoever opens the channel next begins at the new name.
        let opened = try story.get("/m.m3u8").text
        #expect(uriLines(opened).first != link)
    }

    @Test(arguments: [false, true])
    func `a renamed playlist is found although its parent was read anew for another player`(
        restarts: Bool
    ) throws {
        let story = try Story()
        air(story, "one/v", from: 0)
        let link = try path(of: #require(uriLines(try story.get("/m.m3u8").text).first))
        #expect(try story.player().get(link).text.contains("#EXT-X-MEDIA-SEQUENCE:0\n"))
        air(story, "two/v", from: 1)
        story.cdn.setBehaviour("status=404", for: "/c/one/v.m3u8")
        _ = try story.ask("purge", story.cdn.url("/m.m3u8"))
        #expect(try story.get("/m.m3u8").status == 200)
        if restarts { try story.restart() }
        #expect(
            try eventually {
                try story.player().get(link).text.contains("#EXT-X-MEDIA-SEQUENCE:1\n")
            })
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
        let dead = story.cdn.requestCount("/c/one/v.m3u8")
        #expect(try story.player().get(link).status == 200)
        #expect(story.cdn.requestCount("/c/one/v.m3u8") == dead)
    }

    @Test(arguments: [false, true])
    func `a channel that is gone costs one refresh of its multivariant playlist`(
        isEntryGone: Bool
    ) throws {
        let story = try Story()
        air(story, "one", from: 0)
        let link = try #require(uriLines(try story.get("/m.m3u8").text).first)
        #expect(try story.follow(link).status == 200)
        story.cdn.setBehaviour("status=404", for: "/c/one.m3u8")
        if isEntryGone { story.cdn.setBehaviour("status=404", for: "/m.m3u8") }
        #expect(try eventually { try story.follow(link).status == 404 })
        for _ in 1...3 { #expect(try story.follow(link).status == 404) }
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
    }

    @Test func `players that meet the dead token together share one refresh`() throws {
        let story = try Story()
        put(story, "token=a")
        let links = try segmentLinks(story)
        put(story, "token=b")
        story.cdn.setBehaviour("fb=200", for: "/v/l.m3u8")
        let statuses = try inParallel(6) { try story.follow(links[$0 % 3]).status }
        #expect(statuses == Array(repeating: 200, count: 6))
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
    }

    @Test func `a token that stays dead is reported after one refresh`() throws {
        let story = try Story()
        put(story, "token=a")
        let links = try segmentLinks(story)
        story.cdn.setBehaviour("needtoken=z", for: "/bytes/*")
        for index in 0..<3 {
            story.cdn.setBehaviour("needtoken=z", for: "/bytes/30000/s\(index).ts")
        }
        for _ in 1...3 { #expect(try story.follow(links[0]).status >= 400) }
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
    }

    @Test func `a live playlist's segments are found under the new token`() throws {
        let story = try Story()
        let head = ["#EXT-X-MEDIA-SEQUENCE:7"]
        func live(_ token: String, from first: Int) -> String {
            vod((first..<(first + 3)).map { "/bytes/30000/s\($0).ts?\(token)" }, head: head)
                .replacing("#EXT-X-ENDLIST\n", with: "")
        }
        story.cdn.put("/l.m3u8", text: live("token=a", from: 0))
        let links = uriLines(try story.get("/l.m3u8").text)
        story.cdn.put("/l.m3u8", text: live("token=b", from: 1))
        story.cdn.setBehaviour("needtoken=b", for: "/bytes/*")
        let answer = try story.follow(links[2])
        #expect(answer.status == 200)
        #expect(isContent(answer.body, of: "/bytes/30000/s2.ts"))
    }

    @Test func `a token is found again after its playlist was evicted`() throws {
        let story = try Story()
        put(story, "token=a")
        let links = try segmentLinks(story)
        #expect(try story.follow(links[0]).status == 200)
        _ = try story.ask("purge", story.cdn.url("/v/l.m3u8"))
        put(story, "token=b")
        #expect(try story.follow(links[1]).status == 200)
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(story.cdn.requestCount("/m.m3u8") == 1)
    }

    @Test func `a player that continues after a restart gets a refresh too`() throws {
        let story = try Story()
        put(story, "token=a")
        let links = try segmentLinks(story)
        #expect(try story.follow(links[0]).status == 200)
        try story.restart()
        put(story, "token=b")
        #expect(try story.player().get(path(of: links[1])).status == 200)
    }

    @Test(arguments: [false, true])
    func `links with user information are found again with it, also after a restart`(
        restarts: Bool
    ) throws {
        let story = try Story()
        // "Basic " and the Base64 of ann:s3cret
        let login = "needheader=Authorization:Basic%20YW5uOnMzY3JldA=="
        func renew(_ token: String) {
            put(story, token)
            for path in ["/m.m3u8", "/v/l.m3u8"] {
                story.cdn.setBehaviour(Behaviour(query: login), for: path)
            }
            let need = Behaviour(query: "need\(token)&\(login)")
            for index in 0..<3 { story.cdn.setBehaviour(need, for: "/bytes/30000/s\(index).ts") }
        }
        renew("token=a")
        let entry = "/http://ann:s3cret@127.0.0.1:\(story.cdn.port)/m.m3u8"
        let variant = try #require(uriLines(try story.follow(entry).text).first)
        let links = uriLines(try story.follow(variant).text)
        #expect(try story.follow(links[0]).status == 200)
        if restarts { try story.restart() }
        renew("token=b")
        for index in 1...2 {
            let answer = try story.player().get(path(of: links[index]))
            #expect(answer.status == 200)
            #expect(isContent(answer.body, of: "/bytes/30000/s\(index).ts"))
        }
        #expect(story.cdn.requests.filter { $0.status == 403 }.count == 1)
    }

    @Test func `a reused name under a new token has its new bytes, also after a restart`() throws {
        let story = try Story()
        func show(_ first: Int, _ token: String, _ content: String) throws -> [String] {
            let names = (first...first + 2).map { "s\($0).ts" }
            for name in names { story.cdn.put("/\(name)", text: "\(content) of \(name)") }
            let head = ["#EXT-X-MEDIA-SEQUENCE:\(first)"]
            story.cdn.put(
                "/l.m3u8",
                text: vod(names.map { "\($0)?\(token)" }, head: head)
                    .replacing("#EXT-X-ENDLIST\n", with: ""))
            let count = story.cdn.requestCount("/l.m3u8")
            var list = ""
            #expect(
                try eventually {
                    list = try story.get("/l.m3u8").text
                    return story.cdn.requestCount("/l.m3u8") > count
                })
            return uriLines(list)
        }
        for link in try show(0, signature(1), "first") { _ = try story.follow(link) }
        _ = try show(17, signature(1), "first")
        let links = try show(0, signature(1), "second").map(path)
        try story.restart()
        story.cdn.setBehaviour(Behaviour(query: "need\(signature(2))"), for: "/s*")
        story.cdn.put(
            "/l.m3u8",
            text: vod(
                (0...2).map { "s\($0).ts?\(signature(2))" }, head: ["#EXT-X-MEDIA-SEQUENCE:0"]
            )
            .replacing("#EXT-X-ENDLIST\n", with: ""))
        #expect(try story.player().get(links[1]).text == "second of s1.ts")
    }

    fileprivate func path(of link: String) -> String {
        link.hasPrefix("/")
            ? link : "/" + link.split(separator: "/").dropFirst(2).joined(separator: "/")
    }
}

/// Bodies that are stored in part when their token expires.
extension Stories.KeysRevivalTests {
    private static let length = 400_000

    private func longPath(_ index: Int) -> String { segment("s\(index)", Self.length) }

    /// Puts a title with three long segments that require a token.
    private func putLong(_ story: Story, _ token: String, _ more: String = "") {
        story.cdn.put("/l.m3u8", text: vod((0..<3).map { "\(longPath($0))?\(token)" }))
        for index in 0..<3 {
            story.cdn.setBehaviour(
                Behaviour(query: "need\(token)\(more)"), for: longPath(index))
        }
    }

    /// The links of a title of which the first bytes of the first two segments are stored.
    private func linksToParts(
        _ story: Story, _ token: String, _ more: String = ""
    ) throws -> [String] {
        putLong(story, token, more)
        let links = uriLines(try story.get("/l.m3u8").text)
        for link in links.prefix(2) {
            let head = try story.follow(link, headers: [("Range", "bytes=0-99999")])
            #expect(head.status == 206 && head.complete)
        }
        return links
    }

    private func refusals(_ story: Story) -> Int {
        story.cdn.requests.filter { $0.status == 403 }.count
    }

    @Test(arguments: [true, false], ["", "&noetag=1&lastmod="])
    func `a body that is stored in part goes on under the new token`(
        isKnownKind: Bool, validators: String
    ) throws {
        let story = try Story()
        let tokens = isKnownKind ? [signature(1), signature(2)] : ["token=a", "token=b"]
        let links = try linksToParts(story, tokens[0], validators)
        putLong(story, tokens[1], validators)
        for index in 0..<3 {
            let answer = try story.follow(links[index])
            #expect(answer.status == 200 && answer.complete)
            #expect(isContent(answer.body, of: longPath(index)))
        }
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
        #expect(refusals(story) == 1)
        // Without a validator, up to 8 KiB before the missing bytes are compared.
        for index in 0..<2 { #expect(story.cdn.bytesSent(longPath(index)) < Self.length + 10_000) }
    }

    @Test(arguments: [true, false])
    func `a range that lacks its first byte begins at the URL that is known by now`(
        isKnownKind: Bool
    ) throws {
        let story = try Story()
        let tokens = isKnownKind ? [signature(1), signature(2)] : ["token=a", "token=b"]
        let links = try linksToParts(story, tokens[0])
        putLong(story, tokens[1])
        #expect(isContent(try story.follow(links[0]).body, of: longPath(0)))
        let answer = try story.follow(links[1], headers: [("Range", "bytes=200000-299999")])
        #expect(answer.status == 206)
        #expect(isContent(answer.body, of: longPath(1), from: 200_000, count: 100_000))
        #expect(refusals(story) == 1)
    }

    @Test func `a body whose transfer breaks after its token expired goes on at the new URL`()
        throws
    {
        let story = try Story()
        putLong(story, "token=a", "&trunc=200000")
        story.cdn.hold(longPath(0), afterBytes: 100_000)
        let link = try #require(uriLines(try story.get("/l.m3u8").text).first)
        let stream = try story.player().open(link)
        let begin = try stream.read(100_000)
        putLong(story, "token=b")
        story.cdn.release(longPath(0))
        let body = begin + (try stream.readRest())
        #expect(stream.broken == nil && isContent(body, of: longPath(0)))
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }

    @Test(arguments: [true, false])
    func `players that read one part when its token has expired all get the rest`(
        isKnownKind: Bool
    ) throws {
        let story = try Story()
        let tokens = isKnownKind ? [signature(1), signature(2)] : ["token=a", "token=b"]
        let links = try linksToParts(story, tokens[0])
        putLong(story, tokens[1])
        story.cdn.setBehaviour("fb=200", for: "/l.m3u8")
        let answers = try inParallel(6) { _ in try story.follow(links[0]) }
        for answer in answers {
            #expect(answer.complete && isContent(answer.body, of: longPath(0)))
        }
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }

    /// Puts two lists that name one segment, each with a token of its own.
    private func putTwice(_ story: Story) throws -> [String] {
        for number in 1...2 {
            story.cdn.put("/\(number).m3u8", text: vod(["\(longPath(0))?\(signature(number))"]))
        }
        return try (1...2).map { number in
            try #require(uriLines(try story.get("/\(number).m3u8").text).first)
        }
    }

    @Test func `a body whose transfer ends at another viewer's dead URL goes on at its own`() throws
    {
        let story = try Story()
        let links = try putTwice(story)
        // It waits where the transfer will end, so that the end is not of bytes that came before.
        let start = 100_001
        story.cdn.setBehaviour(Behaviour(query: "trunc=\(start)"), for: longPath(0))
        story.cdn.hold(longPath(0), afterBytes: start - 1)
        let other = try story.player().open(path(of: links[0]))
        _ = try other.read(start - 1)
        let stream = try story.player().open(
            path(of: links[1]), headers: [("Range", "bytes=\(start)-")])
        story.cdn.setBehaviour(Behaviour(query: "need\(signature(2))"), for: longPath(0))
        story.cdn.release(longPath(0))
        let body = try stream.readRest()
        #expect(stream.broken == nil)
        #expect(
            isContent(body, of: longPath(0), from: start, count: Self.length - start))
        #expect(story.cdn.requestCount("/2.m3u8") == 1)
    }

    @Test func `a request that shares the flight of a dead URL is sent at its own URL`() throws {
        let story = try Story()
        let links = try putTwice(story).map(path)
        let segment = longPath(0)
        let need = Behaviour(query: "need\(signature(2))&fb=300")
        story.cdn.setBehaviour(need, for: segment)
        let answers = try inParallel(2) { index in
            if index == 1 { _ = eventually { story.cdn.requestCount(segment) > 0 } }
            return try story.player().get(links[index])
        }
        #expect(answers[1].status == 200 && isContent(answers[1].body, of: segment))
        #expect(story.cdn.requestCount("/2.m3u8") == 1)
    }

    @Test func `the rest of another version does not follow the stored bytes`() throws {
        let story = try Story()
        let links = try linksToParts(story, "token=a")
        putLong(story, "token=b", "&etag=next&as=\(longPath(2))")
        let first = try story.follow(links[0])
        #expect(!first.complete)
        #expect(isContent(first.body, of: longPath(0), count: first.body.count))
        let second = try story.follow(links[0])
        #expect(second.complete && isContent(second.body, of: longPath(2)))
    }

    @Test func `another version of a segment under a new name bars no merge of tokens`() throws {
        let story = try Story()
        story.cdn.put("/l.m3u8", text: vod(["\(longPath(0))?\(signature(1))"]))
        let link = try #require(uriLines(try story.get("/l.m3u8").text).first)
        #expect(try story.follow(link, headers: [("Range", "bytes=0-99999")]).status == 206)
        story.cdn.put("/l.m3u8", text: vod(["\(longPath(1))?\(signature(2))"]))
        story.cdn.setBehaviour("status=403", for: longPath(0))
        story.cdn.setBehaviour("etag=next", for: longPath(1))
        #expect(try !story.follow(link).complete)
        #expect(story.cdn.requestCount(longPath(1)) > 0)
        #expect(try story.stat("key_vetoes_total") == 0)
    }

    @Test func `a part whose token stays dead breaks off after one refresh`() throws {
        let story = try Story()
        let links = try linksToParts(story, "token=a")
        for index in 0..<3 { story.cdn.setBehaviour("needtoken=z", for: longPath(index)) }
        for _ in 1...3 {
            let answer = try story.follow(links[0])
            #expect(!answer.complete && isContent(answer.body, of: longPath(0), count: 100_000))
        }
        #expect(story.cdn.requestCount("/l.m3u8") == 2)
    }
}

/// Cookies that playlists set and everything below them needs: stored playlists set none.
extension Stories.KeysRevivalTests {
    /// A film whose entry, or whose media playlist, sets a cookie that the segments require.
    private func film(
        isSetByMedia: Bool = false, age: Int? = nil, segments: Int = 3
    ) throws -> Story {
        let story = try Story()
        story.cdn.put("/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv/l.m3u8\n")
        story.cdn.put(
            "/v/l.m3u8", text: vod((0..<segments).map { "/bytes/30000/s\($0).ts" }))
        let life = age.map { ";%20Max-Age=\($0)" } ?? ""
        story.cdn.setBehaviour(
            Behaviour(query: "cookie=pass=1;%20Path=/\(life)"),
            for: isSetByMedia ? "/v/l.m3u8" : "/m.m3u8")
        for index in 0..<segments {
            story.cdn.setBehaviour("needcookie=pass=1", for: "/bytes/30000/s\(index).ts")
        }
        return story
    }

    @Test(arguments: [true, false])
    func `a cookie that a restart has lost comes from the playlist that sets it`(
        isSetByMedia: Bool
    ) throws {
        let story = try film(isSetByMedia: isSetByMedia)
        #expect(try story.follow(segmentLinks(story)[0]).status == 200)
        try story.restart()
        let links = try segmentLinks(story)
        for link in links { #expect(try story.follow(link).status == 200) }
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(story.cdn.requestCount("/m.m3u8") == (isSetByMedia ? 1 : 2))
    }

    @Test func `a player that continues at its old links gets the cookie too`() throws {
        let story = try film()
        let links = try segmentLinks(story)
        try story.restart()
        let player = story.player()
        #expect(try player.get(path(of: links[0])).status == 200)
    }

    @Test func `a cookie that has expired comes from the playlist that sets it`() throws {
        let story = try film(age: 1)
        let links = try segmentLinks(story)
        #expect(try story.follow(links[0]).status == 200)
        // Max-Age counts in seconds, and only elapsed time ends it.
        usleep(1_200_000)
        #expect(try story.follow(links[1]).status == 200)
    }

    @Test func `a segment gets the cookie that its playlist needs too`() throws {
        let story = try film()
        story.cdn.setBehaviour(Behaviour(query: "needcookie=pass=1"), for: "/v/l.m3u8")
        let links = try segmentLinks(story)
        try story.restart()
        let player = story.player()
        #expect(try player.get(path(of: links[0])).status == 200)
    }

    @Test func `another session of a stored title gets the cookie for itself`() throws {
        let story = try film(segments: 18)
        #expect(try story.follow(segmentLinks(story)[0]).status == 200)
        let url = percentEncoded(story.cdn.url("/m.m3u8"))
        for session in 1...8 {
            let entry = try story.follow("/proxy?url=\(url)&h_User-Agent=TV\(session)")
            let links = uriLines(try story.follow(#require(uriLines(entry.text).first)).text)
            let statuses = try inParallel(6) { number in
                try story.follow(links[2 * session + number % 2]).status
            }
            #expect(statuses == Array(repeating: 200, count: 6))
            #expect(story.cdn.requestCount("/m.m3u8") == 1 + session)
        }
    }

    @Test func `an origin that refuses for another reason is asked for its playlists once`() throws
    {
        let story = try film()
        let links = try segmentLinks(story)
        for index in 0..<3 {
            story.cdn.setBehaviour("needcookie=pass=2", for: "/bytes/30000/s\(index).ts")
        }
        for _ in 1...3 {
            for link in links { #expect(try story.follow(link).status == 403) }
        }
        #expect(story.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(story.cdn.requestCount("/m.m3u8") == 2)
        let asked = story.cdn.requests.filter { $0.path.hasPrefix("/bytes/") }
        #expect(asked.count <= 18)
    }
}
