import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What a player request costs a randomly failing origin: requests, bytes and seconds, whatever the
/// origin does.
extension Stories {
    @Suite(.tags(.timed)) struct RandomBoundsTests {
        /// The length of every medium; a playlist is shorter.
        static let length = 50_000
        /// The base of a request's budget, because these bodies are too short to earn more, and the
        /// one request that libcurl repeats on a reused connection.
        static let mostRequests = 25
        /// The bytes that the budget allows, rejected heads and trailers, and what the sockets held
        /// when a transfer was cancelled.
        static let mostBytes = 3 * length + (1 << 20) + (1 << 20)
        /// The longest time without a byte: patience, the last attempt with both of its timeouts,
        /// and a loaded machine.
        ///
        /// A body that continues may take longer.
        static let longestSilence = Duration.seconds(20)

        /// How a player gets a URL.
        private enum Way { case entry, mount, link }

        /// The requested URLs, in turn.
        ///
        /// A link was made while its token was valid, and is requested after it expired: it is
        /// found again in its playlist.
        private static let names: [(name: String, range: String?, way: Way)] = [
            ("a.ts", nil, .entry), ("l.m3u8", nil, .entry), ("open", nil, .entry),
            ("a.ts", "bytes=20000-29999", .entry), ("open", "bytes=20000-29999", .entry),
            ("a.ts", nil, .mount), ("l.m3u8", nil, .mount), ("a.ts", "bytes=20000-", .mount),
            ("k.key", nil, .link), ("s0.ts", nil, .link), ("k.key", nil, .link),
            ("s1.ts", "bytes=20000-29999", .link),
        ]

        /// A list of encrypted segments, all with tokens.
        private static let protected = vod(
            (0..<20).map { "s\($0).ts?token=\(MisbehavingOrigin.token)" },
            head: ["#EXT-X-KEY:METHOD=AES-128,URI=\"k.key?token=\(MisbehavingOrigin.token)\""])

        /// The seed is `SLUICE_SEED`, or else the time.
        private static var seed: UInt64 {
            getenv("SLUICE_SEED").flatMap { UInt64(String(cString: $0)) }
                ?? UInt64(truncatingIfNeeded: time(nil))
        }

        @Test func `each of 240 player requests stays within its budget`() throws {
            let seed = Self.seed
            let list = Array(
                ("#EXTM3U\n#EXT-X-TARGETDURATION:4\n"
                    + (0..<200).map { "#EXTINF:4,\ns\($0).ts\n" }.joined() + "#EXT-X-ENDLIST\n")
                    .utf8)
            let media = FixtureCDN.syntheticBytes("media", 0..<Self.length)
            let origin = try MisbehavingOrigin(seed: seed) { path in
                if path.contains("keys.m3u8") { return Array(Self.protected.utf8) }
                if path.contains(".key") { return Array(media.prefix(16)) }
                return path.contains(".m3u8") ? list : media
            }
            defer { origin.stop() }
            let story = try Story([
                "--mount", "/mt/=\(origin.url("/"))", "--connect-timeout", "1",
                "--first-byte-timeout", "1", "--stall-timeout", "1",
            ])
            let base = story.daemon.baseURL
            // Gets a link whose token has expired.
            let expiredLink = {
                @Sendable (folder: String, name: String, player: ScriptedPlayer) in
                origin.setCalm(folder, true)
                let list = try player.get("\(base)/\(origin.url("/\(folder)/keys.m3u8"))").text
                origin.setCalm(folder, false)
                return try #require(links(list).first { $0.contains("/\(name)") })
            }
            // Without faults it is found again, or links would prove nothing.
            let first = ScriptedPlayer(base, deadline: Self.longestSilence)
            let known = try expiredLink("first", "k.key", first)
            origin.setFaultless("first")
            #expect(try first.get(known).status == 200)
            #expect(try story.stat("urls_revived_total") == 1)
            // 48 players at a time, each with five requests one after another.
            let players = try inParallel(48, within: .seconds(180)) { index -> [Duration] in
                let (name, range, way) = Self.names[index % Self.names.count]
                return try (0..<5).map { batch -> Duration in
                    let folder = "r\(batch)x\(index)"
                    let player = ScriptedPlayer(base, deadline: Self.longestSilence)
                    let url: String
                    switch way {
                    case .entry: url = "\(base)/\(origin.url("/\(folder)/\(name)"))"
                    case .mount: url = "\(base)/mt/\(folder)/\(name)"
                    case .link: url = try expiredLink(folder, name, player)
                    }
                    let start = ContinuousClock.now
                    let answer = try? player.get(
                        url, headers: range.map { [("Range", $0)] } ?? [])
                    return answer?.longestSilence ?? (ContinuousClock.now - start)
                }
            }
            for (index, silences) in players.enumerated() {
                for (batch, silence) in silences.enumerated() {
                    let cost = origin.cost("r\(batch)x\(index)")
                    let (name, range, way) = Self.names[index % Self.names.count]
                    let what = "\(name) \(range ?? "") \(way)"
                    let story = Comment(
                        rawValue: "seed \(seed), r\(batch)x\(index), \(what): \(cost.faults)")
                    #expect(cost.requests <= Self.mostRequests, story)
                    #expect(cost.bytes <= Self.mostBytes, story)
                    #expect(silence < Self.longestSilence, story)
                }
            }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(story.daemon.isRunning)
        }
    }
}
