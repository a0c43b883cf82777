package import URISyntax

/// Makes a media playlist tell the truth when only some of its segments are kept.
///
/// Works on the origin's text; the result is to be rewritten like any other. Missing segments go, a
/// discontinuity stands in their place and the list ends: times after a hole move to the front.
/// Parts, hints, reports and server control go, since nobody produces anything any more.
package enum OfflinePlaylist {
    package struct Result: Sendable {
        package let bytes: [UInt8]
        /// Segments that are listed and present.
        package let presentCount: Int
        /// The segments that are not present, with those that the origin announced as gaps.
        package let missing: [ResourceReference]

        /// Whether there is anything to play.
        package var isPlayable: Bool { presentCount > 0 }
    }

    /// Changes `body`, which came from `base`.
    ///
    /// - Parameters:
    ///   - body: a whole media playlist; a delta update gives a result without segments.
    ///   - base: its URL after redirects.
    ///   - isPresent: asked of each segment, key and initialization section; a segment without its
    ///     key or initialization section counts as missing. Asked once for each line.
    ///
    /// - Returns: the list with an EXT-X-ENDLIST, and what is missing in it.
    /// - Throws: what a rewrite would throw.
    ///
    /// Never blocks by itself.
    package static func make(
        _ body: [UInt8], base: AbsoluteURL, isPresent: (ResourceReference) -> Bool
    ) throws(PlaylistError) -> Result {
        var options = PlaylistRewriter.Options()
        options.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false
        }
        guard !list.summary.isSkipDelta, list.summary.kind == .media else {
            return Result(bytes: body, presentCount: 0, missing: [])
        }
        let segments = OfflineList(list.references, list.summary, isPresent: isPresent).segments
        let missing = Set(segments.filter { !$0.isKept }.map(\.line))
        return Result(
            bytes: try cut(body, list, missing: missing, borrowed: [:]),
            presentCount: list.summary.segmentCount - missing.count,
            missing: list.references.filter { $0.tag == .inf && missing.contains($0.line) })
    }

    /// Leaves out the segments whose URIs are malformed, with a discontinuity in their place.
    ///
    /// For lists that have ended; in others the numbers of segments must stay. Some players stop at
    /// EXT-X-GAP, all play a list without the segment.
    ///
    /// - Parameters:
    ///   - lines: the lines of those URIs.
    ///   - body: a media playlist that has ended.
    ///   - base: its URL after redirects.
    ///   - options: those of the rewrite that found them.
    /// - Returns: the list without those segments.
    /// - Throws: what a rewrite would throw.
    package static func leavingOut(
        segments lines: [Int], of body: [UInt8], base: AbsoluteURL,
        options: PlaylistRewriter.Options
    ) throws(PlaylistError) -> [UInt8] {
        var options = options
        options.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false
        }
        return try cut(
            body, list, missing: Set(lines), borrowed: [:], limits: options.limits)
    }

    /// Cuts a list to what is kept.
    ///
    /// - Parameters:
    ///   - body: a whole media playlist.
    ///   - list: what a rewrite of it found, with its references.
    ///   - missing: the lines of the URIs of segments that go.
    ///   - borrowed: what stands in for other segments, by the lines of their URIs; it follows
    ///     without a discontinuity, since renditions of one title share their time line.
    ///   - limits: what a playlist may cost.
    /// - Returns: the list, with an EXT-X-ENDLIST.
    /// - Throws: what a rewrite would throw.
    package static func cut(
        _ body: [UInt8], _ list: RewrittenPlaylist, missing: Set<Int>,
        borrowed: [Int: AbsoluteURL], limits: PlaylistLimits = .standard
    ) throws(PlaylistError) -> [UInt8] {
        let text = try PlaylistText(body, limits: limits)
        var writer = OfflineWriter(text, list, missing: missing, borrowed: borrowed)
        return writer.shortened()
    }
}
