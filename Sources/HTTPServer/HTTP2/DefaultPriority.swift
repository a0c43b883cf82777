// The order of responses whose requests say nothing about it: pure.
import HTTP
import URISyntax

/// An urgency of RFC 9218 section 4.1, 0 the first and 7 the last, for a response.
///
/// A player waits for a playlist before it can ask for anything else, for a key and an
/// initialisation section before it can decode, and for a part at the live edge; a segment fills its
/// buffer.
enum DefaultPriority {
    static let playlist: UInt32 = 1
    static let short: UInt32 = 2
    static let usual: UInt32 = 3

    /// Content up to so many bytes is short: keys, initialisation sections, parts.
    static let shortLength: Int64 = 128 << 10

    /// The urgency by content type and length; nil length where it is not known yet.
    static func urgency(contentType: [UInt8]?, length: Int64?) -> UInt32 {
        if let contentType, isPlaylist(contentType) { return playlist }
        if let length, length <= shortLength { return short }
        return usual
    }

    private static func isPlaylist(_ type: [UInt8]) -> Bool {
        let known = ["application/vnd.apple.mpegurl", "application/x-mpegurl", "audio/mpegurl"]
        let name = type.prefix { $0 != ASCII.semicolon && $0 != ASCII.space }
        return known.contains { ASCII.equalIgnoringCase(name.span, $0.utf8.span) }
    }
}
