package import URISyntax

/// The URI that a list has in place of a segment that is not kept; a request for it is to be
/// answered with an empty body.
package enum SegmentPlaceholder {
    /// Hosts below `invalid` never exist (RFC 2606, 2).
    private static let host = "missing.invalid"

    /// Returns the URI that is written for a segment that was never seen.
    static func uri(_ number: Int, isFragment: Bool) -> [UInt8] {
        Array("http://\(host)/\(number).\(isFragment ? "m4s" : "ts")".utf8)
    }

    /// Returns the URI that is written for a segment: that of one that was seen has the extension
    /// of its own URI, since players compare the resources of one number across reloads.
    static func uri(of segment: TimeShiftSegment, isFragment: Bool) -> [UInt8] {
        guard !segment.isPlaceholder, let url = segment.url else {
            return uri(segment.number, isFragment: isFragment)
        }
        let name = url.bytes[url.lastPathSegmentRange]
        let kind = name.lastIndex(of: 0x2E).map { name[$0...] } ?? []
        guard kind.dropFirst().allSatisfy({ ASCII.isAlphanumeric($0) }) else {
            return uri(segment.number, isFragment: isFragment)
        }
        return Array("http://\(host)/\(segment.number)".utf8) + kind
    }

    /// True if a list uses the URL in place of a segment.
    package static func isUsed(as url: AbsoluteURL) -> Bool { url.hasHost(host) }
}
