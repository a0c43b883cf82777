import URISyntax

/// Tells playlists from other bodies by their first bytes, whatever type the origin declares.
package enum PlaylistDetector {
    package enum Verdict: Hashable, Sendable {
        /// `#EXTM3U` comes first; blank lines and comments before it are tolerated.
        case playlist
        /// HTML or XML.
        case markup
        case other
        /// So far there is nothing that tells; more bytes may.
        case undecided
    }

    /// This many bytes of a body are enough to judge it.
    package static let prefixLength = 1024

    static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    static let signature: [UInt8] = Array("#EXTM3U".utf8)

    package static func looksLikePlaylist(_ prefix: [UInt8]) -> Bool {
        inspect(prefix) == .playlist
    }

    package static func looksLikeMarkup(_ prefix: [UInt8]) -> Bool { inspect(prefix) == .markup }

    /// Judges the first bytes of a body.
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

    /// Whether a line is `#EXTM3U`, alone or followed by something that is no part of a name.
    static func isSignature(_ line: ArraySlice<UInt8>) -> Bool {
        guard line.starts(with: signature) else { return false }
        guard let next = line.dropFirst(signature.count).first else { return true }
        return !ASCII.isAlphanumeric(next) && next != 0x2D
    }
}
