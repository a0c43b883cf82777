// What in a playlist single players stumble over; pure.
package import HLS
package import URISyntax

/// Judges playlists for players that read them direct; Sluice mends most of it.
package enum PlayerFindings {
    /// - Parameters:
    ///   - body: the playlist as it came.
    ///   - outline: what was read of it.
    ///   - url: where it came from in the end.
    /// - Returns: a warning for each obstacle.
    package static func of(
        _ body: [UInt8], _ outline: PlaylistOutline, at url: AbsoluteURL
    ) -> [Finding] {
        let uris = outline.entries.compactMap(\.url) + outline.segments.map(\.url)
        let encryption = Set(outline.encryption.map(\.method))
        let systems = Set(outline.encryption.map(\.keyFormat)).subtracting(["identity"])
        var found: [Finding] = []
        func warn(_ isFound: Bool, _ text: String, _ advice: String) {
            if isFound { found.append(.warning("players", text, advice)) }
        }
        let mended = "through Sluice they play"
        warn(
            body.starts(with: [0xEF, 0xBB, 0xBF]), "a byte order mark before #EXTM3U",
            "most players refuse that; \(mended)")
        warn(
            hasBlankAfterURI(body), "blanks after a URI", "VLC and GStreamer fail; \(mended)")
        warn(
            outline.features.contains("variables"), "EXT-X-DEFINE",
            "only players in browsers know it; with the others play it through Sluice")
        warn(
            uris.contains { !hasExtension($0) }, "URIs without a file extension",
            "ffmpeg, mpv and Kodi judge by it; \(mended)")
        warn(
            url.scheme == .https && uris.contains { $0.scheme == .http },
            "an https playlist names http URLs",
            "browsers refuse that as mixed content; \(mended)")
        warn(
            encryption.contains { $0.hasPrefix("SAMPLE-AES") }, "SAMPLE-AES encryption",
            "VLC and many others do not decrypt it; Sluice passes it on as it is")
        warn(
            !systems.isEmpty, "keys of \(systems.sorted().joined(separator: ", "))",
            "only players with that key system decrypt it; Sluice passes it on as it is")
        warn(
            Set(uris.map(\.asciiHost)).union([url.asciiHost]).count > 1,
            "it names several hosts",
            "pages need CORS headers and cookies of each; through Sluice it is one")
        return found
    }

    private static func hasBlankAfterURI(_ body: [UInt8]) -> Bool {
        body.split(separator: 0x0A).contains { line in
            let line = line.last == 0x0D ? line.dropLast() : line
            guard let last = line.last, line.first != UInt8(ascii: "#") else { return false }
            return (last == 0x20 || last == 0x09) && line.contains { $0 > 0x20 }
        }
    }

    private static func hasExtension(_ url: AbsoluteURL) -> Bool {
        guard let dot = url.lastPathSegment.lastIndex(of: ".") else { return false }
        let count = url.lastPathSegment[dot...].utf8.count - 1
        return (1...5).contains(count)
    }
}
