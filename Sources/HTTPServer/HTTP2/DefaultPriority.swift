// The priority of responses whose requests state none: pure.
import HTTP
import URISyntax

/// The urgency of a response (RFC 9218 section 4.1), from 0 (highest) to 7.
///
/// A player waits for a playlist before it can request anything else, for a key and an
/// initialization section before it can decode, and for a part at the live edge; a segment fills
/// its buffer.
enum DefaultPriority {
    static let playlist: UInt32 = 1
    static let short: UInt32 = 2
    static let usual: UInt32 = 3

    /// Content up to this length in bytes is short: keys, initialization sections, parts.
    static let shortLength: Int64 = 128 << 10

    /// Returns the urgency by content type and length; `length` is nil if unknown.
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
