// What people call a title: what its playlist says, else the telling parts of its URL.
package import HLS
import HTTP
package import URISyntax

/// Names of titles.
package enum TitleName {
    /// Longer names are cut; people read them in columns.
    private static let longest = 80

    /// A comment of ours that says what a recording is called.
    package static let comment = "#SLUICE-TITLE:"

    /// What a recording's playlist is called; nil for any other.
    package static func recorded(in playlist: [UInt8]) -> String? {
        let start = Array(comment.utf8)
        let lines = playlist.prefix(1_024).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D })
        guard let line = lines.prefix(3).first(where: { $0.starts(with: start) }) else {
            return nil
        }
        let name = cleaned(String(decoding: line.dropFirst(start.count), as: UTF8.self))
        return name.isEmpty ? nil : name
    }

    /// The title that a multivariant playlist says, in EXT-X-SESSION-DATA (RFC 8216, 4.3.4.4); nil
    /// where it says none.
    package static func announced(in list: MultivariantPlaylist) -> String? {
        for data in list.sessionData {
            guard let id = data.dataID.map(ASCII.lowercased),
                id == "title" || id.hasSuffix(".title"), let value = data.value
            else { continue }
            let name = cleaned(value)
            if !name.isEmpty { return name }
        }
        return nil
    }

    /// The last telling parts of a URL's path; the host where there is none.
    ///
    /// `https://h/vod/show/s1e2/master.m3u8` is `show/s1e2`: names that every stream has tell
    /// nothing, and two parts tell an episode from that of another show.
    package static func derived(from url: AbsoluteURL) -> String {
        var parts = url.path.split(separator: "/").map { cleaned(PercentCoding.decode($0)) }
            .filter { !$0.isEmpty }
        guard let file = parts.popLast() else { return url.host }
        let (stem, ending) = split(file)
        let isFile = !["m3u8", "m3u", "php", "aspx", "ism", "mpd", ""].contains(ending)
        // Parts before the file, without those that sites put before everything.
        var telling = parts.filter { !isGeneric($0) }.suffix(isGeneric(stem) ? 2 : 1)
        if !isGeneric(stem) { telling.append(isFile ? file : stem) }
        if telling.isEmpty { telling = [url.host] + parts.suffix(1) + [stem] }
        return String(telling.joined(separator: "/").prefix(longest))
    }

    private static func split(_ file: String) -> (stem: String, ending: String) {
        guard let dot = file.lastIndex(of: "."), dot != file.startIndex else { return (file, "") }
        return (
            String(file[..<dot]), ASCII.lowercased(String(file[file.index(after: dot)...]))
        )
    }

    /// Words that stand in most streams' URLs.
    private static let generic: Set<String> = [
        "master", "index", "main", "manifest", "playlist", "media", "variant", "stream", "video",
        "prog_index", "chunklist", "hls", "vod", "live", "play", "out", "v1", "v2", "v3", "cmaf",
        "fmp4", "ts", "assets", "content", "public", "static", "files", "default", "unencrypted",
    ]

    private static func isGeneric(_ part: String) -> Bool {
        let lower = ASCII.lowercased(part)
        if lower.contains("=") || generic.contains(lower) { return true }
        // `.ism` and `.smil` stand in the path of what is packaged on request.
        let (stem, _) = split(lower)
        return generic.contains(stem)
    }

    /// Without control characters, and blanks at the ends; cut to a length that fits a line.
    private static func cleaned(_ text: String) -> String {
        let visible = text.unicodeScalars.map { scalar -> Character in
            scalar.properties.generalCategory == .control
                || scalar.properties.generalCategory == .format ? " " : Character(scalar)
        }
        let trimmed = visible.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        return String(String(trimmed).prefix(longest))
    }
}
