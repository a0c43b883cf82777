/// The URIs of one playlist that no player can or may open, and what became of them.
///
/// | named by | malformed | scheme that players open past the daemon |
/// |---|---|---|
/// | segment, part | a gap under a name that leads to the origin | the playlist is refused |
/// | EXT-X-STREAM-INF | the variant is left out | the playlist is refused |
/// | EXT-X-KEY, EXT-X-MAP, EXT-X-MEDIA | the playlist is refused | the playlist is refused |
/// | other tags | the attribute is left out, or the line where it needs the URI | the same |
package struct UnusableURIs: Sendable {
    /// Why the first ones are not usable, in the order of the list; at most
    /// `Diagnostic.maximumCount`.
    package private(set) var reasons: [PlaylistError] = []
    /// How many there are.
    package private(set) var count = 0
    /// The lines of malformed segment URIs.
    package private(set) var segmentLines: [Int] = []
    private var variantCount = 0

    package var isEmpty: Bool { count == 0 }

    mutating func add(_ reason: PlaylistError) {
        count += 1
        if reasons.count < Diagnostic.maximumCount { reasons.append(reason) }
    }

    mutating func addSegment(_ reason: PlaylistError, line: Int) {
        add(reason)
        segmentLines.append(line)
    }

    mutating func addVariant(_ reason: PlaylistError) {
        add(reason)
        variantCount += 1
    }

    /// Throws where nothing is left to play.
    func check(_ summary: PlaylistSummary) throws(PlaylistError) {
        guard let first = reasons.first else { return }
        let isAllSegments = summary.segmentCount > 0 && segmentLines.count == summary.segmentCount
        let isAllVariants = summary.variantCount == 0 && variantCount > 0
        if isAllSegments || isAllVariants { throw first }
    }
}

extension PlaylistError {
    /// Whether a single URI is malformed.
    var isMalformedURI: Bool {
        if case .badURI = self { return true }
        return false
    }

    /// Whether the error is about a single URI, and not about the playlist.
    var isUnusableURI: Bool {
        if case .forbiddenScheme = self { return true }
        return isMalformedURI
    }
}

extension Tag.Name {
    /// Whether players can play the list without what the tag names.
    var isOptional: Bool {
        switch self {
        case .streamInf, .key, .map, .media, .part, .inf: false
        default: true
        }
    }

    /// Whether the tag says nothing without its URI.
    var needsURI: Bool {
        switch self {
        case .dateRange, .sessionData: false
        default: true
        }
    }
}
