package import URISyntax

/// Makes a media playlist accurate when only some of its segments are kept.
///
/// Works on the origin's text; the result is to be rewritten like any other. Missing segments are
/// replaced by a discontinuity and the playlist ends, so that playback after a hole comes earlier.
/// A live playlist begins behind its last hole instead, since its segments must keep their numbers.
/// Parts, hints, reports and server control are removed, since no new segments are produced.
package enum OfflinePlaylist {
    package struct Result: Sendable {
        package let bytes: [UInt8]
        /// The number of segments that are listed and present.
        package let presentCount: Int
        /// The segments that are not listed: they are not present, the origin marked them as gaps,
        /// or they are before the last hole of a live playlist.
        package let missing: [ResourceReference]

        /// True if there is anything to play.
        package var isPlayable: Bool { presentCount > 0 }
    }

    /// Reduces a playlist to its present segments.
    ///
    /// - Parameters:
    ///   - list: a full media playlist, parsed with its lines; for any other the result has no
    ///     segments.
    ///   - isPresent: called once for each line of a segment, key or initialization section; a
    ///     segment without its key or initialization section counts as missing.
    ///
    /// - Returns: the playlist with an EXT-X-ENDLIST, and its missing segments.
    package static func make(
        _ list: Playlist, isPresent: (ResourceReference) -> Bool
    ) -> Result {
        guard !list.summary.isSkipDelta, let media = list.media else {
            return Result(bytes: list.source, presentCount: 0, missing: [])
        }
        let segments = OfflineList(list, isPresent: isPresent).segments
        let missing = removed(Set(segments.filter { !$0.isKept }.map(\.line)), from: list, media)
        return Result(
            bytes: cut(list, missing: missing, borrowed: [:]),
            presentCount: list.summary.segmentCount - missing.count,
            missing: media.segments.filter { missing.contains($0.line) }.compactMap(\.reference))
    }

    /// Cuts a playlist to the segments that are kept.
    ///
    /// Also removes segments with malformed URIs from playlists that have ended; in others the
    /// numbers of segments must stay. Some players stop at EXT-X-GAP; all play a playlist without
    /// the segment.
    ///
    /// The playlist ends early where keys with written IVs reach `OfflineWriter.keyByteLimit`.
    ///
    /// - Parameters:
    ///   - list: a full media playlist, parsed with its lines.
    ///   - missing: the lines of the URIs of segments to remove; from a live playlist also what is
    ///     before the last of them that a present one follows.
    ///   - borrowed: replacements for other segments, by the lines of their URIs; they follow
    ///     without a discontinuity, since renditions of one title share their time line.
    /// - Returns: the playlist, with an EXT-X-ENDLIST.
    package static func cut(
        _ list: Playlist, missing: Set<Int>, borrowed: [Int: AbsoluteURL] = [:]
    ) -> [UInt8] {
        guard let media = list.media else { return list.source }
        let missing = removed(missing, from: list, media)
        var writer = OfflineWriter(list, media, missing: missing, borrowed: borrowed)
        return writer.shortened()
    }

    /// Returns the lines of the segments to remove: in a live playlist everything up to the last
    /// missing segment that a present one follows.
    ///
    /// Links into a live playlist contain the numbers of its segments (decision 13). Without the
    /// segments in a hole, each later link would name another segment than before.
    private static func removed(
        _ missing: Set<Int>, from list: Playlist, _ media: MediaPlaylist
    ) -> Set<Int> {
        guard list.summary.isLive,
            let last = media.segments.lastIndex(where: { !missing.contains($0.line) }),
            let hole = media.segments[..<last].lastIndex(where: { missing.contains($0.line) })
        else { return missing }
        return missing.union(media.segments[...hole].map(\.line))
    }
}
