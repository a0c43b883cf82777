/// The two kinds of playlist (RFC 8216, 4).
package enum PlaylistKind: String, Hashable, Sendable {
    case multivariant
    case media
}

/// The properties of a whole playlist that freshness, prefetch and logs need.
package struct PlaylistSummary: Hashable, Sendable {
    /// EXT-X-PLAYLIST-TYPE.
    package enum PlaylistType: String, Hashable, Sendable {
        case vod = "VOD"
        case event = "EVENT"
    }

    /// `media` if no tag tells the kind.
    package internal(set) var kind = PlaylistKind.media
    /// EXT-X-VERSION; 1 without it.
    package internal(set) var version = 1
    package internal(set) var playlistType: PlaylistType?
    package internal(set) var hasEndList = false
    package internal(set) var targetDuration: Duration?
    /// PART-TARGET of EXT-X-PART-INF.
    package internal(set) var partTarget: Duration?
    /// CAN-SKIP-UNTIL of EXT-X-SERVER-CONTROL: the origin offers delta updates.
    package internal(set) var canSkipUntil: Duration?
    /// The number of the first segment of the list, counting skipped ones.
    package internal(set) var mediaSequence = 0
    /// EXT-X-DISCONTINUITY-SEQUENCE; nil without it.
    package internal(set) var discontinuitySequence: Int?
    /// The number of listed segments, without skipped ones.
    package internal(set) var segmentCount = 0
    /// SKIPPED-SEGMENTS of EXT-X-SKIP.
    package internal(set) var skippedSegmentCount = 0
    /// True for a delta update, which is never used as the full playlist.
    package internal(set) var isSkipDelta = false
    /// True for a delta update in which a range without an offset may continue that of a skipped
    /// segment, which is not known.
    package internal(set) var guessesRanges = false
    /// The number of segments marked as missing.
    package internal(set) var gapCount = 0
    /// The number of partial segments of the segment in progress.
    package internal(set) var trailingPartCount = 0
    /// The sum of the listed segments' durations.
    package internal(set) var totalDuration = Duration.zero
    package internal(set) var isIFramesOnly = false
    /// The number of variant streams, without I-frame and image streams.
    package internal(set) var variantCount = 0
    /// True with a known tag besides EXTM3U and EXTINF, which other lists in M3U have too.
    var hasTagsOfHLS = false
    /// The number of lines of the origin's playlist.
    package internal(set) var lineCount = 0

    package init() {}

    /// True if the playlist still grows: a media playlist without EXT-X-ENDLIST.
    package var isLive: Bool { kind == .media && !hasEndList }

    /// True for a list of channels or files, which shares the syntax with HLS and has none of its
    /// tags.
    package var isChannelList: Bool { !hasTagsOfHLS }

    /// True if the playlist has EXT-X-DISCONTINUITY-SEQUENCE.
    package var startsWithDiscontinuitySequence: Bool { discontinuitySequence != nil }

    /// The media sequence number of the next segment to be appended.
    package var nextMediaSequence: Int { mediaSequence + skippedSegmentCount + segmentCount }
}
