// Playlists as players parse them.

/// A playlist as a player parses it.
struct PlayerList {
    struct Segment {
        let number: Int
        /// The path at the CDN, which the fixture writes as the segment's title.
        let path: String
        let url: String
        let isGap: Bool
    }

    private(set) var variants: [String] = []
    private(set) var segments: [Segment] = []
    private(set) var hasEnd = false

    /// Nil if the text is not a playlist.
    init?(_ body: [UInt8]) {
        let text = String(decoding: body, as: UTF8.self)
        guard text.hasPrefix("#EXTM3U") else { return nil }
        var number = 0
        var title: String?
        var (isVariant, isGap) = (false, false)
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("#EXT-X-MEDIA-SEQUENCE:") {
                number = Int(line.dropFirst(22)) ?? 0
            } else if line.hasPrefix("#EXTINF:") {
                title = segmentTitle(of: line)
            } else if line.hasPrefix("#EXT-X-STREAM-INF") {
                isVariant = true
            } else if line.hasPrefix("#EXT-X-GAP") {
                isGap = true
            } else if line.hasPrefix("#EXT-X-ENDLIST") {
                hasEnd = true
            } else if !line.hasPrefix("#") {
                if isVariant { variants.append(Self.target(line)) }
                if let title {
                    segments.append(
                        Segment(
                            number: number, path: title, url: Self.target(line), isGap: isGap))
                    number += 1
                }
                (title, isVariant, isGap) = (nil, false, false)
            }
        }
    }

    /// The request target of a URL of the daemon.
    static func target(_ line: some StringProtocol) -> String {
        guard line.hasPrefix("http://127.0.0.1"),
            let slash = line.dropFirst(7).firstIndex(of: "/")
        else { return String(line) }
        return String(line[slash...])
    }
}

/// The title of a segment, from its EXTINF; the fixture writes the segment's path there.
func segmentTitle(of line: Substring) -> String {
    line.split(separator: ",", maxSplits: 1).dropFirst().first.map(String.init) ?? ""
}

/// The value of an attribute of a line of a playlist, without its quotation marks.
func attribute(_ name: String, of line: Substring) -> String? {
    var rest = line.drop { $0 != ":" }.dropFirst()
    while !rest.isEmpty {
        let key = rest.prefix { $0 != "=" }
        rest = rest.dropFirst(key.count + 1)
        let value: Substring
        if rest.first == "\"" {
            value = rest.dropFirst().prefix { $0 != "\"" }
            rest = rest.dropFirst(value.count + 2)
        } else {
            value = rest.prefix { $0 != "," }
            rest = rest.dropFirst(value.count)
        }
        rest = rest.dropFirst()
        if key == name { return String(value) }
    }
    return nil
}
