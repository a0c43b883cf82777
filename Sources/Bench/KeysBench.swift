// The savings of normalised keys: one catalogue watched under rotating tokens, through two mirror
// hosts, with shuffled parameters; without and with normalisation.
import Posix

/// The trace: the same requests in every run and on every machine.
private struct KeysTrace {
    let films: Int
    static let segments = 12
    static let segmentBytes = 200_000

    struct Request {
        let mirror: Int
        let target: String
    }

    private var seed: UInt64 = 0x5EED

    init(films: Int) {
        self.films = films
    }

    /// SplitMix64.
    private mutating func next(_ bound: Int) -> Int {
        seed &+= 0x9E37_79B9_7F4A_7C15
        var value = (seed ^ (seed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return Int((value ^ (value >> 31)) % UInt64(bound))
    }

    /// Visits to whole films, early films most often; each visit has its own token.
    mutating func requests(visits: Int) -> [Request] {
        (0..<visits).flatMap { visit -> [Request] in
            let film = min(next(films), next(films))
            let mirror = next(2)
            let mac = String(visit, radix: 16)
            let token =
                "token=\(1_893_456_000 + visit)_\(String(repeating: "0", count: 40 - mac.count))\(mac)"
            return (0..<Self.segments).map { index in
                var query = ["codec=avc", "rev=3", "fb=40", token]
                for place in (1..<query.count).reversed() { query.swapAt(place, next(place + 1)) }
                let path = "/bytes/f\(film)-\(index)/\(Self.segmentBytes)"
                return Request(mirror: mirror, target: "\(path)?\(query.joined(separator: "&"))")
            }
        }
    }
}

/// Plays the trace twice, each time with a fresh daemon between the player and two origins that
/// take 40 ms to answer.
struct KeysBench {
    private let options: BenchOptions

    init(_ options: BenchOptions) { self.options = options }

    func run(_ report: inout Report) throws {
        let off = try play(["--keys", "off"])
        let on = try play(["--key-rule", "127.0.0.*=host cdn.example.com"])
        for (name, result) in [("off", off), ("on", on)] {
            report.add("keys", "trace, normalisation \(name): origin bytes", result.bytes, "bytes")
            report.add(
                "keys", "trace, normalisation \(name): first byte, median", result.median * 1e3,
                "ms")
        }
        report.add("keys", "trace: origin bytes saved", (1 - on.bytes / off.bytes) * 100, "%")
        report.add("keys", "trace: latency saved", (1 - on.median / off.median) * 100, "%")
    }

    private func play(_ arguments: [String]) throws -> (bytes: Double, median: Double) {
        let folder = try BenchFolder()
        let mirrors = try ["127.0.0.1", "127.0.0.2"].map {
            try RunningProgram.sampleCDN(in: folder, ["--address", $0])
        }
        let daemon = try RunningProgram.daemon(in: folder, ["--allow-private"] + arguments)
        var trace = KeysTrace(films: options.times(20))
        let paths = trace.requests(visits: options.times(100)).map {
            "/http://\(mirrors[$0.mirror].address)\($0.target)"
        }
        let result = try sendLoad(paths, to: daemon.address, LoadShape(requests: paths.count))
        let bytes = try mirrors.reduce(0.0) {
            try $0 + jsonNumber("bytes", at: $1.address, "/__count")
        }
        return (bytes, median(result.firstBytes))
    }
}
