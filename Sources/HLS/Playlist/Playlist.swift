package import URISyntax

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
