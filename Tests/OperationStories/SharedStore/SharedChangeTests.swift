import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Stories of purges and pins that all nodes of a shared store follow.
extension Stories {
    @Suite(.tags(.crowded)) struct SharedChangeTests {}
}

/// A node with one pinned title, and the rule in the bucket that tells other nodes of the pin.
private struct PinnedTitle {
    let tier: Tier
    let node: Tier.Node
    let id: String
    private let rule: [UInt8]
    /// When the pin was given, in nanoseconds: rules are named by it.
    private let given: Int64
    private static let start = "tier/v1/rules/"

    init() throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "one")
        node = try tier.node(["--shared-store-poll", "1"])
        #expect(try node.get("/f/one.ts").text == "one")
        id = try #require(members("id", in: try node.story.api("titles")).first)
        _ = try node.story.api("pin?title=\(id)", method: "POST")
        #expect(eventually { Self.rules(of: tier).count == 1 })
        let found = Self.rules(of: tier).first
        let (name, text) = try #require(found)
        given = try #require(Int64(name.dropFirst(Self.start.count).prefix(19)))
        rule = text
        self.tier = tier
    }

    var ruleCount: Int { Self.rules(of: tier).count }

    func unpin() throws { _ = try node.story.api("unpin?title=\(id)", method: "POST") }

    /// Writes the rule as a node does that gave the same pin `time` nanoseconds later; returns its
    /// name.
    @discardableResult
    func repeatRule(after time: Int64) -> String {
        let name = "\(Self.start)\(given + time)-ab"
        tier.bucket.put(rule, as: name)
        return name
    }

    private static func rules(of tier: Tier) -> [String: [UInt8]] {
        tier.bucket.objects.filter { $0.key.hasPrefix(start) }
    }
}

extension Stories.SharedChangeTests {
    @Test func `a purge on one node reaches the others and the store`() throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "old one")
        tier.cdn.put("/f/two.ts", text: "old two")
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        let second = try tier.node(poll)
        for node in [first, second] {
            #expect(try node.get("/f/one.ts").text == "old one")
            #expect(try node.get("/f/two.ts").text == "old two")
        }
        #expect(eventually { tier.bucket.cached.count == 2 })
        tier.cdn.put("/f/one.ts", text: "new one")
        tier.cdn.put("/f/two.ts", text: "new two")
        tier.bucket.setPageSize(1)
        func purge(_ query: String) throws -> Int {
            try first.story.player().get(
                first.story.daemon.baseURL + "/api/purge?\(query)", method: "POST"
            ).status
        }
        let url = percentEncoded(tier.cdn.url("/f/one.ts"))
        #expect(try [200, 202].contains(purge("url=\(url)")))
        #expect(try second.settled("changes_total") { $0 == 1 } == 1)
        for node in [first, second] { #expect(try node.get("/f/one.ts").text == "new one") }
        #expect(try second.get("/f/two.ts").text == "old two")
        // Objects in the bucket have digests for names: those of a host are left unread.
        let host = tier.cdn.baseURL.dropFirst(7)
        #expect(try [200, 202].contains(purge("host=\(host)")))
        #expect(try second.settled("changes_total") { $0 == 2 } == 2)
        for node in [first, second] { #expect(try node.get("/f/two.ts").text == "new two") }
        // A node that was not there follows too, and what was fetched since then stays.
        let asked = tier.cdn.requests.count
        try second.story.restart(SIGKILL)
        #expect(try second.settled("changes_total") { $0 == 2 } == 2)
        #expect(try second.get("/f/two.ts").text == "new two")
        #expect(tier.cdn.requests.count == asked)
    }

    @Test(arguments: ["url", "title", "host", "prefix"])
    func `a purge spares no copy in the store, whatever it names`(_ name: String) throws {
        let tier = try Tier()
        let path = "/f/one.ts"
        tier.cdn.put(path, text: "old")
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        #expect(try first.get(path).text == "old")
        #expect(eventually { tier.bucket.cached.count == 1 })
        let second = try tier.node(poll)
        tier.cdn.put(path, text: "new")
        let subject =
            switch name {
            case "url": first.story.url(for: tier.cdn.url(path))
            case "title": tier.cdn.url(path)
            case "prefix": tier.cdn.url("/f")
            default: tier.cdn.baseURL
            }
        _ = try first.story.api("purge?\(name)=\(percentEncoded(subject))", method: "POST")
        #expect(try second.settled("changes_total") { $0 == 1 } == 1)
        #expect(try second.get(path).text == "new")
    }

    @Test(arguments: [false, true])
    func `a purge by a player's link reaches all nodes, whatever name and port the link has`(
        _ isOfProxy: Bool
    ) throws {
        let tier = try Tier()
        let path = "/f/one.ts"
        tier.cdn.put(path, text: "old")
        tier.cdn.put("/f/l.m3u8", text: vod(["one.ts"]))
        let arguments = ["--shared-store-poll", "1", "--host-name", "media.example"]
        let first = try tier.node(arguments)
        let second = try tier.node(arguments)
        #expect(try first.get(path).text == "old")
        #expect(eventually { tier.bucket.cached.count == 1 })
        let link = try #require(uriLines(try first.get("/f/l.m3u8").text).first)
        tier.cdn.put(path, text: "new")
        // A balancer listens on port 80, and the other node on a port of its own.
        let place = isOfProxy ? "http://media.example" : first.story.daemon.baseURL
        let url = percentEncoded(place + link)
        _ = try second.story.api("purge?url=\(url)", method: "POST")
        #expect(try first.settled("changes_total") { $0 == 1 } == 1)
        for node in [second, first] { #expect(try node.get(path).text == "new") }
    }

    @Test(arguments: [false, true])
    func `a purge by title that is given to a node without the title reaches those that have it`(
        _ isByNumber: Bool
    ) throws {
        let tier = try Tier()
        let path = "/f/one.ts"
        tier.cdn.put(path, text: "old")
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        let second = try tier.node(poll)
        #expect(try first.get(path).text == "old")
        #expect(eventually { tier.bucket.cached.count == 1 })
        let id = try #require(members("id", in: try first.story.api("titles")).first)
        tier.cdn.put(path, text: "new")
        let title = percentEncoded(isByNumber ? id : tier.cdn.url(path))
        let purge = try second.story.api("purge?title=\(title)", method: "POST")
        #expect(purge.contains("\"note\":\"nothing of it is kept here"), "\(purge)")
        #expect(try first.settled("changes_total") { $0 == 1 } == 1)
        // The second one would have it from the store.
        for node in [second, first] { #expect(try node.get(path).text == "new") }
    }

    @Test(arguments: ["pin", "purge"])
    func `a password in a title's URL stays out of the store`(_ change: String) throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "one")
        let first = try tier.node(["--shared-store-poll", "1"])
        let url = tier.cdn.url("/f/one.ts").replacing("//", with: "//user:hidden@")
        #expect(try first.story.player().get(first.story.url(for: url)).text == "one")
        _ = try first.story.api("\(change)?title=\(percentEncoded(url))", method: "POST")
        func rules() -> [[UInt8]] {
            tier.bucket.objects.filter { $0.key.contains("/v1/rules/") }.map(\.value)
        }
        #expect(eventually { rules().count == 1 })
        #expect(!rules().contains { String(decoding: $0, as: UTF8.self).contains("hidden") })
    }

    @Test func `a node that was away begins with the purges that it missed`() throws {
        let tier = try Tier()
        let paths = (1...30).map { "/f/\($0).ts" }
        for path in paths { tier.cdn.put(path, text: "old") }
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        let second = try tier.node(poll)
        for path in paths { #expect(try second.get(path).text == "old") }
        second.story.stop()
        for path in paths {
            tier.cdn.put(path, text: "new")
            let url = percentEncoded(tier.cdn.url(path))
            _ = try first.story.api("purge?url=\(url)", method: "POST")
        }
        let rules = { tier.bucket.objects.keys.count { $0.contains("/v1/rules/") } }
        #expect(eventually { rules() == paths.count })
        try second.story.restart()
        for path in paths { #expect(try second.get(path).text == "new") }
    }

    @Test func `an unpin outlives restarts, though the clock of the node that pinned is ahead`()
        throws
    {
        let pinned = try PinnedTitle()
        let node = pinned.node
        // The same by a node whose clock is an hour ahead.
        pinned.repeatRule(after: 3_600_000_000_000)
        #expect(try node.settled("changes_total") { $0 == 1 } == 1)
        try pinned.unpin()
        #expect(eventually { pinned.ruleCount == 3 })
        try node.story.restart()
        #expect(try node.settled("changes_total") { $0 == 3 } == 3)
        #expect(try !node.story.api("titles").contains("\"pinned\":true"))
    }

    @Test func `an unpin while no daemon runs holds, and reaches the store with the next start`()
        throws
    {
        let pinned = try PinnedTitle()
        let (story, bucket) = (pinned.node.story, pinned.tier.bucket)
        story.stop()
        let settings =
            bucket.environment + [(name: "SLUICE_SHARED_STORE", value: bucket.location)]
        let done = try sluice(
            "unpin", pinned.id, "--cache-dir", story.cacheFolder,
            environment: settings.map { "\($0.name)=\($0.value)" })
        #expect(done.stdout == "unpinned\n", "\(done.stderr)")
        try story.restart()
        #expect(eventually { pinned.ruleCount == 2 })
        #expect(try !story.api("titles").contains("\"pinned\":true"))
    }

    @Test func `an unpin while no daemon runs undoes a pin of a node that is ahead`() throws {
        let pinned = try PinnedTitle()
        let (node, bucket) = (pinned.node, pinned.tier.bucket)
        pinned.repeatRule(after: 3_600_000_000_000)
        #expect(try node.settled("changes_total") { $0 == 1 } == 1)
        node.story.stop()
        let settings =
            bucket.environment + [(name: "SLUICE_SHARED_STORE", value: bucket.location)]
        let done = try sluice(
            "unpin", pinned.id, "--cache-dir", node.story.cacheFolder,
            environment: settings.map { "\($0.name)=\($0.value)" })
        #expect(done.stdout == "unpinned\n", "\(done.stderr)")
        try node.story.restart()
        #expect(eventually { pinned.ruleCount == 3 })
        #expect(try node.settled("changes_total") { $0 == 1 } == 1)
        #expect(try !node.story.api("titles").contains("\"pinned\":true"))
    }

    @Test func `a pin that reaches the store later than its unpin is not made`() throws {
        let pinned = try PinnedTitle()
        let (node, bucket) = (pinned.node, pinned.tier.bucket)
        try pinned.unpin()
        #expect(eventually { pinned.ruleCount == 2 })
        // As a node writes it that could not reach the store before.
        let late = pinned.repeatRule(after: 1)
        let isRead = eventually {
            bucket.requests.contains { $0.method == "GET" && $0.target.contains(late) }
        }
        #expect(isRead)
        let looks = bucket.requests.count
        #expect(eventually { bucket.requests.count > looks + 10 })
        #expect(try !node.story.api("titles").contains("\"pinned\":true"))
        #expect(try node.stat("changes_total") == 0)
    }

    @Test func `a pin by number reaches a node that has nothing of the title`() throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "one")
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        let second = try tier.node(poll)
        #expect(try first.get("/f/one.ts").text == "one")
        let id = try #require(members("id", in: try first.story.api("titles")).first)
        _ = try first.story.api("pin?title=\(id)", method: "POST")
        #expect(try second.settled("changes_total") { $0 == 1 } == 1)
        let titles = try second.story.api("titles")
        #expect(titles.contains("\"id\":\"\(id)\"") && titles.contains("\"pinned\":true"))
    }

    @Test(arguments: [(503, 1), (403, 2), (404, 2)])
    func `a change that cannot be read delays later ones only while the store itself fails`(
        _ status: Int, _ made: Int
    ) throws {
        let tier = try Tier()
        let names = (1...3).map { "tier/v1/rules/170000000000000000\($0)-ab" }
        tier.bucket.objects = Dictionary(
            uniqueKeysWithValues: names.map {
                ($0, Array("sluice change 1\n/api/purge?host=cdn.example\n".utf8))
            })
        tier.bucket.fault = .refusingReads(names[1], status)
        let node = try tier.node(["--shared-store-poll", "1"])
        #expect(try node.settled("changes_total") { $0 == made } == made)
        func attempts() -> Int {
            tier.bucket.requests.count { $0.method == "GET" && $0.target.contains(names[1]) }
        }
        let before = attempts()
        #expect(eventually { attempts() >= before + 3 })
        #expect(try node.stat("changes_total") == made)
        tier.bucket.fault = nil
        #expect(try node.settled("changes_total") { $0 == 3 } == 3)
        // Some stores give more, which is longer than an answer may be.
        let lists = tier.bucket.requests.filter { $0.target.contains("list-type=2") }
        #expect(lists.allSatisfy { $0.target.contains("max-keys=1000") })
    }

    @Test func `a purge accepted while the store is away reaches the others after a kill`() throws {
        let tier = try Tier()
        tier.cdn.put("/f/one.ts", text: "old one")
        let poll = ["--shared-store-poll", "1"]
        let first = try tier.node(poll)
        let second = try tier.node(poll)
        for node in [first, second] { #expect(try node.get("/f/one.ts").text == "old one") }
        #expect(eventually { tier.bucket.cached.count == 1 })
        tier.cdn.put("/f/one.ts", text: "new one")
        tier.bucket.stop()
        let url = percentEncoded(tier.cdn.url("/f/one.ts"))
        _ = try first.story.api("purge?url=\(url)", method: "POST")
        try first.story.restart(SIGKILL)
        try tier.bucket.start()
        #expect(try second.settled("changes_total") { $0 == 1 } == 1)
        for node in [first, second] { #expect(try node.get("/f/one.ts").text == "new one") }
        // What the bucket has is written once.
        try first.story.restart()
        let looks = tier.bucket.requests.count
        #expect(eventually { tier.bucket.requests.count > looks + 10 })
        #expect(
            tier.bucket.requests.count { $0.method == "PUT" && $0.target.contains("/v1/rules/") }
                == 1)
    }
}
