// The savings of normalised keys: one catalogue watched under rotating tokens, through two mirror
// hosts, with shuffled parameters; without and with normalisation.
import Glibc
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
    private let bin: String

    init(_ options: BenchOptions) throws {
        self.options = options
        bin = try BenchFolder.ownFolder()
    }

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
            try RunningProgram(
                ["\(bin)/sample-cdn", "--folder", folder.path, "--address", $0],
                ready: "listening http")
        }
        let daemon = try RunningProgram(
            [
                "\(bin)/sluice", "serve", "--port", "0", "--cache-dir", "\(folder.path)/cache",
                "--allow-private", "--log-level", "error",
            ] + arguments, ready: "sluice ready http")
        var trace = KeysTrace(films: options.times(20))
        let paths = trace.requests(visits: options.times(100)).map {
            "/http://\(mirrors[$0.mirror].address)\($0.target)"
        }
        let result = try LoadGenerator(to: daemon.address, paths: paths)
            .run(requests: paths.count, connections: 1)
        guard result.failures == 0 else {
            throw BenchError("\(result.failures) of \(paths.count) requests failed")
        }
        let bytes = try mirrors.reduce(0.0) { try $0 + Self.bytesSent(by: $1) }
        return (bytes, median(result.firstBytes))
    }

    /// The bytes that a sample CDN has sent so far, by its own count.
    private static func bytesSent(by origin: RunningProgram) throws -> Double {
        let socket = try connect(to: origin.address)
        let request = Array(
            "GET /__count HTTP/1.1\r\nHost: \(origin.address)\r\nConnection: close\r\n\r\n".utf8)
        _ = request.withUnsafeBytes { Posix.send($0, to: socket.number) }
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4_096)
        var poll = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
        while Glibc.poll(&poll, 1, 5_000) > 0 {
            let count = read(socket.number, &piece, piece.count)
            guard count > 0 else { break }
            text += piece[..<count]
        }
        let answer = String(decoding: text, as: UTF8.self)
        guard let name = answer.firstRange(of: "\"bytes\":"),
            let bytes = Double(answer[name.upperBound...].prefix(while: \.isNumber))
        else { throw BenchError("the sample CDN did not say what it has sent") }
        return bytes
    }
}
