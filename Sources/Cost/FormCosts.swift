import HLS
import URISyntax

extension CostCase {
    private static let mediaLines = lines.filter { line in
        line.lines.contains("#EXTINF") || line.name.hasPrefix("date-ranges")
    }
    private static let multivariantLines = lines.filter { line in
        ["variant", "rendition", "i-frames", "session"].contains { line.name.hasPrefix($0) }
            || line.name == "malformed-variants"
    }

    /// Other forms of a playlist, and reports about it.
    static var forms: [CostCase] {
        lines.map { kind in
            CostCase(name: "outline \(kind.name)") { size in
                let body = playlist(kind.lines, size)
                return { _ = try? PlaylistOutline(body, base: base) }
            }
        }
            + mediaLines.map { kind in
                CostCase(name: "offline form of \(kind.name)") { size in
                    let body = playlist(kind.lines, size)
                    return {
                        guard let list = list(body) else { return }
                        var turn = 0
                        let stored = OfflineList(list) { _ in
                            turn += 1
                            return turn % 3 > 0
                        }
                        _ = OfflinePlaylist.cut(list, missing: stored.missing)
                    }
                }
            }
            + multivariantLines.map { kind in
                CostCase(name: "filter of \(kind.name)") { size in
                    // Renditions belong to somebody.
                    let body = playlist(kind.lines + "\n" + lines[18].lines, size)
                    return {
                        guard let list = list(body) else { return }
                        var turn = 0
                        _ = MultivariantFilter.filter(list) { _ in
                            turn += 1
                            return turn % 3 > 0
                        }
                    }
                }
            }
            + mediaLines.map { kind in
                CostCase(name: "time shift of \(kind.name)") { size in
                    let head = "#EXT-X-TARGETDURATION:6\n"
                    let first = playlist(kind.lines, size, head: head)
                    let second = playlist(
                        kind.lines, size, head: head + "#EXT-X-MEDIA-SEQUENCE:\(size / 2)\n")
                    return { shift(first, second) }
                }
            }
    }

    private static func list(_ body: [UInt8]) -> Playlist? {
        try? Playlist(body, base: base, PlaylistReading(keepsLines: true))
    }

    private static func shift(_ first: [UInt8], _ second: [UInt8]) {
        var shift = TimeShift()
        _ = try? shift.merge(first, base: base)
        _ = try? shift.merge(second, base: base)
        _ = shift.playlist { $0.number % 3 > 0 }
        let restored = try? TimeShift(snapshot: shift.snapshot())
        precondition(restored?.segments.count == shift.segments.count, "a snapshot lost segments")
        shift.trim(to: .seconds(60))
    }

    /// JSON of playlists: name, what stands before and behind, and the item.
    private static let documents: [(name: String, start: String, item: String, end: String)] = [
        ("assets", "{\"ASSETS\":[", "{\"URI\":\"a%\"}", "]}"),
        ("assets on lines", "{\"ASSETS\":[\n", "{\"URI\":\"a%\"}\n", "]}"),
        ("unusable assets", "{\"ASSETS\":[\n", "{\"URI\":\"file:%\"}\n", "]}"),
        ("members", "{", "\"m%\":\"a\\u0041\"", "}"),
        (
            "clones", "{\"PATHWAY-CLONES\":[",
            "{\"URI-REPLACEMENT\":{\"HOST\":\"h%\",\"PARAMS\":{}}}", "]}"
        ),
        (
            "parameters", "{\"PATHWAY-CLONES\":[{\"URI-REPLACEMENT\":{\"HOST\":\"h\",\"PARAMS\":{",
            "\"p%\":\"v\"", "}}}]}"
        ),
        ("hosts", "{\"PATHWAY-CLONES\":[{\"URI-REPLACEMENT\":{", "\"HOST\":\"h%\"", "}}]}"),
        (
            "variant URIs", "{\"PATHWAY-CLONES\":[{\"URI-REPLACEMENT\":{\"PER-VARIANT-URIS\":{",
            "\"v%\":\"/a\"", "}}}]}"
        ),
        ("schedules", "{\"DATERANGES\":[", "{\"X-ASSET-URI\":\"a%\",\"X-URI\":\"b\"}", "]}"),
        ("images", "[{\"images\":[", "{\"url\":\"%.jpg\"}", "]}]"),
    ]

    static var json: [CostCase] {
        documents.map { document in
            CostCase(name: "JSON of \(document.name)") { size in
                let items = (0..<size).map { document.item.replacing("%", with: String($0)) }
                let body = Array(
                    (document.start + items.joined(separator: ",") + document.end).utf8)
                return {
                    _ = JSONRewriter.isDocumentOfHLS(body)
                    _ = try? JSONRewriter.rewrite(
                        body, base: base, host: { ("h", $0) },
                        map: { reference, output in
                            output.append(contentsOf: reference.url.bytes)
                            return true
                        })
                }
            }
        }
    }
}
