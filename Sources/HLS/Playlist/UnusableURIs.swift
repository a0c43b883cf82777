/// The URIs of one playlist that no player can or may open, and their effect.
///
/// | named by | malformed | scheme that bypasses the daemon |
/// |---|---|---|
/// | segment, part | becomes a gap at a substitute URL of the origin | the playlist is rejected |
/// | entry of a channel list | is left out with its lines | the same |
/// | EXT-X-STREAM-INF | the variant is removed | the playlist is rejected |
/// | EXT-X-KEY, EXT-X-MAP, EXT-X-MEDIA | the playlist is rejected | the playlist is rejected |
/// | other tags | the attribute is removed, or the line if it needs the URI | the same |
///
/// `Tag.Loss` tells it for each tag.
package struct UnusableURIs: Sendable {
    /// The most reasons, so that a hostile playlist cannot fill a log.
    private static let mostReasons = 50

    /// The reasons for the first ones, in the order of the list; at most `mostReasons`.
    package private(set) var reasons: [PlaylistError] = []
    /// The number of all unusable URIs.
    package private(set) var count = 0
    /// The lines of malformed segment URIs.
    package private(set) var segmentLines: [Int] = []
    private var variantCount = 0
    private var entryCount = 0

    package var isEmpty: Bool { count == 0 }

    mutating func add(_ reason: PlaylistError) {
        count += 1
        if reasons.count < Self.mostReasons { reasons.append(reason) }
    }

    mutating func addSegment(_ reason: PlaylistError, line: Int) {
        add(reason)
        segmentLines.append(line)
    }

    mutating func addVariant(_ reason: PlaylistError) {
        add(reason)
        variantCount += 1
    }

    mutating func addEntry(_ reason: PlaylistError) {
        add(reason)
        entryCount += 1
    }

    /// Throws the first reason if all segments, all variants or all channels are unusable.
    func check(_ summary: PlaylistSummary) throws(PlaylistError) {
        guard let first = reasons.first else { return }
        let isAllSegments = summary.segmentCount > 0 && segmentLines.count == summary.segmentCount
        let isAllVariants = summary.variantCount == 0 && variantCount > 0
        let isAllEntries = summary.segmentCount == 0 && entryCount > 0
        if isAllSegments || isAllVariants || isAllEntries { throw first }
    }
}

extension PlaylistError {
    /// True if the error is one malformed URI.
    var isMalformedURI: Bool {
        if case .badURI = self { return true }
        return false
    }

    /// True if the error concerns a single URI and not the whole playlist.
    var isUnusableURI: Bool {
        if case .forbiddenScheme = self { return true }
        return isMalformedURI
    }
}
