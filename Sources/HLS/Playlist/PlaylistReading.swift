/// The context in which a playlist is parsed: limits, inherited variables and hints from its
/// parent.
package struct PlaylistReading: Sendable {
    package var limits = PlaylistLimits.standard
    /// Variables of the multivariant playlist, for EXT-X-DEFINE:IMPORT.
    package var inheritedVariables: [String: String] = [:]
    /// True if the multivariant playlist has been parsed, so that `inheritedVariables` is complete.
    package var knowsMultivariant = false
    /// True if the multivariant playlist names this playlist as subtitles: segments that are not
    /// fragmented MP4 and whose names have no extension of a segment are WebVTT.
    package var isSubtitles = false
    /// True if the full playlist has an EXT-X-MAP; a delta update may omit that line.
    package var assumesMap = false
    /// The ranges of earlier segments, in ascending order: the first range of a delta update may
    /// continue that of a segment which it skips.
    package var rangesBefore: [RangeEnd] = []
    /// True if `Playlist.lines` is filled, at about 50 bytes a line.
    package var keepsLines = false

    package init(
        limits: PlaylistLimits = .standard, variables: [String: String] = [:],
        keepsLines: Bool = false
    ) {
        self.limits = limits
        inheritedVariables = variables
        self.keepsLines = keepsLines
    }
}
