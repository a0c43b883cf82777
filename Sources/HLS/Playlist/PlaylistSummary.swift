/// The two kinds of playlist (RFC 8216, 4).
package enum PlaylistKind: String, Hashable, Sendable {
    case multivariant
    case media
}

/// What freshness, prefetch and logs need to know about a playlist as a whole.
package struct PlaylistSummary: Hashable, Sendable {
    /// EXT-X-PLAYLIST-TYPE.
    package enum PlaylistType: String, Hashable, Sendable {
        case vod = "VOD"
        case event = "EVENT"
    }

    /// Media where no tag tells.
    package internal(set) var kind = PlaylistKind.media
    /// EXT-X-VERSION; 1 where there is none.
    package internal(set) var version = 1
    package internal(set) var playlistType: PlaylistType?
    package internal(set) var hasEndList = false
    package internal(set) var targetDuration: Duration?
    /// PART-TARGET of EXT-X-PART-INF.
    package internal(set) var partTarget: Duration?
    /// CAN-BLOCK-RELOAD of EXT-X-SERVER-CONTROL.
    package internal(set) var canBlockReload = false
    /// CAN-SKIP-UNTIL of EXT-X-SERVER-CONTROL: the origin gives delta updates.
    package internal(set) var canSkipUntil: Duration?
    package internal(set) var holdBack: Duration?
    package internal(set) var partHoldBack: Duration?
    /// Number of the first segment of the list, skipped ones included.
    package internal(set) var mediaSequence = 0
    /// EXT-X-DISCONTINUITY-SEQUENCE; nil where the list does not carry it.
    package internal(set) var discontinuitySequence: Int?
    /// Segments that are listed; skipped ones are not.
    package internal(set) var segmentCount = 0
    /// SKIPPED-SEGMENTS of EXT-X-SKIP.
    package internal(set) var skippedSegmentCount = 0
    /// Whether this is a delta update, which never stands for the full list.
    package internal(set) var isSkipDelta = false
    /// Segments announced as missing.
    package internal(set) var gapCount = 0
    /// Partial segments of the segment that is not complete yet.
    package internal(set) var trailingPartCount = 0
    /// The sum of the listed segments' durations.
    package internal(set) var totalDuration = Duration.zero
    package internal(set) var isIFramesOnly = false
    /// Variant streams, without I-frame and image streams.
    package internal(set) var variantCount = 0
    /// Lines of the origin's playlist.
    package internal(set) var lineCount = 0

    package init() {}

    /// Whether the list goes on growing: a media playlist without EXT-X-ENDLIST.
    package var isLive: Bool { kind == .media && !hasEndList }

    /// Whether the list carries EXT-X-DISCONTINUITY-SEQUENCE.
    package var startsWithDiscontinuitySequence: Bool { discontinuitySequence != nil }

    /// The number that the next segment to be added will have.
    package var nextMediaSequence: Int { mediaSequence + skippedSegmentCount + segmentCount }
}
