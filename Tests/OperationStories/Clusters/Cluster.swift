import FixtureCDN
import Glibc
import ScenarioSupport

/// Daemons, HAProxy before them with the settings of the manual, and the CDN.
final class Cluster: Sendable {
    private static let program = "/usr/sbin/haproxy"
    static var isAvailable: Bool { access(program, X_OK) == 0 }

    let cdn = FixtureCDN()
    private let running: Shared<[DaemonProcess]>
    private let arguments: [String]
    private let folder: TemporaryFolder
    private let balancer: Shared<ChildProcess>
    let port: UInt16

    /// The daemons, in the order in which HAProxy names them.
    var nodes: [DaemonProcess] { running.value }

    /// Whether HAProxy sends requests past a node that has more than its share of them.
    private let boundsLoad: Bool

    /// `joined` are the nodes that HAProxy knows from the start, the first ones; `arguments` are
    /// added to `serve`, and a file of keys with `sharesKey`.
    init(
        nodes count: Int = 3, joined: Int = 3, sharesKey: Bool = false, boundsLoad: Bool = true,
        _ arguments: [String] = []
    ) throws {
        self.boundsLoad = boundsLoad
        let folder = try TemporaryFolder()
        self.folder = folder
        try cdn.start()
        var arguments = arguments
        if sharesKey { arguments += ["--cluster-key", try Self.key(folder.file("cluster.key"))] }
        self.arguments = arguments
        let nodes = try (0..<count).map {
            try Story.serve(folder.makeFolder("node\($0)"), arguments)
        }
        running = Shared(nodes)
        let probe = FixtureCDN()
        try probe.start()
        port = probe.port
        probe.stop()
        balancer = Shared(try Self.balance(Array(nodes[..<joined]), folder, port, boundsLoad))
        try awaitNodes()
    }

    deinit {
        balancer.value.end()
        for node in nodes { node.kill(SIGKILL) }
        for node in nodes { _ = try? node.waitForExit() }
        cdn.stop()
    }

    /// Makes a file of keys with the command; returns its path.
    static func key(_ path: String) throws -> String {
        let made = try sluice("cluster", "key", path)
        guard made.status == 0 else { throw ScenarioFailure(made.stderr) }
        return path
    }

    var url: String { "http://127.0.0.1:\(port)" }

    /// Ends a node in good order and starts another one in its place.
    func upgrade(_ number: Int) throws {
        let former = nodes[number]
        try former.terminate()
        try start(number, on: former.baseURL)
    }

    /// Starts a node in the place of one that has ended, with an empty folder if `isFresh`.
    func start(_ number: Int, on address: String, isFresh: Bool = false) throws {
        let cache = isFresh ? "fresh\(number)" : "node\(number)"
        let port = address.split(separator: ":").last.map(String.init) ?? "0"
        let next = try Story.serve(folder.file(cache), arguments + ["--port", port])
        running.update { $0[number] = next }
    }

    /// Starts HAProxy anew, with all nodes.
    func joinAll() throws {
        balancer.value.end()
        let all = try Self.balance(nodes, folder, port, boundsLoad)
        balancer.update { $0 = all }
        try awaitNodes()
    }

    private func awaitNodes() throws {
        let isUp = eventually(within: .seconds(20)) {
            (try? ScriptedPlayer(url).get("/api/health"))?.status == 200
        }
        if !isUp {
            throw ScenarioFailure(String(decoding: balancer.value.standardError, as: UTF8.self))
        }
    }

    private static func balance(
        _ nodes: [DaemonProcess], _ folder: TemporaryFolder, _ port: UInt16, _ boundsLoad: Bool
    ) throws -> ChildProcess {
        let text = String(
            decoding: try readFile(Fixture.path("cluster/haproxy.cfg")), as: UTF8.self)
        var lines: [String] = []
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.contains("server node") || line.contains("bind :8443") { continue }
            if line.contains("hash-balance-factor"), !boundsLoad { continue }
            // Nodes are as good as old ones from the beginning.
            lines.append(
                String(line).replacing("bind :8080", with: "bind 127.0.0.1:\(port)")
                    .replacing(" slowstart 30s", with: ""))
        }
        for (number, node) in nodes.enumerated() {
            lines.append("    server node\(number + 1) \(node.baseURL.dropFirst(7))")
        }
        try writeFile(folder.file("haproxy.cfg"), (lines.joined(separator: "\n") + "\n").utf8)
        return try ChildProcess([program, "-db", "-f", folder.file("haproxy.cfg")])
    }

    /// What HAProxy reported, such as nodes that it took for down.
    var haproxyMessages: String { String(decoding: balancer.value.standardError, as: UTF8.self) }

    func stat(_ name: String, of node: DaemonProcess) throws -> Int {
        let text = try ScriptedPlayer(node.baseURL).get("/api/stats").text
        guard let found = text.firstRange(of: "\"\(name)\":") else { return 0 }
        return Int(text[found.upperBound...].prefix { $0.isNumber }) ?? 0
    }

    /// What the players of a crowd saw.
    struct Seen: Sendable {
        var played = 0
        /// Answers that were not the bytes of the origin.
        var failed: [String] = []
        /// Transfers cut in mid-body, which were tried again.
        var cut = 0

        static func + (left: Seen, right: Seen) -> Seen {
            Seen(
                played: left.played + right.played, failed: left.failed + right.failed,
                cut: left.cut + right.cut)
        }
    }

    /// Plays a list to its end, as a player does that tries a transfer again which was cut.
    ///
    /// - Parameters:
    ///   - entry: the target of the list.
    ///   - pause: microseconds between segments.
    ///   - isRight: whether a body is that of the segment with a number.
    /// - Returns: what the player saw.
    /// - Throws: `ScenarioFailure` if nothing answers any more.
    func watch(
        _ entry: String, pause: UInt32 = 0, isRight: (Int, [UInt8]) -> Bool
    ) throws -> Seen {
        var seen = Seen()
        let player = ScriptedPlayer(url)
        func get(_ target: String) throws -> PlayerResponse {
            for _ in 0..<3 {
                let answer = try? player.get(target)
                if let answer, answer.broken == nil { return answer }
                seen.cut += 1
                player.disconnect()
            }
            return try player.get(target)
        }
        let list = try get(entry)
        guard list.status == 200 else {
            seen.failed.append("list: \(list.status) \(list.text.prefix(200))")
            return seen
        }
        for (number, link) in uriLines(list.text).enumerated() {
            let answer = try get(resolved(link, at: entry))
            if answer.status == 200, isRight(number, answer.body) {
                seen.played += 1
            } else {
                seen.failed.append("\(number): \(answer.status) \(answer.text.prefix(200))")
            }
            usleep(pause)
        }
        return seen
    }
}

/// The target of a reference in a list that was requested by a target (RFC 3986 section 5).
func resolved(_ reference: String, at target: String) -> String {
    if reference.hasPrefix("/") || reference.hasPrefix("http") { return reference }
    var parts = target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        .dropLast()
    for part in reference.split(separator: "/", omittingEmptySubsequences: false) {
        if part == ".." { parts.removeLast() } else { parts.append(part) }
    }
    return parts.joined(separator: "/")
}
