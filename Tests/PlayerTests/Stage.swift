// The stage for players: the sample CDN with the bundled streams, and the daemon before it.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Players that play real streams through the daemon, one at a time in a runner.
@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped)
struct Players {}

/// The bundled streams, one of every kind the daemon must carry.
enum Stream: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case transportStream = "/ts/master.m3u8"
    case fragmentedMP4 = "/fmp4/master.m3u8"
    case byteRanges = "/byterange/master.m3u8"
    case rotatedKey = "/aes/master.m3u8"
    case packedAudio = "/audio/master.m3u8"
    /// A discontinuity, an interstitial, steering and more that players skip.
    case manyTags = "/tags/master.m3u8"
    case plainFile = "/plain/clip.mp4"

    var path: String { rawValue }
    var testDescription: String { rawValue }
    /// The frames that the script which made the streams put in: 12 seconds at 24 per second.
    var videoFrames: Int { self == .packedAudio ? 0 : 288 }
}

/// A sample CDN and a daemon with an empty cache; both end with this value.
final class Stage: Sendable {
    let cdn: FixtureCDN
    let daemon: DaemonProcess
    private let folder: TemporaryFolder

    /// Starts both; `arguments` are added to those of `serve`.
    init(
        _ arguments: [String] = [], environment: [(name: String, value: String)] = []
    ) throws {
        folder = try TemporaryFolder()
        cdn = FixtureCDN(folder: Fixture.path("media"))
        try cdn.start()
        daemon = try DaemonProcess(
            [
                "serve", "--port", "0", "--allow-private", "--cache-dir",
                folder.makeFolder("cache"),
            ] + arguments, environment: environment)
    }

    deinit {
        daemon.kill(SIGKILL)
        _ = try? daemon.waitForExit()
        cdn.stop()
    }

    /// The URL a player is given for an origin's URL: that URL after the daemon's slash.
    func through(_ origin: String) -> String { "\(daemon.baseURL)/\(origin)" }

    /// The same for a bundled stream.
    func through(_ stream: Stream) -> String { through(cdn.url(stream.path)) }

    /// The other form of an entry: that URL, percent-encoded, as an argument.
    func asArgument(_ stream: Stream) -> String {
        let encoded = cdn.url(stream.path).map { character in
            switch character {
            case ":": "%3A"
            case "/": "%2F"
            default: String(character)
            }
        }
        return "\(daemon.baseURL)/proxy?url=\(encoded.joined())"
    }

    /// Reads everything that a playlist refers to through the daemon, so that the title is stored
    /// completely.
    func keepWhole(_ link: String, depth: Int = 0) throws {
        let answer = try ScriptedPlayer(daemon.baseURL).get(link)
        guard depth < 3, answer.body.starts(with: Array("#EXTM3U".utf8)) else { return }
        for line in answer.text.split(separator: "\n") {
            if line.hasPrefix("#") {
                guard let start = line.firstRange(of: "URI=\"")?.upperBound else { continue }
                let uri = line[start...].prefix { $0 != "\"" }
                if uri.hasPrefix("/") { try keepWhole(daemon.baseURL + uri, depth: depth + 1) }
            } else {
                try keepWhole(daemon.baseURL + line, depth: depth + 1)
            }
        }
    }

    /// Plays a stream without the daemon.
    ///
    /// A player that never ends although it has every response whole hung by itself, which
    /// GStreamer was seen to do, not once in a thousand plays: it is started once more.
    func playDirectly(
        _ stream: Stream, by play: (_ url: String) throws -> Performance
    ) throws -> Performance {
        do {
            return try play(cdn.url(stream.path))
        } catch let hung as Tool.TookTooLong {
            let requests = cdn.requests.map {
                "\($0.method) \($0.target): \($0.status), \($0.isFinished ? "whole" : "not whole")"
            }
            print("\(hung)\nAnswers of the sample CDN:\n\(requests.joined(separator: "\n"))")
            guard !cdn.requests.isEmpty, cdn.requests.allSatisfy(\.isFinished) else { throw hung }
            return try play(cdn.url(stream.path))
        }
    }

    /// One of the daemon's figures; `GET /api/stats` is flat JSON.
    func figure(_ name: String) throws -> Int {
        let text = try ScriptedPlayer(daemon.baseURL).get("/api/stats").text
        let parts = text.split(whereSeparator: { "{},".contains($0) })
        guard let part = parts.first(where: { $0.hasPrefix("\"\(name)\":") }),
            let value = Int(part.drop { $0 != ":" }.dropFirst())
        else { throw ScenarioFailure("no figure \(name) in \(text)") }
        return value
    }
}

/// What a player decoded of a stream: one line for every frame.
struct Performance: Equatable, CustomTestStringConvertible {
    let lines: [Substring]

    init(_ lines: [Substring]) { self.lines = lines }

    var testDescription: String { "\(lines.count) lines, last \(lines.last ?? "none")" }
}

/// Plays a stream directly, through the daemon, and through the daemon with the origin gone: the
/// three must be equal, and the last must not cause an origin request.
///
/// The second and third get the stream's URL in different forms, which are one entry for the
/// daemon. A player that reads only part of a title would see the rest as missing once the origin
/// is gone: with `keepsWhole` everything is stored before that.
func expectSamePerformance(
    of stream: Stream, keepsWhole: Bool = false, by play: (_ url: String) throws -> Performance
) throws {
    let stage = try Stage()
    let direct = try stage.playDirectly(stream, by: play)
    #expect(!direct.lines.isEmpty)
    stage.cdn.resetLog()

    #expect(try play(stage.through(stream)) == direct)
    let asked = try stage.figure("origin_requests_total")
    // A prefetch that was cancelled in the queue was counted and never sent.
    let probes = try stage.figure("origin_probes_total")
    #expect(asked + probes >= stage.cdn.requestCount() && stage.cdn.requestCount() > 0)

    if keepsWhole { try stage.keepWhole(stage.through(stream)) }
    let before = try stage.figure("origin_requests_total")
    stage.cdn.stop()
    #expect(try play(stage.asArgument(stream)) == direct)
    #expect(try stage.figure("origin_requests_total") == before)
}
