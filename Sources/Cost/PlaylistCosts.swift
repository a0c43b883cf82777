import HLS
import URISyntax

extension CostCase {
    static let base: AbsoluteURL = {
        guard let url = try? AbsoluteURL("https://cdn.example.com/vod/a/list.m3u8?token=x") else {
            fatalError("the base is a URL")
        }
        return url
    }()

    /// A playlist that repeats the same lines `size` times, with `%` replaced by a number.
    static func playlist(_ lines: String, _ size: Int, head: String = "") -> [UInt8] {
        var body = Array("#EXTM3U\n\(head)".utf8)
        let pieces = (lines + "\n").utf8.split(separator: 0x25, omittingEmptySubsequences: false)
        for number in 0..<size {
            for (index, piece) in pieces.enumerated() {
                if index > 0 { body.append(contentsOf: String(number).utf8) }
                body.append(contentsOf: piece)
            }
        }
        return body
    }

    /// Kinds of lines that a playlist may repeat: name and lines.
    static let lines: [(name: String, lines: String)] = [
        ("segments", "#EXTINF:6,\nfolder%/s%.ts?token=%"),
        ("keys", "#EXT-X-KEY:METHOD=AES-128,KEYFORMAT=\"f%\",URI=\"k%\"\n#EXTINF:6,\ns%.ts"),
        ("maps", "#EXT-X-MAP:URI=\"i%.mp4\",BYTERANGE=\"9@%\"\n#EXTINF:6,\ns%.m4s"),
        ("byte-ranges", "#EXTINF:6,\n#EXT-X-BYTERANGE:10\ns.ts"),
        ("dates", "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n#EXTINF:6,\ns%.ts"),
        ("date-ranges", "#EXT-X-DATERANGE:ID=\"d%\",X-ASSET-URI=\"a%\"\n#EXTINF:6,\ns%.ts"),
        ("date-range-updates", "#EXT-X-DATERANGE:ID=\"d\",X-N=\"%\"\n#EXTINF:6,\ns%.ts"),
        ("date-ranges-at-once", "#EXT-X-DATERANGE:ID=\"d%\",X-ASSET-URI=\"a%\""),
        (
            "parts",
            "#EXT-X-PART:DURATION=1,URI=\"p%\"\n#EXT-X-PART:DURATION=1,URI=\"q%\"\n#EXTINF:2,\ns%.ts"
        ),
        ("hints", "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"p%\""),
        ("reports", "#EXT-X-RENDITION-REPORT:URI=\"r%\",LAST-MSN=%"),
        ("discontinuities", "#EXT-X-DISCONTINUITY\n#EXTINF:6,\ns%.ts"),
        ("gaps", "#EXT-X-GAP\n#EXTINF:6,\ns%.ts"),
        ("unknown-tags", "#EXT-X-UNKNOWN-%:URI=\"x%\"\n#EXTINF:6,\ns%.ts"),
        ("malformed-segments", "#EXTINF:6,\nhttp://a\\b/%\n#EXTINF:6,\ns%.ts"),
        ("unusable-attributes", "#EXT-X-DATERANGE:ID=\"d%\",X-ASSET-URI=\"file:%\",X-B=1"),
        ("unusable-lines", "#EXT-X-RENDITION-REPORT:URI=\"file:%\""),
        ("definitions", "#EXT-X-DEFINE:NAME=\"%\",VALUE=\"\""),
        ("variants", "#EXT-X-STREAM-INF:BANDWIDTH=%,AUDIO=\"a%\"\nv%.m3u8"),
        ("variants-of-one-group", "#EXT-X-STREAM-INF:BANDWIDTH=%,AUDIO=\"a\"\nv%.m3u8"),
        (
            "malformed-variants",
            "#EXT-X-STREAM-INF:BANDWIDTH=%\nhttp://a\\b/%\n#EXT-X-STREAM-INF:BANDWIDTH=%\nv%.m3u8"
        ),
        ("variant-tags", "#EXT-X-STREAM-INF:BANDWIDTH=%"),
        ("renditions", "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a%\",NAME=\"n%\",URI=\"r%.m3u8\""),
        (
            "renditions-of-one-group",
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n%\",URI=\"r%.m3u8\",DEFAULT=YES"
        ),
        ("i-frames", "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=%,URI=\"i%.m3u8\""),
        ("session-data", "#EXT-X-SESSION-DATA:DATA-ID=\"d%\",URI=\"j%\""),
        ("session-keys", "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"k%\",KEYFORMAT=\"f%\""),
        ("comments", "# %"),
    ]

    /// Long lines: name, start of the line, repeated item.
    static let longLines: [(name: String, start: String, item: String)] = [
        ("attributes", "#EXT-X-DATERANGE:ID=\"x\"", ",A=1"),
        ("uri-attributes", "#EXT-X-DATERANGE:ID=\"x\"", ",X-ASSET-URI=\"a\""),
        ("unusable-in-one-line", "#EXT-X-DATERANGE:ID=\"x\"", ",X-ASSET-URI=\"file:a\""),
        ("quotes", "#EXT-X-MEDIA:TYPE=AUDIO", ",\"\""), ("dots", "", "../"), ("slashes", "a", "/"),
        ("percent", "", "%41"), ("query", "a?", "b=c&"), ("braces", "", "{$"),
        ("blanks", "#EXTINF:1", " "),
    ]

    static var playlists: [CostCase] {
        (lines.map { kind in
            CostCase(name: "rewrite \(kind.name)") { size in
                let body = playlist(kind.lines, min(size, sizeLimit(kind.name)))
                return { rewrite(body) }
            }
        }
            + lines.map { kind in
                CostCase(name: "read \(kind.name)") { size in
                    let body = playlist(kind.lines, min(size, sizeLimit(kind.name)))
                    return { _ = try? Playlist(body, base: base).references.count }
                }
            }
            + longLines.map { kind in
                CostCase(name: "read one line of \(kind.name)") { size in
                    let line = kind.start + String(repeating: kind.item, count: size)
                    let body = Array("#EXTM3U\n\(line)\n".utf8)
                    return { _ = try? Playlist(body, base: base).references.count }
                }
            }
            + longLines.map { kind in
                CostCase(name: "rewrite one line of \(kind.name)") { size in
                    let line = kind.start + String(repeating: kind.item, count: size)
                    let body = Array("#EXTM3U\n\(line)\n".utf8)
                    return { rewrite(body) }
                }
            }
            + [
                CostCase(name: "rewrite definitions by query") { size in
                    let query = (0..<size).map { "\($0)=" }.joined(separator: "&")
                    let body = playlist("#EXT-X-DEFINE:QUERYPARAM=\"%\"", size)
                    let base = try? AbsoluteURL("https://cdn.example.com/l.m3u8?\(query)")
                    return {
                        guard let base else { return }
                        _ = try? Playlist(body, base: base)
                    }
                },
                CostCase(name: "rewrite references to variables") { size in
                    let head = "#EXT-X-DEFINE:NAME=\"v\",VALUE=\"0123456789\"\n"
                    let body = playlist("#EXTINF:6,\n{$v}/{$v}%.ts", size, head: head)
                    return { rewrite(body) }
                },
                CostCase(name: "rewrite comments before the signature") { size in
                    let body = Array(String(repeating: "# x\n", count: size).utf8)
                    return { rewrite(body + Array("#EXTM3U\n".utf8)) }
                },
            ])
    }

    /// The size limit of a case: names and values of variables have a separate limit.
    private static func sizeLimit(_ name: String) -> Int { name == "definitions" ? 8_000 : .max }

    private static func rewrite(_ body: [UInt8]) {
        var count = 0
        _ = try? PlaylistRewriter.rewrite(body, base: base) { reference, output in
            count += 1
            output.append(contentsOf: reference.url.bytes)
            return true
        }
    }
}
