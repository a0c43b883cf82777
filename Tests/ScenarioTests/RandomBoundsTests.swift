import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// What a player request costs an origin that misbehaves at random: requests, bytes and seconds,
/// whatever the origin does.
extension Stories {
    @Suite struct RandomBoundsTests {
        /// The length of every medium; a playlist is shorter.
        static let length = 50_000
        /// The base of a request's budget, since these bodies are too short to earn more, and the one
        /// request that libcurl repeats on a kept connection.
        static let mostRequests = 25
        /// What the budget lets be received, the heads and trailers that are refused, and what the
        /// sockets held when a transfer was broken off.
        static let mostBytes = 3 * length + (1 << 20) + (1 << 20)
        /// Patience, the last attempt with both of its timeouts, and a loaded machine.
        static let longest = Duration.seconds(20)

        /// What is asked for, in turn.
        private static let names: [(name: String, range: String?, isMounted: Bool)] = [
            ("a.ts", nil, false), ("l.m3u8", nil, false), ("open", nil, false),
            ("a.ts", "bytes=20000-29999", false), ("open", "bytes=20000-29999", false),
            ("a.ts", nil, true), ("l.m3u8", nil, true), ("a.ts", "bytes=20000-", true),
        ]

        /// The seed is `SLUICE_SEED`, else one of the clock.
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
            let origin = try MisbehavingOrigin(seed: seed) { $0.contains(".m3u8") ? list : media }
            defer { origin.stop() }
            let story = try Story([
                "--mount", "/mt/=\(origin.url("/"))", "--connect-timeout", "1",
                "--first-byte-timeout", "1", "--stall-timeout", "1",
            ])
            let base = story.daemon.baseURL
            for batch in 0..<10 {
                let durations = try inParallel(24, within: .seconds(90)) { index in
                    let (name, range, isMounted) = Self.names[index % Self.names.count]
                    let path = "/r\(batch)x\(index)/\(name)"
                    let url = isMounted ? "\(base)/mt\(path)" : "\(base)/\(origin.url(path))"
                    let player = ScriptedPlayer(base, deadline: Self.longest)
                    let start = ContinuousClock.now
                    _ = try? player.get(url, headers: range.map { [("Range", $0)] } ?? [])
                    return ContinuousClock.now - start
                }
                for (index, duration) in durations.enumerated() {
                    let cost = origin.cost("r\(batch)x\(index)")
                    let (name, range, isMounted) = Self.names[index % Self.names.count]
                    let what = "\(name) \(range ?? "") \(isMounted ? "mounted" : "")"
                    let story = Comment(
                        rawValue: "seed \(seed), r\(batch)x\(index), \(what): \(cost.faults)")
                    #expect(cost.requests <= Self.mostRequests, story)
                    #expect(cost.bytes <= Self.mostBytes, story)
                    #expect(duration < Self.longest, story)
                }
            }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            #expect(story.daemon.isRunning)
        }
    }
}
