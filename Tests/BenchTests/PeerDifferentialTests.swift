import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

@testable import Bench

/// The same requests through the daemon, Varnish and Traffic Server, each with an origin of its own,
/// and without any of them.
///
/// A judge that has seen what each program got from its origin holds every answer against RFC 9111;
/// the daemon may not depart from it. How the others depart, and where they ask their origins though
/// the daemon does not, or the other way round, is explained by the tables of `Conformance.md`: a kind
/// that has no row there fails. `PEERS_SECONDS` says how long to go on, `PEERS_SEED` with which plan to
/// begin; `make differential-peers` sets both.
extension BenchStories {
    @Suite(.tags(.crowded)) struct PeerDifferentialTests {
        @Test func `every answer of a mount is one that RFC 9111 allows`() throws {
            let worlds = [try PeerPrograms.direct(), try PeerPrograms.sluice()]
            try Self.eachPlan { plan, path in
                for world in worlds {
                    let seen = try world.play(plan, at: path)
                    let faults = PeerJudge(seen).faults
                    let told = seen.map { $0.description }.joined(separator: "\n")
                    #expect(faults.isEmpty, "\(world.name): \(faults)\n\(plan)\n\(told)")
                    guard faults.isEmpty else { return false }
                }
                return true
            }
        }

        @Test(arguments: PeerPrograms.names)
        func `each kind of difference from another cache is explained`(name: String) throws {
            guard let peer = try PeerPrograms.peer(name) else {
                try Test.cancel("\(name) is not installed: make setup")
            }
            let daemon = try PeerPrograms.sluice()
            let explained = try PeerExplanations.read(name)
            var counts: [String: Int] = [:]
            try Self.eachPlan { plan, path in
                let ours = try daemon.play(plan, at: path)
                let theirs: [PeerObservation]
                do { theirs = try peer.play(plan, at: path) } catch {
                    counts[PeerExplanations.noAnswer, default: 0] += 1
                    #expect(explained.contains(PeerExplanations.noAnswer), "\(error)\n\(plan)")
                    return explained.contains(PeerExplanations.noAnswer)
                }
                let comparison = PeerComparison(
                    plan: plan, ours: PeerJudge(ours), theirs: PeerJudge(theirs))
                for difference in comparison.differences(name) {
                    counts[difference.kind, default: 0] += 1
                    let isExplained = explained.contains(difference.kind)
                    let told = (ours + theirs).map { $0.description }.joined(separator: "\n")
                    #expect(
                        isExplained,
                        "\(difference), \(difference.detail)\n\(plan)\nstep \(difference.step)\n\(told)"
                    )
                    guard isExplained else { return false }
                }
                return true
            }
            for (kind, count) in counts.sorted(by: { $0.key < $1.key }) where Self.seconds != nil {
                print("peers: \(count) \(name): \(kind)")
            }
            #expect(!counts.isEmpty, "the other cache is no different at all")
        }

        private static let seconds = number("PEERS_SECONDS")

        /// Plays plans, the same ones in every run unless a time is given; the first for which `play`
        /// returns false is the last.
        private static func eachPlan(_ play: (PeerPlan, String) throws -> Bool) throws {
            let end = seconds.map { ContinuousClock.now + .seconds($0) }
            let first = UInt64(number("PEERS_SEED") ?? 1)
            var seed = first
            while end.map({ .now < $0 }) ?? (seed < first + 150) {
                guard try play(PeerPlan(seed: seed), "/plan\(seed)") else { return }
                seed += 1
            }
            if seconds != nil { print("peers: plans \(first)..<\(seed)") }
        }

        private static func number(_ name: String) -> Int? {
            getenv(name).flatMap { Int(String(cString: $0)) }
        }
    }
}

/// The tables of the page on conformance that explain differences.
enum PeerExplanations {
    static let noAnswer = "no answer"

    /// The kinds that the page explains for a program: rows `| program | kind | ... |`.
    static func read(_ name: String) throws -> Set<String> {
        let page = "\(Fixture.repository)/Sources/sluice/sluice.docc/Internals/Conformance.md"
        let text = String(decoding: try readFile(page), as: UTF8.self)
        var kinds: Set<String> = []
        for line in text.split(separator: "\n") {
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            guard cells.count >= 3, cells[0].hasPrefix(name) else { continue }
            for kind in cells[1].split(separator: "`").map(String.init)
            where kind.contains(where: \.isLetter) {
                kinds.insert(kind)
            }
        }
        guard !kinds.isEmpty else { throw ScenarioFailure("no rows for \(name) in \(page)") }
        return kinds
    }
}

/// The programs that are compared.
enum PeerPrograms {
    /// The other caches; each is left out where it is not installed.
    static let names = ["varnish", "trafficserver"]

    static func direct() throws -> PeerWorld {
        try PeerWorld(PeerWorld.direct) { ($0.baseURL, {}) }
    }

    static func sluice() throws -> PeerWorld {
        try PeerWorld("sluice") { origin in
            let folder = try TemporaryFolder()
            let daemon = try DaemonProcess([
                "serve", "--port", "0", "--allow-private", "--cache-dir", folder.file("cache"),
                "--log-level", "error", "--mount", "/=\(origin.baseURL)/",
            ])
            return (
                daemon.baseURL,
                {
                    daemon.kill(SIGKILL)
                    _ = try? daemon.waitForExit()
                    _ = folder
                }
            )
        }
    }

    /// Varnish or Traffic Server; nil if it is not installed.
    static func peer(_ name: String) throws -> PeerWorld? {
        guard var peer = Peer.all.first(where: { $0.name == name }), let path = peer.path else {
            return nil
        }
        // Stale responses are kept to be validated, and nothing is recoded.
        if name == "varnish" {
            let parameters = [
                "default_ttl=0", "default_grace=0", "default_keep=3600", "http_gzip_support=off",
            ]
            peer.arguments += parameters.flatMap { ["-p", $0] }
        }
        let prepared = peer
        // Traffic Server may wait long for an origin that has hung up.
        return try PeerWorld(name, within: .seconds(8)) { origin in
            let folder = try TemporaryFolder()
            let port = try freePort()
            let place = BenchOrigin(port: origin.port)
            var words = ["port": "\(port)", "folder": folder.path]
            words.merge(place.words) { $1 }
            try PeerFiles.write(prepared, to: folder.path, words)
            let arguments = [path] + prepared.arguments.map { PeerFiles.fill($0, words) }
            let child = try ChildProcess(arguments)
            let url = "http://127.0.0.1:\(port)"
            let isReady = eventually(within: .seconds(30)) {
                (try? ScriptedPlayer(url).get("/ready").status) == 200
            }
            guard isReady else {
                child.kill(SIGKILL)
                let words = String(decoding: child.standardError.suffix(800), as: UTF8.self)
                throw ScenarioFailure("\(name) does not answer: \(words)")
            }
            return (
                url,
                {
                    child.kill(SIGTERM)
                    if child.waitForExit(seconds: 10) == nil { child.kill(SIGKILL) }
                    _ = folder
                }
            )
        }
    }
}
