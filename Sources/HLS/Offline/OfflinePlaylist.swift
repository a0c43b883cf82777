package import URISyntax

/// Makes a media playlist tell the truth when only some of its segments are kept.
///
/// Works on the origin's text; the result is to be rewritten like any other. Parts, hints, reports
/// and server control go in both forms, since nobody produces anything any more.
package enum OfflinePlaylist {
    package enum Form: Hashable, Sendable {
        /// Every segment stays; those that are missing are marked with EXT-X-GAP. Times and
        /// sequence numbers are the origin's. For players that know the tag.
        case gaps
        /// Missing segments go, a discontinuity stands in their place and the list ends. Times
        /// after a hole move to the front. For players that do not know EXT-X-GAP.
        case shortened
    }

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
    ///   - form: how missing segments are shown.
    ///   - isPresent: asked of each segment, key and initialization section; a segment without its
    ///     key or initialization section counts as missing. Asked once for each line.
    ///
    /// - Returns: the list, in both forms with an EXT-X-ENDLIST, and what is missing in it.
    /// - Throws: what a rewrite would throw.
    ///
    /// Never blocks by itself.
    package static func make(
        _ body: [UInt8], base: AbsoluteURL, form: Form, isPresent: (ResourceReference) -> Bool
    ) throws(PlaylistError) -> Result {
        var options = PlaylistRewriter.Options()
        options.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false
        }
        guard !list.summary.isSkipDelta, list.summary.kind == .media else {
            return Result(bytes: body, presentCount: 0, missing: [])
        }
        let missing = missingSegments(list.references, isPresent)
        let text = try PlaylistText(body)
        var writer = OfflineWriter(text, list, missing: missing)
        let bytes = form == .gaps ? writer.marked() : writer.shortened()
        let segments = list.references.filter { $0.tag == .inf }
        return Result(
            bytes: bytes, presentCount: list.summary.segmentCount - missing.count,
            missing: segments.filter { missing.contains($0.line) })
    }

    /// Cuts a list to what is listed, in the form `shortened`.
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

    /// The lines of the URIs of segments that cannot be played.
    private static func missingSegments(
        _ references: [ResourceReference], _ isPresent: (ResourceReference) -> Bool
    ) -> Set<Int> {
        var absent: Set<AbsoluteURL> = []
        var missing: Set<Int> = []
        for reference in references {
            switch reference.tag {
            case .key, .map:
                if !isPresent(reference) { absent.insert(reference.url) }
            case .inf:
                let needs = [reference.keyURL, reference.mapURL].compactMap { $0 }
                if reference.isGap || needs.contains(where: absent.contains)
                    || !isPresent(reference)
                {
                    missing.insert(reference.line)
                }
            default: break
            }
        }
        return missing
    }
}
