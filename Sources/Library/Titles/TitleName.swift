// The display name of a title: from its playlist, otherwise from the significant parts of its URL.
package import HLS
import HTTP
package import URISyntax

/// Derives the display names of titles.
package enum TitleName {
    /// The most characters of a name, since names are shown in columns.
    private static let longest = 80

    /// The private comment with the name of a recording.
    package static let comment = "#SLUICE-TITLE:"

    /// Returns the name in a recording's playlist; nil for any other playlist.
    package static func recorded(in playlist: [UInt8]) -> String? {
        let start = Array(comment.utf8)
        let lines = playlist.prefix(1_024).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D })
        guard let line = lines.prefix(3).first(where: { $0.starts(with: start) }) else {
            return nil
        }
        let name = cleaned(String(decoding: line.dropFirst(start.count), as: UTF8.self))
        return name.isEmpty ? nil : name
    }

    /// The most titles of a playlist that are read, since variables can make each of them long.
    private static let mostAnnounced = 64

    /// Returns the title in a multivariant playlist's EXT-X-SESSION-DATA (RFC 8216, 4.3.4.4); nil
    /// without one.
    ///
    /// Names are shown and saved, the query of an entry is not: a name with a variable from there
    /// stays as written.
    package static func announced(in list: Playlist) -> String? {
        var variables: [String: String]?
        var readCount = 0
        for data in list.multivariant?.sessionData ?? [] where readCount < mostAnnounced {
            guard let id = data.dataID.map(ASCII.lowercased),
                id == "title" || id.hasSuffix(".title")
            else { continue }
            let known = variables ?? list.writtenVariables
            variables = known
            guard let value = list.value(of: data, with: known) else { continue }
            readCount += 1
            let name = cleaned(value)
            if !name.isEmpty { return name }
        }
        return nil
    }

    /// Returns the last significant segments of a URL's path; the host if there are none.
    ///
    /// `https://h/vod/show/s1e2/master.m3u8` gives `show/s1e2`: generic names are left out, and two
    /// segments distinguish an episode from that of another show. Values of `name=value`, as in
    /// signed paths, are left out.
    package static func derived(from url: AbsoluteURL) -> String {
        var parts = url.path.split(separator: "/")
            .map { cleaned(String(withoutSecrets(PercentCoding.decode($0)))) }
            .filter { !$0.isEmpty }
        guard let file = parts.popLast() else { return url.host }
        let (stem, ending) = split(file)
        let isFile = !["m3u8", "m3u", "php", "aspx", "ism", "mpd", ""].contains(ending)
        // Path segments before the file, without generic ones.
        var telling = parts.filter { !isGeneric($0) }.suffix(isGeneric(stem) ? 2 : 1)
        if !isGeneric(stem) { telling.append(isFile ? file : stem) }
        if telling.isEmpty { telling = [url.host] + parts.suffix(1) + [stem] }
        return String(telling.joined(separator: "/").prefix(longest))
    }

    /// Returns what stands in a path segment before a query that was encoded, or before `name=value`;
    /// of `sea.mp4;session=1`, the file.
    private static func withoutSecrets(_ part: String) -> Substring {
        // By scalars: a mark with an accent is another character.
        guard let mark = part.unicodeScalars.firstIndex(where: { $0 == "=" || $0 == "?" }) else {
            return part[...]
        }
        let front = part[..<mark]
        guard part.unicodeScalars[mark] == "=" else { return front }
        return front.lastIndex { ";,&~!".contains($0) }.map { front[..<$0] } ?? ""
    }

    /// The shortest value of a URL that a name may not have: as short as an access token can be.
    private static let shortestSecret = 8

    /// Returns the name that an earlier version saved for a title, or the derived one if the saved
    /// name shows a secret of the title's URL.
    ///
    /// Names were once made with variables from the query and with signatures from the path.
    package static func saved(_ name: String, of url: AbsoluteURL) -> String {
        let shows = url.secrets.contains { secret in
            guard secret.count >= shortestSecret else { return false }
            // The end of a long name may be missing, and the rest of a value with it.
            return name.contains(secret)
                || (name.count >= longest
                    && (shortestSecret..<min(secret.count, longest)).contains {
                        name.hasSuffix(secret.prefix($0))
                    })
        }
        return shows ? derived(from: url) : name
    }

    private static func split(_ file: String) -> (stem: String, ending: String) {
        guard let dot = file.lastIndex(of: "."), dot != file.startIndex else { return (file, "") }
        return (
            String(file[..<dot]), ASCII.lowercased(String(file[file.index(after: dot)...]))
        )
    }

    /// Names that occur in the URLs of most streams.
    private static let generic: Set<String> = [
        "master", "index", "main", "manifest", "playlist", "media", "variant", "stream", "video",
        "prog_index", "chunklist", "hls", "vod", "live", "play", "out", "v1", "v2", "v3", "cmaf",
        "fmp4", "ts", "assets", "content", "public", "static", "files", "default", "unencrypted",
    ]

    private static func isGeneric(_ part: String) -> Bool {
        let lower = ASCII.lowercased(part)
        if generic.contains(lower) { return true }
        // `.ism` and `.smil` occur in the paths of streams that are packaged on request.
        let (stem, _) = split(lower)
        return generic.contains(stem)
    }

    /// Replaces control characters, trims blanks and limits the length.
    private static func cleaned(_ text: String) -> String {
        let visible = text.unicodeScalars.map { scalar -> Character in
            scalar.properties.generalCategory == .control
                || scalar.properties.generalCategory == .format ? " " : Character(scalar)
        }
        let trimmed = visible.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        return String(String(trimmed).prefix(longest))
    }
}
