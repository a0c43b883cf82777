// The stored share of a title: seconds and per cent, from the resources that its playlists need and
// the stored bytes.
package import HLS
package import Store

/// The stored bytes of one resource.
package struct KeptBytes: Sendable, Equatable {
    /// True if every byte is stored.
    package var isComplete: Bool
    /// The length of the whole resource in bytes; nil if unknown.
    package var total: Int64?
    /// The stored ranges; may be empty for a complete resource.
    package var spans = SpanSet()

    /// Returns the stored share of a range, or of the whole resource: 0...1.
    package func share(of range: Range<Int64>?) -> Double {
        if isComplete {
            // The origin may have had less than its playlist names.
            guard let range, let total else { return 1 }
            return range.lowerBound < total || range.isEmpty ? 1 : 0
        }
        guard let wanted = range ?? total.map({ 0..<$0 }), !wanted.isEmpty else { return 0 }
        let missing = spans.holes(in: wanted).reduce(Int64(0)) { $0 + Int64($1.count) }
        return 1 - Double(missing) / Double(wanted.count)
    }
}

/// One variant stream, rendition or file of a title, and its stored share.
package struct TitleVariant: Sendable, Equatable {
    /// The kind of stream or rendition.
    package enum Kind: String, Sendable {
        case variant
        case video
        case audio
        case subtitles
        case iFrames = "i-frames"
        case images
        /// A media file without a playlist.
        case file
    }

    package var kind: Kind
    package var label: String
    /// Bits per second; nil if no playlist has it.
    package var bandwidth: Int64?
    /// Playing time of all segments in the stored playlist; nil without a stored playlist, and for
    /// a file.
    package var seconds: Double?
    /// Stored playing time; a partially stored segment counts by its bytes.
    package var keptSeconds = 0.0
    /// The stored share, 0...1: of the seconds, or of the bytes for a file.
    package var share = 0.0
    /// True if everything is stored that playing to the end requires, including initialization
    /// sections and keys.
    package var isWhole = false
    package var isLive = false
    /// Set if its keys cannot be stored, so that it is never whole.
    package var protection: ContentProtection?

    /// Whole per cents, 0...100; 100 only if whole.
    package var percent: Int64 {
        isWhole ? 100 : min(99, Int64((max(0, share) * 100).rounded(.down)))
    }

    /// Creates a variant whose playlist is not stored.
    init(unknown child: TitleChild) {
        self.init(kind: child.kind, label: child.label, bandwidth: child.bandwidth)
    }

    private init(kind: Kind, label: String, bandwidth: Int64?) {
        self.kind = kind
        self.label = label
        self.bandwidth = bandwidth
    }

    /// Creates a file without a playlist.
    init(file: KeptBytes, label: String) {
        self.init(kind: .file, label: label, bandwidth: nil)
        share = file.share(of: nil)
        isWhole = file.isComplete
    }

    /// Creates a variant whose playlist is stored.
    ///
    /// - Parameters:
    ///   - child: its entry in the multivariant playlist.
    ///   - list: its playlist.
    ///   - kept: returns the stored bytes of a piece's resource; nil if there are none.
    init(
        _ child: TitleChild, list: TitleList, kept: (TitlePiece) -> KeptBytes?
    ) {
        self.init(kind: child.kind, label: child.label, bandwidth: child.bandwidth)
        var all = 0.0
        var isMissing = false
        for piece in list.pieces {
            let share = kept(piece)?.share(of: piece.range) ?? 0
            all += piece.seconds
            keptSeconds += piece.seconds * share
            if share < 1 { isMissing = true }
        }
        seconds = all
        isLive = list.isLive
        protection = list.protection
        isWhole = !isMissing && !list.pieces.isEmpty && list.protection == nil
        share = all > 0 ? keptSeconds / all : isWhole ? 1 : 0
    }
}
