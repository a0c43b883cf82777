package import URISyntax

/// Rewrites playlists so that every URI in them leads back to the daemon.
///
/// One pass over the bytes, the same that reads a `Playlist`; no values are made. Lines without URIs are copied as they are, unknown
/// tags and comments included. Line ends become LF, a byte order mark and blanks around URI lines
/// go, lines before `#EXTM3U` move behind it: origins send all of these and players fail on them.
package enum PlaylistRewriter {
    /// Says what to write in place of a URI: appends it to the output and returns true.
    ///
    /// Returning false leaves the URI as it was. What is appended must be a URI reference; quotes
    /// and line ends in it are escaped, so that it cannot break out of its place.
    package typealias ReferenceMap =
        (_ reference: ResourceReference, _ output: inout [UInt8]) -> Bool

    /// What a rewrite knows beyond the playlist itself.
    package struct Options: Sendable {
        /// What is known of the playlist beyond its text.
        package var reading = PlaylistReading()
        /// Whether byte ranges that continue the one before get their offset: a range without one
        /// belongs to the same URI as the range before (8216bis 4.4.4.2), which the map may change.
        package var writesOffsets = false
        /// Whether what the map appends holds no quotes and no control bytes, so that it need not
        /// be looked through.
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
        guard body.count <= options.reading.limits.byteCount else {
            throw .tooLarge(byteCount: body.count, limit: options.reading.limits.byteCount)
        }
        var pass = PlaylistPass(
            body, base: base, options: options.reading, writesOffsets: options.writesOffsets,
            to: PlaylistWriter(body, options))
        try pass.run(map)
        return RewrittenPlaylist(pass)
    }

    /// Rewrites `body` with a map that gives texts; nil leaves a URI as it was.
    package static func rewrite(
        _ body: [UInt8], base: AbsoluteURL, options: Options = Options(),
        replacing map: (ResourceReference) -> String?
    ) throws(PlaylistError) -> RewrittenPlaylist {
        try rewrite(body, base: base, options: options) { reference, output in
            guard let text = map(reference) else { return false }
            output.append(contentsOf: text.utf8)
            return true
        }
    }
}

/// A playlist ready for the player, and what was learnt on the way.
package struct RewrittenPlaylist: Sendable {
    package let bytes: [UInt8]
    package let summary: PlaylistSummary
    /// At most `Diagnostic.maximumCount` oddities.
    package let diagnostics: [Diagnostic]
    /// The variables in force at the end, for the playlists that this one names.
    package let definedVariables: [String: String]
    /// The URIs that players are not given.
    package let unusable: UnusableURIs

    init(_ pass: consuming PlaylistPass<PlaylistWriter>) {
        summary = pass.summary
        diagnostics = pass.diagnostics
        definedVariables = pass.variables.values
        unusable = pass.unusable
        bytes = pass.sink.finish()
    }
}
