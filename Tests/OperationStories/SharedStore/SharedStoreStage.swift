import FixtureCDN
import ScenarioSupport
import Testing

/// A bucket, and daemons that use it, each with an empty disk.
final class Tier: Sendable {
    let bucket: BucketFixture
    let cdn: FixtureCDN
    private let folder: TemporaryFolder

    init(token: String? = nil) throws {
        bucket = BucketFixture(token: token)
        try bucket.start()
        cdn = FixtureCDN()
        try cdn.start()
        folder = try TemporaryFolder()
    }

    deinit {
        bucket.stop()
        cdn.stop()
    }

    /// A node that asks the origin only where the bucket has nothing, however busy the machine is.
    func patientNode() throws -> Node { try node(["--shared-store-head-start", "5"]) }

    /// A node that plays from the CDN of the tier, with the credentials in variables unless it has
    /// others.
    func node(
        _ arguments: [String] = [], environment: [(name: String, value: String)]? = nil
    ) throws -> Node {
        Node(
            try Story(
                ["--shared-store", bucket.location] + arguments,
                environment: environment ?? bucket.environment),
            cdn: cdn)
    }

    /// Writes a body to the bucket by way of one node, and silences the origin.
    ///
    /// - Parameter path: the body's path at the CDN.
    /// - Returns: another node, which has found the origin down, and what holds the origin's port.
    /// - Throws: what a daemon or a request fails with.
    func nodeOfSilentOrigin(afterWriting path: String) throws -> (Node, BlackHole) {
        let first = try patientNode()
        #expect(isContent(try first.get(path).body, of: path))
        #expect(try first.settled("writes_total") { $0 == 1 } == 1)
        let second = try node(["--shared-store-head-start", "5", "--connect-timeout", "1"])
        cdn.stop()
        let hole = try BlackHole(port: cdn.port)
        // The request that finds the origin down.
        #expect(try second.get("/bytes/3000/other.ts").status == 504)
        #expect(try second.story.stat("origin_outages_total") == 1)
        return (second, hole)
    }

    /// A node that may be asked through the CDN of the tier.
    struct Node: Sendable {
        let story: Story
        let cdn: FixtureCDN

        init(_ story: Story, cdn: FixtureCDN) {
            self.story = story
            self.cdn = cdn
        }

        func get(_ path: String, range: String? = nil) throws -> PlayerResponse {
            try story.player().get(
                story.url(for: cdn.url(path)), headers: range.map { [("Range", $0)] } ?? [])
        }

        func follow(_ link: String) throws -> PlayerResponse { try story.follow(link) }

        func stat(_ name: String) throws -> Int { try story.stat("shared_store_\(name)") }

        func settled(_ name: String, _ isExpected: (Int) -> Bool) throws -> Int {
            try story.settled("shared_store_\(name)", isExpected)
        }
    }
}
