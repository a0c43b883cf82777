import URISyntax

/// Manifests of DASH and Smooth Streaming, which lists of channels name beside playlists of HLS.
///
/// Players resolve the relative URLs in them, so that a link, whose path is the daemon's own, leads
/// to nothing else.
package enum ForeignManifest {
    private static let endings = [".mpd", ".ism/manifest", ".isml/manifest"].map { Array($0.utf8) }
    private static let longest = 14

    /// True if the path of a URL or reference names one, whatever follows it behind `?`, `#`, `|`
    /// or `%7C`.
    package static func isNamed(by url: ArraySlice<UInt8>) -> Bool {
        let path = url.prefix { $0 != 0x3F && $0 != 0x23 && $0 != 0x7C }
        if hasEnding(path) { return true }
        return PercentCoding.firstBar(in: path).map { hasEnding(path[..<$0]) } ?? false
    }

    private static func hasEnding(_ path: ArraySlice<UInt8>) -> Bool {
        let end = path.suffix(longest).map { ASCII.lowercased($0) }
        return endings.contains { end.suffix($0.count).elementsEqual($0) }
    }
}
