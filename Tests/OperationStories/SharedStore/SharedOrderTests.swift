import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of downloads and recordings that the nodes of a shared store know of.
extension Stories {
    @Suite(.tags(.crowded)) struct SharedOrderTests {}
}

/// What a listing says of a download or recording that a node holds.
private let hasNode = "\"node\":\""

/// Two nodes that look at the bucket each second, and a film that one of them downloads.
private final class OrderStage {
    let tier: Tier
    let first: Tier.Node
    let second: Tier.Node
    private(set) var id = ""
    /// A segment that arrives when it is released.
    static let held = "/bytes/20000/b.ts"

    init(_ arguments: [String] = []) throws {
        tier = try Tier()
        // The held segment is held longer than an origin usually may take.
        let poll =
            [
                "--shared-store-poll", "1", "--concurrency", "fixed:2", "--first-byte-timeout",
                "60",
            ] + arguments
        first = try tier.node(poll)
        second = try tier.node(poll)
        let segments = ["a", "b", "c"].map { "#EXTINF:4,\n/bytes/20000/\($0).ts\n" }.joined()
        tier.cdn.put(
            "/f/list.m3u8",
            text: "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(segments)#EXT-X-ENDLIST\n")
        tier.cdn.hold(Self.held)
    }

    /// Orders the film at the first node.
    func order(_ more: String = "") throws {
        let url = percentEncoded(tier.cdn.url("/f/list.m3u8"))
        let text = try first.story.api("downloads?url=\(url)\(more)", method: "POST")
        id = members("id", in: text).first ?? ""
        #expect(!id.isEmpty, "\(text)")
    }

    /// True once a node tells of the download what is expected.
    func tells(_ node: Tier.Node, _ isExpected: (String) -> Bool) throws -> Bool {
        try eventually(within: .seconds(60)) {
            isExpected(try node.story.api("downloads/\(id)"))
        }
    }

    func isIn(_ state: String) -> (String) -> Bool { { $0.contains("\"state\":\"\(state)\"") } }

    /// True if the bucket has an object of this kind.
    func has(_ kind: String) -> Bool {
        tier.bucket.objects.keys.contains { $0.hasPrefix("tier/orders1/\(kind)/") }
    }
}

extension Stories.SharedOrderTests {
    /// Gateways that ignore the token of a page answer so.
    @Test func `nodes give up a listing that does not end, and look again later`() throws {
        let stage = try OrderStage()
        stage.tier.bucket.setPageSize(0)
        // Each look begins with the node's sign of life, which counts them.
        let signs = Shared<Set<[UInt8]>>([])
        let looks = eventually(within: .seconds(60)) {
            for (name, text) in stage.tier.bucket.objects where name.hasPrefix("tier/orders1/node/")
            {
                signs.update { _ = $0.insert(text) }
            }
            return signs.value.count >= 8
        }
        #expect(looks)
    }

    @Test func `a node shows that it lives while it reads many orders`() throws {
        let tier = try Tier()
        var objects: [String: [UInt8]] = [:]
        for number in 0x1000..<0x1030 {
            let id = "download-\(String(number, radix: 16))"
            objects["tier/orders1/order/\(id)-1700000000000000000-ab"] = Array(
                "sluice order 1\ncancel\nurl=x\n".utf8)
        }
        tier.bucket.objects = objects
        tier.bucket.fault = .slowReads("/order/", 1_000)
        let node = try tier.node(["--shared-store-poll", "1"])
        func isRead(_ request: (method: String, target: String)) -> Bool {
            request.method == "GET" && request.target.contains("/order/")
        }
        let areRead = eventually(within: .seconds(60)) {
            tier.bucket.requests.count { isRead($0) } >= objects.count
        }
        #expect(areRead)
        let requests = tier.bucket.requests
        let first = try #require(requests.firstIndex(where: isRead))
        let last = try #require(requests.lastIndex(where: isRead))
        let signs = requests[first...last].count {
            $0.method == "PUT" && $0.target.contains("/node/")
        }
        #expect(signs >= 2)
        #expect(try node.stat("orders_taken_over_total") == 0)
    }

    @Test
    func `a download of a node that is killed is taken over and finished by the other one`() throws
    {
        let conditions = [BucketFixture.Conditions.kept, .refused, .ignored]
        // Side by side, since each node is taken for dead only after a while.
        let stages = try conditions.map { conditions -> OrderStage in
            let stage = try OrderStage()
            stage.tier.bucket.conditions = conditions
            try expectKnown(stage)
            stage.first.story.stop(SIGKILL)
            stage.tier.cdn.release(OrderStage.held)
            return stage
        }
        for (conditions, stage) in zip(conditions, stages) {
            #expect(try stage.tells(stage.second, stage.isIn("complete")), "\(conditions)")
            #expect(try stage.second.stat("orders_taken_over_total") == 1, "\(conditions)")
            stage.tier.cdn.stop()
            for name in ["a", "b", "c"] {
                let path = "/bytes/20000/\(name).ts"
                #expect(isContent(try stage.second.get(path).body, of: path), "\(conditions)")
            }
            // The former node is back: it leaves it to the other one, or completes it from the
            // store.
            try stage.first.story.restart()
            #expect(try stage.tells(stage.first, stage.isIn("complete")), "\(conditions)")
            #expect(try stage.second.stat("orders_taken_over_total") == 1, "\(conditions)")
        }
    }

    /// Orders the film; both nodes name the one that has it, in the API and in what the command
    /// prints.
    private func expectKnown(_ stage: OrderStage) throws {
        try stage.order()
        let isSeen = try stage.tells(stage.second) {
            $0.contains("\"state\":\"running\"") && $0.contains(hasNode)
        }
        #expect(isSeen)
        let list = try stage.second.story.api("downloads")
        #expect(members("id", in: list) == [stage.id])
        let node = try #require(members("node", in: list).first)
        #expect(node.contains(":"), "machine and port")
        for one in [stage.first, stage.second] {
            #expect(members("node", in: try one.story.api("downloads/\(stage.id)")) == [node])
            let printed = try sluice("download", "list", "--daemon", one.story.daemon.baseURL)
            #expect(printed.stdout.contains("  node \(node)  "), "\(printed.stdout)")
        }
    }

    @Test func `an order given while the store is away is kept, and seen when it is back`() throws {
        let stage = try OrderStage()
        stage.tier.bucket.stop()
        try stage.order()
        try stage.first.story.restart(SIGKILL)
        #expect(try stage.tells(stage.first) { $0.contains("\"id\"") })
        #expect(!stage.has("order"))
        try stage.tier.bucket.start()
        #expect(try stage.tells(stage.second) { $0.contains(hasNode) })
        stage.tier.cdn.release(OrderStage.held)
        #expect(try stage.tells(stage.first, stage.isIn("complete")))
        #expect(try stage.tells(stage.second, stage.isIn("complete")))
        #expect(try stage.second.stat("orders_taken_over_total") == 0)
    }

    @Test(arguments: ["pause", "cancel"], [true, false])
    func `a change confirmed while the store is away is kept over a kill`(
        _ verb: String, isAtHolder: Bool
    ) throws {
        let stage = try OrderStage()
        try stage.order()
        #expect(try stage.tells(stage.second) { $0.contains(hasNode) })
        // It may be known to both nodes before it has asked for anything.
        #expect(eventually { stage.tier.cdn.requestCount(OrderStage.held) == 1 })
        stage.tier.bucket.stop()
        let node = isAtHolder ? stage.first : stage.second
        _ = try node.story.api("downloads/\(stage.id)/\(verb)", method: "POST")
        try node.story.restart(SIGKILL)
        try stage.tier.bucket.start()
        let isDone: (String) -> Bool =
            verb == "pause" ? stage.isIn("paused") : { $0.contains("there is no download") }
        for other in [stage.first, stage.second] {
            #expect(try stage.tells(other, isDone))
        }
        // Nothing older in the bucket comes back.
        let looks = stage.tier.bucket.requests.count
        #expect(eventually { stage.tier.bucket.requests.count > looks + 20 })
        for other in [stage.first, stage.second] {
            #expect(try stage.tells(other, isDone))
        }
        #expect(stage.tier.cdn.requestCount(OrderStage.held) == 1)
    }

    @Test func `a recording stopped while the store is away stays stopped after a kill`() throws {
        let tier = try Tier()
        let window = LiveWindow(
            segments: (0..<100).map { .init(uri: segment("s\($0)", 3_000), duration: 1) },
            targetDuration: 1, windowSize: 3)
        _ = tier.cdn.live("/l.m3u8", window)
        let node = try tier.node(["--shared-store-poll", "1"])
        let url = percentEncoded(tier.cdn.url("/l.m3u8"))
        let begun = try node.story.api("recordings?url=\(url)&for=1h", method: "POST")
        let id = try #require(members("id", in: begun).first)
        func told(_ isExpected: (String) -> Bool) throws -> Bool {
            try eventually(within: .seconds(60)) {
                isExpected(try node.story.api("recordings/\(id)"))
            }
        }
        #expect(try told { members("segments", in: $0).first == "3" })
        #expect(eventually { tier.bucket.objects.keys.contains { $0.contains("/claim/") } })
        tier.bucket.stop()
        _ = try node.story.api("recordings/\(id)/stop", method: "POST")
        #expect(try told { $0.contains("\"state\":\"done\"") })
        try node.story.restart(SIGKILL)
        try tier.bucket.start()
        let looks = tier.bucket.requests.count
        #expect(eventually { tier.bucket.requests.count > looks + 10 })
        #expect(try told { $0.contains("\"state\":\"done\"") })
        #expect(try node.stat("orders_taken_over_total") == 0)
    }

    @Test func `a download is paused, resumed and cancelled through any node`() throws {
        let stage = try OrderStage()
        try stage.order()
        #expect(try stage.tells(stage.second) { $0.contains(hasNode) })
        func tell(_ verb: String) throws {
            _ = try stage.second.story.api("downloads/\(stage.id)/\(verb)", method: "POST")
        }
        try tell("pause")
        #expect(try stage.tells(stage.first, stage.isIn("paused")))
        #expect(try stage.tells(stage.second, stage.isIn("paused")))
        try tell("resume")
        #expect(try stage.tells(stage.first, stage.isIn("running")))
        try tell("cancel")
        #expect(try stage.tells(stage.first) { $0.contains("there is no download") })
        #expect(try stage.tells(stage.second) { $0.contains("there is no download") })
        // It stays cancelled after a restart of both.
        try stage.first.story.restart()
        try stage.second.story.restart()
        #expect(try stage.second.settled("up") { $0 == 1 } == 1)
        #expect(members("id", in: try stage.first.story.api("downloads")).isEmpty)
    }

    /// The arguments of an order that other nodes are told of have 40,000 bytes at most.
    @Test func `a cancelled title that is ordered again for one node alone survives its restart`()
        throws
    {
        let tier = try Tier()
        let node = try tier.node(["--shared-store-poll", "1"])
        // Written with three bytes each, other than in the request.
        let url = percentEncoded(tier.cdn.url("/l.m3u8?x=")) + String(repeating: "/", count: 13_200)
        func order(_ more: String = "") throws -> String {
            let text = try node.story.api("downloads?url=\(url)\(more)", method: "POST")
            return try #require(members("id", in: text).first, "\(text)")
        }
        func orders() -> [String] {
            tier.bucket.objects.filter { $0.key.hasPrefix("tier/orders1/order/") }
                .map { String(decoding: $0.value, as: UTF8.self) }
        }
        let id = try order()
        #expect(eventually { orders().contains { $0.hasPrefix("sluice order 1\nrun\n") } })
        _ = try node.story.api("downloads/\(id)/cancel", method: "POST")
        let isCancelled = eventually {
            let all = orders()
            return all.count == 1 && all[0].hasPrefix("sluice order 1\ncancel\n")
        }
        #expect(isCancelled)
        let languages = (10..<42).map { "en-a\($0)" }.joined(separator: ",")
        #expect(try order("&audio=\(languages)&subtitles=\(languages)") == id)
        try node.story.restart()
        let before = tier.bucket.requests.count
        #expect(eventually { tier.bucket.requests.count > before + 20 })
        #expect(members("id", in: try node.story.api("downloads")) == [id])
    }

    @Test func `a download that is over is resumed through any node`() throws {
        let stage = try OrderStage()
        let segment = "/bytes/20000/c.ts"
        stage.tier.cdn.setBehaviour("status=404", for: segment)
        stage.tier.cdn.release(OrderStage.held)
        try stage.order()
        #expect(try stage.tells(stage.second, stage.isIn("failed")))
        func resume() throws {
            _ = try stage.second.story.api("downloads/\(stage.id)/resume", method: "POST")
        }
        stage.tier.cdn.setBehaviour(nil, for: segment)
        try resume()
        #expect(try stage.tells(stage.first, stage.isIn("complete")))
        // It pins what lost its pin.
        #expect(try stage.tells(stage.second, stage.isIn("complete")))
        let first = stage.first.story
        let unpinned = try first.api("unpin?title=\(stage.id)", method: "POST")
        #expect(unpinned.contains("\"unpinned\":1"), "\(unpinned)")
        try resume()
        let isPinned = try eventually(within: .seconds(60)) {
            try first.api("titles").contains("\"pinned\":true")
        }
        #expect(isPinned)
    }

    /// `seconds` is how far the clock of the other node is ahead.
    @Test(arguments: [-3_600, 3_600] as [Int64])
    func `resume at a node whose clock differs is carried out once`(seconds: Int64) throws {
        let stage = try OrderStage()
        let segment = "/bytes/20000/c.ts"
        stage.tier.cdn.setBehaviour("status=404", for: segment)
        stage.tier.cdn.release(OrderStage.held)
        try stage.order()
        #expect(try stage.tells(stage.first, stage.isIn("failed")))
        let start = "tier/orders1/order/download-\(stage.id)-"
        let isThere = eventually { stage.tier.bucket.objects.keys.contains { $0.hasPrefix(start) } }
        #expect(isThere)
        func restart() throws {
            try stage.first.story.restart()
            #expect(try stage.tells(stage.first, stage.isIn("failed")))
        }
        func looks() {
            let before = stage.tier.bucket.requests.count
            #expect(eventually { stage.tier.bucket.requests.count > before + 20 })
        }
        // Its start is now later than the order.
        try restart()
        looks()
        let asked = stage.tier.cdn.requestCount(segment)
        let found = stage.tier.bucket.objects.first { $0.key.hasPrefix(start) }
        let (name, text) = try #require(found)
        let parts = name.dropFirst(start.count).split(separator: "-")
        let given = try #require(Int64(parts[0]))
        // As a node dates its orders: after the one before, or by its own clock.
        let time = max(given + 1, given + seconds * 1_000_000_000)
        stage.tier.bucket.put(text, as: "\(start)\(time)-\(parts[1])")
        #expect(eventually { stage.tier.cdn.requestCount(segment) > asked })
        #expect(try stage.tells(stage.first, stage.isIn("failed")))
        let again = stage.tier.cdn.requestCount(segment)
        try restart()
        looks()
        #expect(stage.tier.cdn.requestCount(segment) == again)
        #expect(try stage.tells(stage.first, stage.isIn("failed")))
    }

    @Test func `headers of an order reach the bucket sealed, or not at all`() throws {
        let folder = try TemporaryFolder()
        let key = try Cluster.key(folder.file("cluster.key"))
        let stage = try OrderStage(["--cluster-key", key])
        try stage.order("&h_X-Pass=sesame")
        #expect(try stage.tells(stage.second) { $0.contains(hasNode) })
        for (name, bytes) in stage.tier.bucket.objects where name.contains("orders1") {
            let text = String(decoding: bytes, as: UTF8.self)
            #expect(!text.contains("sesame") && !text.contains("list.m3u8"), "\(name)")
        }
        stage.first.story.stop(SIGKILL)
        stage.tier.cdn.release(OrderStage.held)
        #expect(try stage.tells(stage.second, stage.isIn("complete")))
        let asked = stage.tier.cdn.requests.filter { $0.target == "/bytes/20000/c.ts" }
        #expect(!asked.isEmpty && asked.allSatisfy { $0["X-Pass"] == "sesame" })

        let open = try OrderStage()
        try open.order("&h_X-Pass=sesame")
        #expect(eventually { open.has("node") })
        let beats = open.tier.bucket.requests.count
        #expect(eventually { open.tier.bucket.requests.count > beats + 6 })
        #expect(!open.has("order"))
    }

    @Test func `a recording of a node that is killed goes on at the other one`() throws {
        let tier = try Tier()
        let window = LiveWindow(
            segments: (0..<100).map { .init(uri: segment("s\($0)", 3_000), duration: 1) },
            targetDuration: 1, windowSize: 3)
        _ = tier.cdn.live("/l.m3u8", window)
        let first = try tier.node(["--shared-store-poll", "1"])
        let second = try tier.node(["--shared-store-poll", "1"])
        let url = percentEncoded(tier.cdn.url("/l.m3u8"))
        let begun = try first.story.api(
            "recordings?url=\(url)&for=1h&name=Evening%20news", method: "POST")
        let id = try #require(members("id", in: begun).first)
        func told(
            _ node: Tier.Node, _ part: String? = nil, _ isExpected: (String) -> Bool
        ) throws -> Bool {
            try eventually(within: .seconds(60)) {
                isExpected(try node.story.api("recordings/\(part ?? id)"))
            }
        }
        #expect(try told(first) { members("segments", in: $0).first == "3" })
        #expect(try told(second) { $0.contains(hasNode) })
        let list = try second.story.api("recordings")
        let node = try #require(members("node", in: list).first)
        // Played by the node without it, the link would lead to the live stream.
        #expect(members("play", in: begun).first?.contains("/p/") == true)
        #expect(list.contains("\"play\":null"), "\(list)")
        let printed = try sluice("record", "--list", "--daemon", second.story.daemon.baseURL)
        #expect(printed.stdout.contains("\(id)  node \(node)  Evening news: "))
        // State and window are saved within a few seconds.
        func isSaved(_ node: Tier.Node) -> Bool {
            let windows = node.story.cacheFolder + "/recordings/windows"
            return eventually { listFolder(windows).contains { !$0.hasSuffix(".new") } }
        }
        #expect(isSaved(first))
        first.story.stop(SIGKILL)
        #expect(try told(second) { members("segments", in: $0).first == "3" })
        window.advance(by: 2)
        #expect(try told(second) { members("segments", in: $0).first == "5" })
        #expect(try second.story.api("recordings").contains("Evening news"))
        // What the former node has is a title of its own; it does not record on.
        try first.story.restart()
        let isLeft = try told(first) {
            $0.contains("\"state\":\"done\"") && $0.contains("took it over")
        }
        #expect(isLeft)
        // It takes it up again when the other one goes, as a further part, and ends nothing there.
        #expect(isSaved(second))
        second.story.stop(SIGKILL)
        window.advance(by: 2)
        let part = "\(id)-2"
        #expect(try told(first, part) { members("segments", in: $0).first == "3" })
        try second.story.restart()
        #expect(try told(second) { $0.contains("\"state\":\"done\"") })
        #expect(try told(second) { $0.contains("took it over") })
        #expect(try told(first, part) { $0.contains("\"state\":\"running\"") })
        let stopped = try second.story.api("recordings/\(id)/stop", method: "POST")
        #expect(stopped.contains(hasNode))
        #expect(try told(first, part) { $0.contains("\"state\":\"done\"") })
    }
}
