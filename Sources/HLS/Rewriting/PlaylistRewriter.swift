package import URISyntax

/// Rewrites playlists so that every URI in them leads to the daemon.
///
/// Takes one pass over the bytes, the same that parses a `Playlist`, without making values. Lines
/// without URIs are copied unchanged, including unknown tags and comments. Line ends become LF, a
/// byte order mark and blanks around URI lines are removed, and lines before `#EXTM3U` are moved
/// after it: origins send all of these and players fail on them.
package enum PlaylistRewriter {
    /// Writes the replacement of a URI: appends it to the output and returns true.
    ///
    /// Returning false leaves the URI unchanged. The replacement must be a URI reference; quotes
    /// and line ends in it are escaped, so that it cannot end the string or line.
    package typealias ReferenceMap =
        (_ reference: ResourceReference, _ output: inout [UInt8]) -> Bool

    /// Rewrites a JSON document that stands in the playlist itself, in a `data:` URI; its own URIs
    /// cannot be relative to it.
    package typealias DocumentMap =
        (_ document: [UInt8]) throws(PlaylistError) -> RewrittenJSON

    /// The options of a rewrite.
    package struct Options: Sendable {
        /// The context in which the playlist is parsed.
        package var reading = PlaylistReading()
        /// True if omitted offsets of byte ranges are written: a range without an offset belongs to
        /// the same URI as the previous range (8216bis 4.4.4.2), and the map may change URIs.
        package var writesOffsets = false
        /// True if replacements never contain quotes or control bytes, so that they need not be
        /// scanned.
        package var trustsMap = false

        package init(_ reading: PlaylistReading = PlaylistReading()) {
            self.reading = reading
        }
    }

    /// Rewrites `body`, a playlist that came from `base`: its URL after redirects.
    ///
    /// `body` is decoded text without content coding. Never blocks; about 0.2 µs a line.
    package static func rewrite(
        _ body: [UInt8], base: AbsoluteURL, options: Options = Options(), map: ReferenceMap
    ) throws(PlaylistError) -> RewrittenPlaylist {
        try rewrite(body, base: base, options: options, documents: nil, map: map)
    }

    /// Rewrites a playlist for players, who read the steering manifest, asset lists and schedules
    /// in its `data:` URIs without the daemon; those that cannot be read are withheld.
    ///
    /// With nil for `documents` these URIs pass unchanged.
    package static func rewrite(
        _ body: [UInt8], base: AbsoluteURL, options: Options = Options(),
        documents: DocumentMap?, map: ReferenceMap
    ) throws(PlaylistError) -> RewrittenPlaylist {
        guard body.count <= options.reading.limits.byteCount else {
            throw .tooLarge(byteCount: body.count, limit: options.reading.limits.byteCount)
        }
        var pass = PlaylistPass(
            body, base: base, options: options.reading, writesOffsets: options.writesOffsets,
            documents: documents, to: PlaylistWriter(body, options))
        try pass.run(map)
        return RewrittenPlaylist(pass)
    }
}

/// A rewritten playlist and the facts collected during the pass.
package struct RewrittenPlaylist: Sendable {
    package let bytes: [UInt8]
    package let summary: PlaylistSummary
    /// The variables in force at the end, for the playlists that this one names.
    package let definedVariables: [String: String]
    /// The URIs that are withheld from players.
    package let unusable: UnusableURIs
    /// True if documents in its URIs were rewritten.
    package let hasDocuments: Bool
    /// The playlists that this one names, at most `mostChildren`.
    package let children: [AbsoluteURL]
    /// The playlists of subtitles that a multivariant playlist names, at most
    /// `mostSubtitleLists`.
    package let subtitleLists: [AbsoluteURL]

    static let mostChildren = 1_024
    /// Titles for all countries have a hundred.
    static let mostSubtitleLists = 512

    init(_ pass: consuming PlaylistPass<PlaylistWriter>) {
        summary = pass.summary
        definedVariables = pass.resolver.variables.values
        unusable = pass.unusable
        hasDocuments = pass.hasDocuments
        children = pass.children
        subtitleLists = pass.subtitleLists
        bytes = pass.sink.finish()
    }
}
