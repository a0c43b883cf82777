import URISyntax

/// Distinguishes playlists from other bodies by their first bytes, whatever type the origin
/// declares.
package enum PlaylistDetector {
    package enum Verdict: Hashable, Sendable {
        /// `#EXTM3U`, possibly after blank lines and comments.
        case playlist
        /// HTML or XML.
        case markup
        case other
        /// Undecidable so far; more bytes may decide.
        case undecided
    }

    /// The number of first bytes that are enough to classify a body.
    package static let prefixLength = 1024

    static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    static let signature: [UInt8] = Array("#EXTM3U".utf8)

    /// Returns the length of the byte order mark that a text begins with; 0 without one.
    static func markLength(of text: [UInt8]) -> Int {
        text.starts(with: byteOrderMark) ? byteOrderMark.count : 0
    }

    package static func looksLikePlaylist(_ prefix: [UInt8]) -> Bool {
        inspect(prefix) == .playlist
    }

    package static func looksLikeMarkup(_ prefix: [UInt8]) -> Bool { inspect(prefix) == .markup }

    /// Classifies a body by its first bytes.
    package static func inspect(_ prefix: [UInt8]) -> Verdict {
        var rest = prefix[...]
        if rest.starts(with: byteOrderMark) {
            rest = rest.dropFirst(byteOrderMark.count)
        } else if !rest.isEmpty, byteOrderMark.starts(with: rest) {
            return .undecided
        }
        while true {
            rest = rest.drop { ASCII.isBlank($0) || $0 == 0x0A || $0 == 0x0D }
            guard let first = rest.first else { return .undecided }
            if first == 0x3C { return .markup }
            guard first == 0x23 else { return .other }
            if isSignature(rest) { return .playlist }
            if rest.count < signature.count, signature.starts(with: rest) { return .undecided }
            rest = rest.drop { $0 != 0x0A && $0 != 0x0D }
        }
    }

    /// True if a line is `#EXTM3U`, alone or followed by a byte that cannot continue the name.
    static func isSignature(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.starts(with: signature) else { return false }
        guard let next = line.dropFirst(signature.count).first else { return true }
        return !ASCII.isAlphanumeric(next) && next != 0x2D
    }
}
