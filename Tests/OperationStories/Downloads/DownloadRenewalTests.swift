import FixtureCDN
import ScenarioSupport
import Testing

/// Downloads whose playlists name URLs that the origin refuses by now: expired tokens, new names.
extension Stories.Downloads {
    /// Puts a title of six segments under a token; entry and list are free unless `isListSigned`.
    private func put(_ stage: DownloadStage, _ token: String, isListSigned: Bool = false) {
        let list = isListSigned ? "/v/l.m3u8?\(token)" : "/v/l.m3u8"
        stage.cdn.put("/v/m.m3u8", text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n\(list)\n")
        stage.cdn.put("/v/l.m3u8", text: vod((0..<6).map { "/bytes/30000/s\($0).ts?\(token)" }))
        let need = Behaviour(query: "need\(token)")
        for index in 0..<6 { stage.cdn.setBehaviour(need, for: "/bytes/30000/s\(index).ts") }
        if isListSigned { stage.cdn.setBehaviour(need, for: "/v/l.m3u8") }
    }

    /// Orders the title, and pauses it once three segments are stored.
    private func halfWay(_ stage: DownloadStage) throws -> String {
        stage.cdn.hold("/bytes/30000/s3.ts")
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        #expect(try eventually { try stage.download(id)["pieces_done"] == "3" })
        // A request on its way would come under the tokens that a test sets next.
        #expect(eventually { stage.cdn.requestCount("/bytes/30000/s3.ts") == 1 })
        return id
    }

    private func refusals(_ stage: DownloadStage) -> Int {
        stage.cdn.requests.count { $0.status == 403 || $0.status == 404 }
    }

    /// The requests of the first three segments, which are stored before anything expires.
    private func firstRequests(_ stage: DownloadStage) -> [Int] {
        (0..<3).map { stage.cdn.requestCount("/bytes/30000/s\($0).ts") }
    }

    @Test(arguments: [false, true])
    func `a resumed download has the tokens of now`(isListSigned: Bool) throws {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        put(stage, signature(1), isListSigned: isListSigned)
        let id = try halfWay(stage)
        _ = try stage.ask("POST", "/api/downloads/\(id)/pause")
        #expect(eventually { stage.cdn.activeRequests == 0 })
        // The next piece waited for the slot of the held one; it is cancelled before that is free.
        #expect(stage.cdn.requestCount("/bytes/30000/s4.ts") == 0)
        put(stage, signature(2), isListSigned: isListSigned)
        stage.cdn.release("/bytes/30000/s3.ts")
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        #expect(try stage.wait(id, for: "complete")["pieces"] == "6")
        #expect(refusals(stage) == 0)
        #expect(firstRequests(stage) == [1, 1, 1])
    }

    @Test func `a token that expires under a download costs it one look at its playlists`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        put(stage, signature(1))
        let id = try halfWay(stage)
        put(stage, signature(2))
        stage.cdn.release("/bytes/30000/s3.ts")
        #expect(try stage.wait(id, for: "complete")["pieces"] == "6")
        #expect(stage.cdn.requestCount("/v/m.m3u8") == 2)
        #expect(stage.cdn.requestCount("/v/l.m3u8") == 2)
        #expect(firstRequests(stage) == [1, 1, 1])
    }

    @Test func `tokens may expire twice within a minute`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        put(stage, signature(1))
        // Two more are in flight beside the held one, and none of these is held.
        let held = [0, 4].map { "/bytes/30000/s\($0).ts" }
        for path in held { stage.cdn.hold(path) }
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        for (number, path) in zip([2, 3], held) {
            #expect(eventually { stage.cdn.requestCount(path) == 1 })
            // The held one is sent still; the next ones are refused.
            put(stage, signature(number))
            stage.cdn.release(path)
        }
        #expect(try stage.wait(id, for: "complete")["pieces"] == "6")
        #expect(stage.cdn.requestCount("/v/l.m3u8") == 3)
    }

    @Test func `an order with a token of now completes what one of before could not`() throws {
        let stage = try DownloadStage()
        put(stage, signature(1), isListSigned: true)
        stage.cdn.setBehaviour(Behaviour(query: "need\(signature(1))"), for: "/v/m.m3u8")
        let order = { stage.cdn.url("/v/m.m3u8?\(signature($0))") }
        stage.cdn.setBehaviour("status=403", for: "/bytes/30000/s4.ts")
        let id = try stage.order(order(1))
        _ = try stage.wait(id, for: "failed")
        put(stage, signature(2), isListSigned: true)
        stage.cdn.setBehaviour(Behaviour(query: "need\(signature(2))"), for: "/v/m.m3u8")
        #expect(try stage.wait(try stage.order(order(2)), for: "complete")["pieces"] == "6")
        #expect(firstRequests(stage) == [1, 1, 1])
    }

    @Test func `a title that gets new names during its download is downloaded under these`() throws
    {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        put(stage, "x=1")
        for index in 0..<6 { stage.cdn.setBehaviour(nil, for: "/bytes/30000/s\(index).ts") }
        let id = try halfWay(stage)
        for index in 0..<6 {
            stage.cdn.setBehaviour("status=404", for: "/bytes/30000/s\(index).ts")
        }
        stage.cdn.put("/v/l.m3u8", text: vod((0..<6).map { "/bytes/30000/t\($0).ts" }))
        stage.cdn.release("/bytes/30000/s3.ts")
        #expect(try stage.wait(id, for: "complete")["pieces"] == "6")
        #expect(stage.cdn.requestCount("/bytes/30000/t0.ts") == 1)
    }

    @Test func `an origin that refuses on is asked for the playlists once more`() throws {
        let stage = try DownloadStage()
        put(stage, signature(1))
        stage.cdn.setBehaviour("status=403", for: "/bytes/30000/s4.ts")
        let id = try stage.order(stage.cdn.url("/v/m.m3u8"))
        #expect(try stage.wait(id, for: "failed")["reason"].contains("one of 6 parts"))
        #expect(stage.cdn.requestCount("/v/m.m3u8") == 2)
        #expect(stage.cdn.requestCount("/bytes/30000/s4.ts") == 2)
        #expect(firstRequests(stage) == [1, 1, 1])
    }

    @Test func `playlists that cannot be had anew stay those in the store`() throws {
        let stage = try DownloadStage(["--concurrency", "fixed:1"])
        put(stage, signature(1))
        let id = try halfWay(stage)
        _ = try stage.ask("POST", "/api/downloads/\(id)/pause")
        for path in ["/v/m.m3u8", "/v/l.m3u8"] { stage.cdn.setBehaviour("status=403", for: path) }
        stage.cdn.release("/bytes/30000/s3.ts")
        #expect(eventually { stage.cdn.activeRequests == 0 })
        _ = try stage.ask("POST", "/api/downloads/\(id)/resume")
        #expect(try stage.wait(id, for: "complete")["pieces"] == "6")
        #expect(firstRequests(stage) == [1, 1, 1])
    }
}
