import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of the second level: a bucket that nodes share, against a store whose faults are chosen.
extension Stories {
    @Suite(.tags(.crowded)) struct SharedStoreTests {}
}

private let master = """
    #EXTM3U
    #EXT-X-STREAM-INF:BANDWIDTH=1
    list.m3u8
    """

extension Stories.SharedStoreTests {
    /// Puts a film with two segments at the origin; returns how many objects it has.
    @discardableResult
    private func putFilm(_ tier: Tier) -> Int {
        tier.cdn.put("/f/master.m3u8", text: master)
        tier.cdn.put(
            "/f/list.m3u8",
            text: """
                #EXTM3U
                #EXT-X-TARGETDURATION:4
                #EXTINF:4,
                /bytes/150000/a.ts
                #EXTINF:4,
                /bytes/90000/b.ts
                #EXT-X-ENDLIST
                """)
        return 4
    }

    /// Plays the film and returns whether every byte is right.
    private func plays(_ node: Tier.Node) throws -> Bool {
        let list = try #require(uriLines(try node.get("/f/master.m3u8").text).first)
        let segments = uriLines(try node.follow(list).text)
        guard segments.count == 2 else { return false }
        let paths = ["/bytes/150000/a.ts", "/bytes/90000/b.ts"]
        return try zip(segments, paths).allSatisfy { link, path in
            isContent(try node.follow(link).body, of: path)
        }
    }

    /// Has one node play the film, and waits until all of it is in the bucket.
    private func fill(_ tier: Tier) throws {
        let count = putFilm(tier)
        let first = try tier.patientNode()
        #expect(try plays(first))
        #expect(try first.settled("writes_total") { $0 == count } == count)
        #expect(tier.bucket.cached.count == count)
    }

    @Test(arguments: [nil, "a+session/token=="])
    func `a fresh node serves a stored title without the origin`(_ token: String?) throws {
        let tier = try Tier(token: token)
        try fill(tier)
        #expect(tier.bucket.wrongSignatures == 0)
        tier.cdn.stop()
        let second = try tier.patientNode()
        for _ in 1...2 { #expect(try plays(second)) }
        #expect(try second.stat("hits_total") == 4)
        #expect(try second.stat("failures_total") == 0)
        #expect(try second.story.stat("origin_requests_total") == 0)
        let third = try tier.patientNode()
        let part = try third.get("/bytes/150000/a.ts", range: "bytes=70000-140000")
        #expect(part.status == 206)
        #expect(isContent(part.body, of: "/bytes/150000/a.ts", from: 70_000, count: 70_001))
        let status = part.fields.filter { $0.name.lowercased() == "cache-status" }.map(\.value)
        #expect(status.contains { $0.contains("shared-store; hit") })
    }

    @Test func `names and metadata in the bucket show no URL and no secret`() throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "one")
        let node = try tier.patientNode()
        #expect(try node.get("/f/one.ts?token=sesame").text == "one")
        #expect(try node.settled("writes_total") { $0 == 1 } == 1)
        let name = try #require(tier.bucket.cached.keys.first)
        #expect(name.wholeMatch(of: /tier\/v1\/o\/[0-9a-f]{2}\/[0-9a-f]{64}/) != nil)
        let told =
            tier.bucket.fields.map { "\($0.name): \($0.value)" }.joined()
            + tier.bucket.requests.map(\.target).joined()
        #expect(!told.contains("sesame") && !told.contains("one.ts"))
        let bytes = String(decoding: tier.bucket.cached[name] ?? [], as: UTF8.self)
        #expect(!bytes.contains("sesame") && !bytes.contains("one.ts"))
        for text in [
            try node.story.player().get("/api/origins").text,
            try node.story.player().get("/api/settings").text,
            try node.story.player().get("/metrics").text, "\(node.story.transcript)",
        ] {
            #expect(!text.contains("tier+secret"))
        }
    }

    @Test func `what changes, or belongs to one viewer, is not shared`() throws {
        let tier = try Tier()
        tier.cdn.put(
            "/live.m3u8", text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\n/bytes/9000/l.ts\n")
        tier.cdn.put("/film.ts", text: "film")
        for path in ["/private.ts", "/varied.ts"] { tier.cdn.put(path, text: path) }
        tier.cdn.setBehaviour("header=Cache-Control:private", for: "/private.ts")
        tier.cdn.setBehaviour("header=Vary:Cookie", for: "/varied.ts")
        let node = try tier.patientNode()
        let live = uriLines(try node.get("/live.m3u8").text)
        _ = try node.follow(live[0])
        for path in ["/private.ts", "/varied.ts"] { #expect(try node.get(path).status == 200) }
        _ = try node.story.player().get(
            node.story.daemon.baseURL + "/proxy?url=\(tier.cdn.url("/film.ts"))&h_X-Viewer=me")
        // Written last, so that everything before it has been decided on.
        #expect(try node.get("/bytes/5000/last.ts").status == 200)
        #expect(try node.settled("writes_total") { $0 >= 1 } == 1)
        #expect(tier.bucket.cached.count == 1)
    }

    @Test(arguments: [
        BucketFixture.Fault.corrupting, .corruptingMiddle, .swapping, .truncating(0),
        .truncating(10), .truncating(70_000), .shortLength(1), .shortLength(60_000),
        .ignoringRanges, .shiftingRanges, .refusing(403), .refusing(503), .refusing(500),
    ])
    func `a store that fails or lies costs no byte and shows no error`(
        _ fault: BucketFixture.Fault
    ) throws {
        let tier = try Tier()
        try fill(tier)
        tier.bucket.fault = fault
        let second = try tier.patientNode()
        #expect(try plays(second))
        let part = try second.get("/bytes/400000/c.ts", range: "bytes=300000-399999")
        #expect(isContent(part.body, of: "/bytes/400000/c.ts", from: 300_000))
        let again = try tier.patientNode()
        let middle = try again.get("/bytes/150000/a.ts", range: "bytes=66000-")
        #expect(isContent(middle.body, of: "/bytes/150000/a.ts", from: 66_000))
    }

    @Test func `a store that is slow costs the head start, and is left out`() throws {
        let tier = try Tier()
        try fill(tier)
        tier.bucket.fault = .slow(2_000)
        let second = try tier.node()
        #expect(try plays(second))
        for number in 1...8 {
            let path = segment("s\(number)", 3_000)
            #expect(isContent(try second.get(path).body, of: path))
        }
        #expect(try second.stat("hits_total") == 0)
        #expect(try second.stat("losses_total") == 8)
        #expect(try second.stat("outages_total") == 1 && second.stat("up") == 0)
        let asked = tier.bucket.requests.count
        let path = segment("after", 3_000)
        #expect(isContent(try second.get(path).body, of: path))
        #expect(!tier.bucket.requests.dropFirst(asked).contains { $0.target.contains("/v1/o/") })
        tier.bucket.fault = nil
        #expect(try second.settled("up") { $0 == 1 } == 1)
    }

    @Test func `the origin's redirect to a host that is down does not end the store's read`() throws
    {
        let tier = try Tier()
        tier.cdn.put("/f/stored.ts", text: "stored")
        let first = try tier.patientNode()
        #expect(try first.get("/f/stored.ts").text == "stored")
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        let second = try tier.node(["--connect-timeout", "1"])
        let away = second.story.cdn
        away.stop()
        let hole = try BlackHole(port: away.port)
        defer { hole.end() }
        tier.cdn.setBehaviour(Behaviour(query: "location=\(away.url("/a.ts"))"), for: "/f/*")
        // The request that finds the host down.
        #expect(try second.get("/f/new.ts").status == 504)
        tier.bucket.fault = .slow(1_000)
        #expect(try second.get("/f/stored.ts").text == "stored")
        #expect(tier.cdn.requestCount("/f/stored.ts") == 2)
        #expect(try second.stat("hits_total") == 1)
        // Where the store has nothing either, the refusal is the answer.
        let missing = try second.get("/f/missing.ts")
        #expect(missing.status == 504 && missing.text.contains("has not answered"))
        #expect(tier.cdn.requestCount("/f/missing.ts") == 1)
    }

    @Test(arguments: [403, 404, 410])
    func `an origin that refuses does not end the store's read`(_ status: Int) throws {
        let tier = try Tier()
        let path = "/bytes/20000/stored.ts"
        let first = try tier.patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        tier.cdn.setBehaviour(Behaviour(query: "status=\(status)"), for: "/bytes/*")
        tier.bucket.fault = .slow(1_000)
        let second = try tier.node()
        #expect(isContent(try second.get(path).body, of: path))
        #expect(tier.cdn.requestCount(path) == 2, "the origin was asked, too")
        #expect(try second.stat("hits_total") == 1 && second.stat("losses_total") == 0)
        // Where the store has nothing, the refusal is the answer.
        #expect(try second.get("/bytes/20000/missing.ts").status == status)
    }

    @Test func `a store that is down costs no error, and is used again when it is back`() throws {
        let tier = try Tier()
        try fill(tier)
        tier.bucket.stop()
        let second = try tier.patientNode()
        #expect(try plays(second))
        #expect(try second.settled("outages_total") { $0 == 1 } == 1)
        try tier.bucket.start()
        #expect(try second.settled("up") { $0 == 1 } == 1)
        let third = try tier.patientNode()
        tier.cdn.stop()
        #expect(try plays(third))
    }

    @Test func `a bucket that does not exist is left out until it does, with the reason`() throws {
        let tier = try Tier()
        tier.bucket.fault = .lackingBucket
        let node = try tier.patientNode()
        #expect(try node.settled("up") { $0 == 0 } == 0)
        let origins = try node.story.player().get("/api/origins").text
        #expect(origins.contains("the bucket does not exist"))
        let base = node.story.daemon.baseURL
        let port = try #require(base.split(separator: ":").last)
        let doctor = try sluice(
            "doctor", "--port", "\(port)", "--cache-dir", node.story.cacheFolder)
        #expect(doctor.status == 2 && doctor.stdout.contains("the bucket does not exist"))
        let path = segment("without", 3_000)
        #expect(isContent(try node.get(path).body, of: path))
        tier.bucket.fault = nil
        #expect(try node.settled("up") { $0 == 1 } == 1)
        #expect(try node.settled("writes_total") { $0 == 1 } == 1)
    }

    @Test(arguments: [
        (BucketFixture.Fault.refusingLists(403), "purges and pins of other nodes cannot be read"),
        (BucketFixture.Fault.refusingWrites(503), "objects cannot be written to the shared store"),
    ])
    func `lists or writes that a store refuses are told once, and that they work again`(
        _ fault: BucketFixture.Fault, _ warning: String
    ) throws {
        let tier = try Tier()
        tier.bucket.fault = fault
        let node = try tier.node(["--shared-store-poll", "1"])
        #expect(try node.get("/bytes/5000/a.ts").status == 200)
        // What fails beside it is the orders' listing, or this node's heartbeat.
        #expect(try node.settled("failing") { $0 == 2 } == 2)
        #expect(try node.stat("up") == 1)
        let table = try sluice("origins", "--daemon", node.story.daemon.baseURL)
        #expect(table.stdout.contains(" fail: the store answered"))
        let log = { node.story.daemon.standardError }
        #expect(eventually { log().contains(warning) })
        tier.bucket.fault = nil
        #expect(try node.settled("failing") { $0 == 0 } == 0)
        #expect(log().ranges(of: warning).count == 1)
    }

    @Test func `an object that the store refuses alone is given up, with one message`() throws {
        let tier = try Tier()
        tier.bucket.fault = .refusingLongWrites(100_000)
        let node = try tier.patientNode()
        _ = try node.get("/bytes/150000/a.ts")
        #expect(try node.settled("write_failures_total") { $0 > 0 } > 0)
        _ = try node.get("/bytes/5000/b.ts")
        #expect(try node.settled("dropped_writes_total") { $0 == 1 } == 1)
        #expect(try node.stat("writes_total") == 1 && node.stat("failing") == 0)
        #expect(try node.settled("waiting_writes") { $0 == 0 } == 0)
        let log = { node.story.daemon.standardError }
        let message = "an object is not written to the shared store, which refuses it"
        #expect(eventually { log().contains(message) })
        #expect(log().ranges(of: message).count == 1)
    }

    @Test func `a store that ends in the middle of a body is continued by the origin`() throws {
        let tier = try Tier()
        let path = "/bytes/3000000/long.ts"
        let first = try tier.patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        tier.bucket.fault = .truncating(1_500_000)
        let second = try tier.patientNode()
        #expect(isContent(try second.get(path).body, of: path))
        #expect(try second.stat("hits_total") == 1)
        let asked = try #require(tier.cdn.requests.last { $0.target == path })
        #expect(asked["Range"] != nil)
    }

    @Test func `a store that trickles after a good start is continued by the origin`() throws {
        let tier = try Tier()
        let path = "/bytes/400000/long.ts"
        let first = try tier.patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        tier.bucket.fault = .trickling(80_000)
        let second = try tier.patientNode()
        #expect(isContent(try second.get(path).body, of: path))
        #expect(try second.stat("hits_total") == 1 && second.stat("losses_total") == 1)
        let asked = try #require(tier.cdn.requests.last { $0.target == path })
        #expect(asked["Range"] != nil)
    }

    @Test func `a body that the store begins while its origin is down is continued by the origin`()
        throws
    {
        let tier = try Tier()
        let path = "/bytes/3000000/long.ts"
        let (second, hole) = try tier.nodeOfSilentOrigin(afterWriting: path)
        tier.bucket.fault = .truncating(1_500_000)
        let url = second.story.url(for: tier.cdn.url(path))
        let body = try second.story.player().open(url)
        #expect(try second.settled("hits_total") { $0 == 1 } == 1)
        hole.end()
        try tier.cdn.start()
        #expect(isContent(try body.readRest(), of: path))
        #expect(body.broken == nil)
        // Its own flight went on: another one would have asked the store again.
        #expect(try second.stat("hits_total") == 1)
        let asked = try #require(tier.cdn.requests.last { $0.target == path })
        #expect(asked["Range"] != nil)
    }

    @Test func `a daemon killed in the middle of a write leaves nothing that is believed`() throws {
        let tier = try Tier()
        tier.bucket.fault = .hangingWrites
        let path = "/bytes/3000000/long.ts"
        let first = try tier.patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(eventually { tier.bucket.hangingWrites == 1 })
        first.story.stop(SIGKILL)
        #expect(tier.bucket.cached.isEmpty)
        tier.bucket.fault = nil
        let second = try tier.patientNode()
        #expect(isContent(try second.get(path).body, of: path))
        #expect(try second.stat("hits_total") == 0 && second.stat("misses_total") == 1)
        #expect(try second.settled("writes_total") { $0 == 1 } == 1)
    }

    @Test func `a long body goes by parts, and one of them that is lost keeps all of it away`()
        throws
    {
        let tier = try Tier()
        let path = "/bytes/20000000/film.mp4"
        tier.bucket.fault = .hangingWrites
        let first = try tier.patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(eventually { tier.bucket.hangingWrites == 1 && tier.bucket.openUploads == 1 })
        first.story.stop(SIGKILL)
        tier.bucket.fault = nil
        #expect(tier.bucket.cached.isEmpty)
        let second = try tier.patientNode()
        #expect(isContent(try second.get(path).body, of: path))
        #expect(try second.settled("writes_total") { $0 == 1 } == 1)
        tier.cdn.stop()
        let third = try tier.patientNode()
        #expect(isContent(try third.get(path).body, of: path))
        let far = try tier.patientNode()
        let part = try far.get(path, range: "bytes=17000000-17999999")
        #expect(
            isContent(part.body, of: path, from: 17_000_000, count: 1_000_000))
        #expect(tier.bucket.wrongSignatures == 0)
    }

    @Test func `a body whose end was stored before its beginning reaches the store`() throws {
        let tier = try Tier()
        let path = "/bytes/20000000/film.mp4"
        let first = try tier.patientNode()
        let end = try first.get(path, range: "bytes=8000000-19999999")
        #expect(isContent(end.body, of: path, from: 8_000_000, count: 12_000_000))
        #expect(try first.stat("writes_total") == 0)
        #expect(isContent(try first.get(path).body, of: path))
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        tier.cdn.stop()
        let second = try tier.patientNode()
        #expect(isContent(try second.get(path).body, of: path))
    }

    @Test func `a restart goes on with both levels`() throws {
        let tier = try Tier()
        try fill(tier)
        let node = try tier.patientNode()
        #expect(try plays(node))
        tier.cdn.stop()
        try node.story.restart(SIGKILL)
        #expect(try plays(node))
        #expect(try node.stat("failures_total") == 0)
    }

    @Test func `what waits to be written is written by the next run`() throws {
        // Side by side, since both wait.
        let runs = try [SIGTERM, SIGKILL].map { signal -> (Int32, Tier, Tier.Node) in
            let tier = try Tier()
            putFilm(tier)
            tier.bucket.fault = .refusingWrites(503)
            let node = try tier.patientNode()
            #expect(try plays(node))
            return (signal, tier, node)
        }
        for (signal, tier, node) in runs {
            #expect(try node.settled("write_failures_total") { $0 >= 1 } >= 1)
            // Playlists join the queue after two seconds, in which a live list would show.
            #expect(try node.settled("waiting_writes") { $0 == 4 } == 4)
            node.story.stop(signal)
            tier.bucket.fault = nil
            #expect(tier.bucket.cached.isEmpty)
            try node.story.restart()
        }
        for (signal, tier, node) in runs {
            #expect(try node.settled("writes_total") { $0 == 4 } == 4, "signal \(signal)")
            #expect(try node.story.stat("origin_requests_total") == 0)
            let file = node.story.cacheFolder + "/shared-store-queue"
            let isGone = eventually(within: .seconds(30)) { access(file, F_OK) != 0 }
            #expect(isGone, "what was written is not remembered after signal \(signal)")
            tier.cdn.stop()
            let fresh = try tier.patientNode()
            for path in ["/bytes/150000/a.ts", "/bytes/90000/b.ts"] {
                #expect(isContent(try fresh.get(path).body, of: path))
            }
        }
    }

    @Test func `what waits is known a moment after it was received, and over several kills`() throws
    {
        let tier = try Tier()
        tier.bucket.fault = .refusingWrites(503)
        let node = try tier.patientNode()
        let paths = (1...40).map { "/bytes/20000/\($0).ts" }
        for (index, path) in paths.enumerated() {
            #expect(isContent(try node.get(path).body, of: path))
            guard index % 20 == 19 else { continue }
            #expect(try node.settled("waiting_writes") { $0 == index + 1 } == index + 1)
            // A listing has complete objects committed, which a kill keeps from then on.
            _ = try node.story.api("titles")
            try node.story.restart(SIGKILL)
        }
        tier.bucket.fault = nil
        #expect(try node.settled("writes_total") { $0 == paths.count } == paths.count)
        // What was written is not written again.
        try node.story.restart(SIGKILL)
        let again = "/bytes/20000/again.ts"
        #expect(isContent(try node.get(again).body, of: again))
        #expect(try node.settled("writes_total") { $0 >= 1 } == 1)
        #expect(tier.bucket.cached.count == paths.count + 1)
    }

    @Test func `an object is written whenever the store accepts it, however long that takes`()
        throws
    {
        let tier = try Tier()
        tier.bucket.fault = .refusingWrites(503)
        let node = try tier.patientNode()
        let path = "/bytes/20000/only.ts"
        #expect(isContent(try node.get(path).body, of: path))
        // The pauses before them are 1, 2 and 4 s.
        let name = "shared_store_write_failures_total"
        let failures = try node.story.settled(name, within: .seconds(30)) { $0 >= 4 }
        #expect(failures >= 4)
        #expect(try node.stat("dropped_writes_total") == 0 && node.stat("waiting_writes") == 1)
        tier.bucket.fault = nil
        let writes = try node.story.settled("shared_store_writes_total", within: .seconds(30)) {
            $0 == 1
        }
        #expect(writes == 1)
    }

    @Test func `why and the page of origins tell of the store`() throws {
        let tier = try Tier()
        let node = try tier.patientNode()
        let url = tier.cdn.url("/f/a.ts")
        let why = try node.story.player().get("/api/why?url=\(url)").text
        #expect(why.contains("\"asked\":true") && why.contains("v1/o/"))
        let origins = try node.story.player().get("/api/origins").text
        #expect(origins.contains("\"shared_store\":{\"store\":\"s3://films/tier/"))
    }
}
