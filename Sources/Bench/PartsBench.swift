import HLS
import HTTP
import Posix
import Routing
import URISyntax

/// Times the pure parts: rewriting a playlist, parsing a request.
enum PartsBench {
    /// Rewrites media playlists of 1,000 and 20,000 segments with real handles.
    static func rewrite(_ options: BenchOptions, _ report: inout Report) throws {
        let base = try AbsoluteURL("https://cdn.example.com/vod/title/720p/index.m3u8")
        for (count, times) in [(1_000, 300), (20_000, 20)] {
            let body = playlist(segments: count)
            let session = SessionID(0x1234_5678_9ABC)
            var written = 0
            var rewriting = PlaylistRewriter.Options()
            rewriting.trustsMap = true
            let seconds = try fastest(options.times(times)) {
                var links: FolderLinks?
                written = try PlaylistRewriter.rewrite(
                    body, base: base, options: rewriting
                ) { reference, output in
                    guard case .joined(let url) = reference.place else { return false }
                    if links?.fit(url, reference.role, .first) != true {
                        links = FolderLinks(
                            prefix: [], role: reference.role, session: session, epoch: .first,
                            folder: url.folder)
                    }
                    links?.append(url, hasMap: reference.hasMap, to: &output)
                    return true
                }.bytes.count
            }
            guard written > body.count else { throw BenchError("the rewrite wrote too little") }
            report.add(
                "rewrite", "rewrite of a playlist, \(count) segments", seconds * 1e6, "us")
        }
    }

    /// Parses the same playlists into values, with and without their lines, and rewrites them with
    /// an identity map, which is how values were obtained before the parser existed.
    static func read(_ options: BenchOptions, _ report: inout Report) throws {
        let base = try AbsoluteURL("https://cdn.example.com/vod/title/720p/index.m3u8")
        for (count, times) in [(1_000, 300), (20_000, 20)] {
            let body = playlist(segments: count)
            let lists: [(name: String, read: () throws -> Int)] = [
                ("read of a playlist", { try Playlist(body, base: base).summary.segmentCount }),
                (
                    "read of a playlist without a base",
                    { try Playlist(body, base: nil).summary.segmentCount }
                ),
                (
                    "read of a playlist with its lines",
                    {
                        try Playlist(body, base: base, PlaylistReading(keepsLines: true))
                            .summary.segmentCount
                    }
                ),
                (
                    "rewrite that changes nothing",
                    {
                        try PlaylistRewriter.rewrite(body, base: base) { _, _ in false }
                            .summary.segmentCount
                    }
                ),
                (
                    "rewrite that collects references",
                    {
                        var references: [ResourceReference] = []
                        _ = try PlaylistRewriter.rewrite(body, base: base) { reference, _ in
                            references.append(reference)
                            return false
                        }
                        return references.count
                    }
                ),
            ]
            for list in lists {
                var found = 0
                let seconds = try fastest(options.times(times)) { found = try list.read() }
                guard found == count else { throw BenchError("\(list.name): \(found) segments") }
                report.add("read", "\(list.name), \(count) segments", seconds * 1e6, "us")
            }
        }
    }

    /// Parses the request that ffmpeg sends for a segment.
    static func parse(_ options: BenchOptions, _ report: inout Report) throws {
        let handle = String(repeating: "aHR0cHM6", count: 12)
        let request = Array(
            """
            GET /s/\(handle)/seg00042.ts HTTP/1.1\r
            User-Agent: Lavf/59.27.100\r
            Accept: */*\r
            Range: bytes=0-\r
            Connection: keep-alive\r
            Host: 127.0.0.1:9000\r
            Icy-MetaData: 1\r
            \r\n
            """.utf8)
        let batch = 1_000
        var fields = 0
        let seconds = try fastest(options.times(100)) {
            for _ in 0..<batch {
                var parser = RequestParser()
                guard case .head(let head, let consumed) = try parser.parse(request.span),
                    consumed == request.count
                else { throw BenchError("the request was not read whole") }
                fields += head.fields.contains(.range) ? 1 : 0
            }
        }
        guard fields > 0 else { throw BenchError("the request lost a field") }
        report.add("parse", "parse of a request head", seconds / Double(batch) * 1e9, "ns")
    }

    private static func playlist(segments: Int) -> [UInt8] {
        var text = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-PLAYLIST-TYPE:VOD\n"
        for index in 0..<segments {
            text += "#EXTINF:6.000,\nsegment-\(index).ts?token=abcdef\n"
        }
        return Array((text + "#EXT-X-ENDLIST\n").utf8)
    }

    /// Seconds of the fastest of several runs: the one least disturbed by other processes.
    private static func fastest(_ times: Int, _ work: () throws -> Void) rethrows -> Double {
        var best = Double.infinity
        for _ in 0..<max(3, times) {
            let start = Monotonic.now()
            try work()
            best = min(best, (Monotonic.now() - start).inSeconds)
        }
        return best
    }
}
