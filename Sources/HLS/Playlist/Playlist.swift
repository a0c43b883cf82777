package import URISyntax

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

/// A parsed playlist (RFC 8216bis): typed values, each with its range in the text.
///
/// Parsed by the same pass that rewrites playlists, so that both agree on limits, variables,
/// numbers and URLs. Nothing is copied out of the text: values hold ranges of `source`.
package struct Playlist: Sendable {
    /// The text as the origin sent it.
    package let source: [UInt8]
    package let summary: PlaylistSummary
    /// The media playlist; nil for a multivariant one.
    package let media: MediaPlaylist?
    /// The multivariant playlist; nil for a media playlist.
    package let multivariant: MultivariantPlaylist?
    /// The attributes of each EXT-X-DEFINE.
    let definitions: [AttributeList]
    /// The variables in force at the end, for the playlists that this one names.
    package let definedVariables: [String: String]
    /// The URIs that are withheld from players.
    package let unusable: UnusableURIs
    /// All lines, line n at index n - 1; empty unless the reading keeps lines.
    package let lines: [PlaylistLine]
    let order: [PlaylistEntry]
    let others: [ResourceReference]
}

extension Playlist {
    /// Parses `body`, a playlist that came from `base`: its URL after redirects.
    ///
    /// Without a base no URI is resolved: values then have no references, variables are not
    /// replaced, and no URI can be rejected. `body` is decoded text without content coding. Never
    /// blocks. Throws the same errors as rewriting it.
    package init(
        _ body: [UInt8], base: AbsoluteURL?, _ reading: PlaylistReading = PlaylistReading()
    ) throws(PlaylistError) {
        guard body.count <= reading.limits.byteCount else {
            throw .tooLarge(byteCount: body.count, limit: reading.limits.byteCount)
        }
        var pass = PlaylistPass(body, base: base, options: reading, to: PlaylistCollector(body))
        try pass.run { _, _ in false }
        self = pass.sink.finish(pass.summary, pass.resolver.variables.values, pass.unusable)
    }

    package var kind: PlaylistKind { summary.kind }

    /// Returns the text of a range; bytes that are not UTF-8 appear as `%XX`.
    package func text(_ range: Range<Int>) -> String { PercentCoding.text(source[range]) }

    /// The variables in force whose values stand in the list itself.
    ///
    /// Those of QUERYPARAM and IMPORT are left out, and those made from them: the query of an entry
    /// may hold credentials of the client.
    package var writtenVariables: [String: String] {
        var written = Variables()
        for definition in definitions {
            guard let name = definition.text(of: "NAME"), let value = definedVariables[name],
                case .text = written.expand(definition.bytes(of: "VALUE") ?? [])
            else { continue }
            _ = written.define(name, as: value)
        }
        return written.values
    }

    /// Returns the VALUE of the list's session data with variables replaced (8216bis, 4.3); as
    /// written if one of them is not among `variables`, nil without a VALUE.
    package func value(
        of data: MultivariantPlaylist.SessionData, with variables: [String: String]
    ) -> String? {
        guard let value = data.attributes.bytes(of: "VALUE") else { return nil }
        guard Variables.mayOccur(in: value),
            case .text(let text) = Variables(values: variables).expand(value)
        else { return PercentCoding.text(value) }
        return PercentCoding.text(text[...])
    }
}

/// A value that names resources, by its kind and its index among those of that kind.
struct PlaylistEntry {
    enum Kind: UInt8 {
        case segment, part, hint, report, key, map, dateRange
        case variant, rendition, sessionData, sessionKey, steering
        case other

        /// The kind of playlist that has such values; nil for both.
        var playlist: PlaylistKind? {
            switch self {
            case .segment, .part, .hint, .report, .key, .map, .dateRange: .media
            case .variant, .rendition, .sessionData, .sessionKey, .steering: .multivariant
            case .other: nil
            }
        }
    }

    let kind: Kind
    let index: Int32

    init(_ kind: Kind, _ index: Int) {
        self.kind = kind
        self.index = Int32(truncatingIfNeeded: index)
    }

    /// Returns the resource that the value names; nil for a date range, which may name several.
    func reference(
        _ media: MediaPlaylist?, _ multivariant: MultivariantPlaylist?,
        _ others: [ResourceReference]
    ) -> ResourceReference? {
        let index = Int(self.index)
        return switch kind {
        case .segment: media?.segments[index].reference
        case .part: media?.parts[index].reference
        case .hint: media?.preloadHints[index].reference
        case .report: media?.renditionReports[index].reference
        case .key: media?.keys[index].reference
        case .map: media?.maps[index].reference
        case .dateRange: nil
        case .variant: multivariant?.variants[index].reference
        case .rendition: multivariant?.renditions[index].reference
        case .sessionData: multivariant?.sessionData[index].reference
        case .sessionKey: multivariant?.sessionKeys[index].reference
        case .steering: multivariant?.steering[index].reference
        case .other: others[index]
        }
    }
}

// MARK: References

extension Playlist {
    /// Calls `body` with each URI of the list that names a fetchable resource, in the order of the
    /// list.
    package func forEachReference(_ body: (ResourceReference) -> Void) {
        let (segments, dateRanges) = (media?.segments ?? [], media?.dateRanges ?? [])
        for entry in order {
            switch entry.kind {
            case .segment:
                // `Optional.map` would copy its argument.
                if let reference = segments[Int(entry.index)].reference { body(reference) }
            case .dateRange:
                for reference in dateRanges[Int(entry.index)].references { body(reference) }
            default:
                if let reference = entry.reference(media, multivariant, others) {
                    body(reference)
                }
            }
        }
    }

    /// Each URI of the list that names a fetchable resource, in the order of the list.
    package var references: [ResourceReference] {
        var references: [ResourceReference] = []
        references.reserveCapacity(order.count)
        forEachReference { references.append($0) }
        return references
    }
}
