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

    /// Leaves in a list what is present.
    ///
    /// - Parameters:
    ///   - list: a whole media playlist, read with its lines; another one gives a result without
    ///     segments.
    ///   - isPresent: asked of each segment, key and initialization section; a segment without its
    ///     key or initialization section counts as missing. Asked once for each line.
    ///
    /// - Returns: the list with an EXT-X-ENDLIST, and what is missing in it.
    package static func make(
        _ list: Playlist, isPresent: (ResourceReference) -> Bool
    ) -> Result {
        guard !list.summary.isSkipDelta, let media = list.media else {
            return Result(bytes: list.source, presentCount: 0, missing: [])
        }
        let segments = OfflineList(list, isPresent: isPresent).segments
        let missing = Set(segments.filter { !$0.isKept }.map(\.line))
        return Result(
            bytes: cut(list, missing: missing, borrowed: [:]),
            presentCount: list.summary.segmentCount - missing.count,
            missing: media.segments.filter { missing.contains($0.line) }.compactMap(\.reference))
    }

    /// Cuts a list to what is kept.
    ///
    /// Leaves out segments with malformed URIs as well, in lists that have ended; in others the
    /// numbers of segments must stay. Some players stop at EXT-X-GAP, all play a list without the
    /// segment.
    ///
    /// - Parameters:
    ///   - list: a whole media playlist, read with its lines.
    ///   - missing: the lines of the URIs of segments that go.
    ///   - borrowed: what stands in for other segments, by the lines of their URIs; it follows
    ///     without a discontinuity, since renditions of one title share their time line.
    /// - Returns: the list, with an EXT-X-ENDLIST.
    package static func cut(
        _ list: Playlist, missing: Set<Int>, borrowed: [Int: AbsoluteURL] = [:]
    ) -> [UInt8] {
        guard let media = list.media else { return list.source }
        var writer = OfflineWriter(list, media, missing: missing, borrowed: borrowed)
        return writer.shortened()
    }
}
