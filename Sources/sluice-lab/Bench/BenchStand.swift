// The test bench of `sluice-lab bench`: the sample CDN behind a shaped link, and a daemon in front.
import CommandSupport
import ArgumentParser
import FoundationEssentials
import Glibc
import Posix

/// A program started by the test bench; ended with this object.
final class BenchProgram {
    private let child: ChildProgram
    /// The base URL from its first line: `http://127.0.0.1:8080`.
    let base: String

    /// Starts a program and waits for a line with a URL; blocks up to 20 s.
    ///
    /// - Throws: `ExitCode` after having said what was wrong.
    init(_ arguments: [String]) throws {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw commandFailure("no pipe could be made") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        let started = try? ChildProgram(arguments, output: ends[1])
        close(ends[1])
        guard let started else { throw commandFailure("\(arguments[0]) cannot be started") }
        child = started
        guard let base = Self.readBase(ends[0]) else {
            child.end(SIGKILL, within: 10)
            throw commandFailure("\(arguments[0]) did not say where it listens")
        }
        self.base = base
    }

    deinit {
        child.end(SIGKILL, within: 10)
    }

    private static func readBase(_ pipe: CInt) -> String? {
        var text = ""
        var piece = [UInt8](repeating: 0, count: 1_024)
        var wait = pollfd(fd: pipe, events: Int16(POLLIN), revents: 0)
        while poll(&wait, 1, 20_000) > 0 {
            let count = read(pipe, &piece, piece.count)
            guard count > 0 else { return nil }
            text += String(decoding: piece[..<count], as: UTF8.self)
            guard text.contains("\n"), let start = text.firstRange(of: "http://") else { continue }
            return String(text[start.lowerBound...].prefix { !$0.isNewline && $0 != " " })
                .trimmingSlash
        }
        return nil
    }
}

extension String {
    fileprivate var trimmingSlash: String { hasSuffix("/") ? String(dropLast()) : self }
}

/// CDN, link and titles; each measurement may start its own daemon.
final class BenchStand {
    let cdn: BenchProgram
    private let daemonPath: String
    private let folder: String
    private var caches = 0

    /// - Parameter program: the sample CDN; nil for the installed or built one.
    /// - Throws: `ExitCode` after having said what was wrong.
    init(program: String?) throws {
        let own =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let beside = own.split(separator: "/").dropLast().joined(separator: "/")
        daemonPath = "/\(beside)/sluice"
        guard access(daemonPath, X_OK) == 0 else {
            throw commandFailure("no daemon to measure: there is no \(daemonPath)")
        }
        // Beside this program in a build; otherwise where `make install` puts it.
        let places =
            program.map { [$0] } ?? [
                "/\(beside)/sample-cdn", "/\(beside)/../libexec/sluice/sample-cdn",
            ]
        guard let path = places.first(where: { access($0, X_OK) == 0 }) else {
            throw commandFailure(
                """
                the sample CDN is at none of \(places.joined(separator: ", ")): `make install` puts it \
                there; or build the product sample-cdn, and name it with --sample-cdn
                """)
        }
        folder = try makeTemporaryFolder("sluice-bench")
        try makeFolder(folder + "/cdn")
        cdn = try BenchProgram([path, "--folder", folder + "/cdn"])
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Puts another link in front of the CDN.
    ///
    /// - Parameters:
    ///   - profile: its name.
    ///   - speed: the factor by which it is faster than its profile, for times divided by the same
    ///     factor.
    /// - Throws: `ExitCode` after having said what was wrong.
    func shape(_ profile: String, speed: Double = 1) throws {
        guard let link = Self.link(profile) else {
            throw commandFailure("there is no link '\(profile)'; take 3g, 4g, wifi, fibre or burst")
        }
        var query = "profile=\(profile)"
        if speed != 1 {
            query += "&shared=\(Int(Double(link.shared) * speed))"
            query += "&single=\(Int(Double(link.single) * speed))"
            let delay = Int((Double(link.delay) / speed).rounded())
            query += "&connect=\(delay)&latency=\(delay)"
            if profile == "burst" {
                query += "&every=\(Int(8_000 / speed))&outage=\(Int(1_500 / speed))"
            }
        }
        let text = try AdminClient(base: cdn.base, token: nil).send("GET", "/__shape?" + query)
        guard text.contains("\"ok\"") else {
            throw commandFailure("the sample CDN is of another version: \(text)")
        }
    }

    /// Bytes per second of a link and of one connection on it, milliseconds of a round trip, and
    /// bytes of a segment for its viewers.
    static func link(_ profile: String) -> (shared: Int, single: Int, delay: Int, segment: Int)? {
        switch profile {
        case "3g": (200_000, 125_000, 300, 60_000)
        case "4g", "burst": (875_000, 560_000, 100, 180_000)
        case "wifi": (15_500_000, 6_000_000, 60, 1_000_000)
        case "fibre": (62_500_000, 31_250_000, 8, 2_000_000)
        default: nil
        }
    }

    /// The CDN's counters since the last call.
    func figures() throws -> CDNFigures {
        let client = AdminClient(base: cdn.base, token: nil)
        let figures: CDNFigures = try decodeJSON(try client.send("GET", "/__count"))
        _ = try client.send("GET", "/__reset")
        return figures
    }

    struct CDNFigures: Decodable {
        let requests: Int
        let bytes: Int64
        let peak: Int
    }

    /// Starts a daemon with an empty cache; it ends with the returned object.
    func daemon(_ arguments: [String]) throws -> BenchProgram {
        caches += 1
        return try BenchProgram(
            [
                daemonPath, "serve", "--port", "0", "--allow-private", "--log-level", "critical",
                "--cache-dir", "\(folder)/cache-\(caches)",
            ] + arguments)
    }

    /// Creates a title and returns its URL at the CDN.
    func title(_ name: String, _ shape: TitleShape) throws -> String {
        let place = folder + "/cdn/" + name
        try makeFolder(place)
        let target = Int(shape.seconds.rounded(.up))
        var media = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:\(target)\n"
        media += "#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-MAP:URI=\"/bytes/\(name)-init/1200\"\n"
        if shape.hasKey { media += "#EXT-X-KEY:METHOD=AES-128,URI=\"/bytes/\(name)-key/16\"\n" }
        for number in 0..<shape.segments {
            media += "#EXTINF:\(shape.seconds),\n/bytes/\(name)-\(number)/\(shape.bytes)\n"
        }
        let rate = Int(Double(shape.bytes) * 8 / shape.seconds)
        let list =
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=\(rate),RESOLUTION=1280x720\nmedia.m3u8\n"
        for (file, text) in [("media.m3u8", media + "#EXT-X-ENDLIST\n"), ("master.m3u8", list)] {
            guard OutputFile.write(text, to: "\(place)/\(file)") else {
                throw commandFailure("\(place) cannot be written to")
            }
        }
        return "\(cdn.base)/\(name)/master.m3u8"
    }

    struct TitleShape {
        var segments: Int
        var bytes: Int
        var seconds: Double
        /// Whether its segments are encrypted, so that the player needs a key first.
        var hasKey = false
    }
}

extension Monotonic {
    /// Seconds since another time.
    func seconds(since start: Monotonic) -> Double { (self - start).inSeconds }
}
