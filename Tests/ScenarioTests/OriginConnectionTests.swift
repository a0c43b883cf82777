/// How many connections a burst of transfers opens to an origin that was never asked before.
import FixtureCDN
import ScenarioSupport
import Testing

extension Stories {
    @Suite(.enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct OriginConnections {
        /// The connections of a burst of twelve segments, none of which waits for another's end.
        private func burst(http2: Bool) throws -> Set<Substring> {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            // Headless for a while, so that all have been asked for before the first one answers.
            for number in 0..<12 { cdn.setBehaviour("fb=500", for: segment("s\(number)", 9_000)) }
            let front = try NginxFront(.proxy(cdn), http2: http2)
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile])
            let areWhole = try inParallel(12) { number in
                let path = segment("s\(number)", 9_000)
                return isContent(
                    try story.player().get(story.url(for: front.url(path))).body, of: path)
            }
            #expect(areWhole.allSatisfy { $0 })
            #expect(cdn.peakConcurrentRequests > 1)
            #expect(eventually { front.accessLog.count == 12 })
            return Set(front.accessLog.compactMap { $0.split(separator: " ").last })
        }

        @Test func `a burst shares the first connection where the origin speaks HTTP2`() throws {
            #expect(try burst(http2: true).count <= 2)
        }

        @Test func `a burst has a connection each where the origin speaks HTTP1`() throws {
            #expect(try burst(http2: false).count == 12)
        }
    }
}
