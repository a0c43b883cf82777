package import URISyntax

/// Makes a media playlist accurate when only some of its segments are kept.
///
/// Works on the origin's text; the result is to be rewritten like any other. Missing segments are
/// replaced by a discontinuity and the playlist ends, so that playback after a hole comes earlier.
/// Parts, hints, reports and server control are removed, since no new segments are produced.
package enum OfflinePlaylist {
    /// A playlist without some of its segments.
    package struct Cut: Sendable {
        package let bytes: [UInt8]
        /// The first media sequence number that names another segment than in the whole playlist,
        /// since one before it was removed; nil if all segments keep their numbers.
        package let movedFrom: Int?
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
    ///   - missing: the lines of the URIs of segments to remove.
    ///   - borrowed: replacements for other segments, by the lines of their URIs; they follow
    ///     without a discontinuity, since renditions of one title share their time line.
    ///   - pieces: what is played of segments that are not listed as they are, by the lines of
    ///     their URIs; each piece is listed, with a discontinuity between stretches.
    ///   - omitted: the lines of further tags to leave out.
    /// - Returns: the playlist, with an EXT-X-ENDLIST.
    package static func cut(
        _ list: Playlist, missing: Set<Int>, borrowed: [Int: AbsoluteURL] = [:],
        pieces: [Int: [SegmentPiece]] = [:], omitting omitted: Set<Int> = []
    ) -> Cut {
        guard let media = list.media else { return Cut(bytes: list.source, movedFrom: nil) }
        var writer = OfflineWriter(
            list, media, missing: missing, borrowed: borrowed, pieces: pieces, omitted: omitted)
        let bytes = writer.shortened()
        return Cut(bytes: bytes, movedFrom: writer.movedFrom)
    }

    /// Returns the lines of the date ranges that need other resources: interstitials, schedules and
    /// preloads.
    package static func interstitialLines(_ media: MediaPlaylist) -> Set<Int> {
        Set(
            media.dateRanges.lazy.filter { $0.isInterstitial || !$0.references.isEmpty }
                .map(\.line))
    }
}
