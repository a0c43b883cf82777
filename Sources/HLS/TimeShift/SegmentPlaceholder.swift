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

    /// Returns the URI that is written for a segment that is not kept.
    ///
    /// Players compare the resources of one number across reloads. The URI thus depends on the
    /// segment alone, not on which of those before it are kept: a segment that was seen has the
    /// extension of its own URI, one that was not seen keeps the URI that it was made with.
    static func uri(of segment: TimeShiftSegment) -> [UInt8] {
        if segment.isPlaceholder { return segment.uri }
        let name = segment.url.map { $0.bytes[$0.lastPathSegmentRange] } ?? []
        let kind = name.lastIndex(of: 0x2E).map { name[$0...] } ?? []
        guard segment.url != nil, kind.dropFirst().allSatisfy({ ASCII.isAlphanumeric($0) }) else {
            return uri(segment.number, isFragment: segment.context.map != nil)
        }
        return Array("http://\(host)/\(segment.number)".utf8) + kind
    }

    /// True if a list uses the URL in place of a segment.
    package static func isUsed(as url: AbsoluteURL) -> Bool { url.hasHost(host) }
}
