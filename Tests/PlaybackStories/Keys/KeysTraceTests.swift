import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The gain of normalised keys: one catalogue watched under rotating tokens, through two mirror
/// hosts, with shuffled parameters; without and with normalisation.
extension Stories {
    @Suite(.tags(.timed)) struct KeysTraceTests {}
}

/// A request of the trace.
private struct Watched {
    let mirror: Int
    let path: String
    let query: String
}

/// The same requests in every run: films by popularity, each visit with its own token.
private struct Trace {
    static let films = 12
    static let segments = 6
    static let visits = 40
    static let segmentBytes = 40_000

    private var seed: UInt64 = 0x5EED

    /// SplitMix64, so that the trace does not depend on the machine.
    private mutating func next(_ bound: Int) -> Int {
        seed &+= 0x9E37_79B9_7F4A_7C15
        var value = (seed ^ (seed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((value ^ (value >> 31)) % UInt64(bound))
    }

    mutating func requests() -> [Watched] {
        (0..<Self.visits).flatMap { visit -> [Watched] in
            // The smaller of two draws: early films are watched most.
            let film = min(next(Self.films), next(Self.films))
            let mirror = next(2)
            return (0..<Self.segments).map { index in
                var query = ["codec=avc", "rev=3", signature(visit)]
                for place in (1..<query.count).reversed() { query.swapAt(place, next(place + 1)) }
                return Watched(
                    mirror: mirror, path: segment("f\(film)-\(index)", Self.segmentBytes),
                    query: query.joined(separator: "&"))
            }
        }
    }
}

extension Stories.KeysTraceTests {
    /// Origin bytes, and the median time to first byte in milliseconds.
    private func play(_ arguments: [String]) throws -> (bytes: Int, median: Double) {
        let story = try Story(arguments)
        let mirror = FixtureCDN(address: "127.0.0.2")
        try mirror.start()
        defer { mirror.stop() }
        for cdn in [story.cdn, mirror] { cdn.setBehaviour("fb=15", for: "/bytes/*") }
        let player = story.player()
        var trace = Trace()
        let times = try trace.requests().map { watched -> Double in
            let cdn = watched.mirror == 0 ? story.cdn : mirror
            let answer = try player.get(story.url(for: cdn.url("\(watched.path)?\(watched.query)")))
            #expect(isContent(answer.body, of: watched.path))
            return answer.timeToFirstByte.milliseconds
        }
        let bytes = story.cdn.bytesSent() + mirror.bytesSent()
        return (bytes, times.sorted()[times.count / 2])
    }

    @Test func `normalised keys save at least 30 % of latency and 10 % of origin bytes`() throws {
        let off = try play(["--keys", "off"])
        let on = try play(["--key-rule", "127.0.0.*=host cdn.example.com"])
        print("trace, keys off: \(off.bytes) origin bytes, median first byte \(off.median) ms")
        print("trace, keys on:  \(on.bytes) origin bytes, median first byte \(on.median) ms")
        #expect(on.median <= 0.7 * off.median)
        #expect(Double(on.bytes) <= 0.9 * Double(off.bytes))
        // Each segment of the catalogue is fetched once, whatever its URL.
        #expect(on.bytes <= Trace.films * Trace.segments * Trace.segmentBytes)
    }
}
