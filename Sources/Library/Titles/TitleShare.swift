// How much of a title is kept: seconds and per cent, from what its playlists need and what is there.
package import HLS
package import Store

/// The present bytes of one stored resource.
package struct KeptBytes: Sendable, Equatable {
    /// True when every byte is there.
    package var isComplete: Bool
    /// The length of the whole resource in bytes; nil when it is not known.
    package var total: Int64?
    /// The present ranges; they need not be filled in for a complete resource.
    package var spans: SpanSet

    init(isComplete: Bool, total: Int64?, spans: SpanSet = SpanSet()) {
        self.isComplete = isComplete
        self.total = total
        self.spans = spans
    }

    /// The part of a range, or of the whole, that is present: 0...1.
    package func share(of range: Range<Int64>?) -> Double {
        if isComplete { return 1 }
        guard let wanted = range ?? total.map({ 0..<$0 }), !wanted.isEmpty else { return 0 }
        let missing = spans.holes(in: wanted).reduce(Int64(0)) { $0 + Int64($1.count) }
        return 1 - Double(missing) / Double(wanted.count)
    }
}

/// One variant stream, rendition or file of a title, and how much of it is kept.
package struct TitleVariant: Sendable, Equatable {
    /// What it is to a player.
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
    /// Bits per second; nil where no list says.
    package var bandwidth: Int64?
    /// Playing time of all that the stored list names; nil without a stored list, and for a file.
    package var seconds: Double?
    /// Playing time that is kept; a segment that is there in part counts by its bytes.
    package var keptSeconds: Double
    /// The kept share, 0...1: of the seconds, or for a file of the bytes.
    package var share: Double
    /// True when all is there that playing to the end takes, initialization sections and keys too.
    package var isWhole: Bool
    package var isLive: Bool
    /// Set where its keys are not to be had, so that it is never whole.
    package var protection: ContentProtection?

    /// Whole per cents, 0...100; 100 only for what is whole.
    package var percent: Int64 {
        isWhole ? 100 : min(99, Int64((max(0, share) * 100).rounded(.down)))
    }

    /// One of which not even the playlist is kept.
    init(unknown child: TitleChild) {
        self.init(kind: child.kind, label: child.label, bandwidth: child.bandwidth)
    }

    private init(kind: Kind, label: String, bandwidth: Int64?) {
        self.kind = kind
        self.label = label
        self.bandwidth = bandwidth
        keptSeconds = 0
        share = 0
        isWhole = false
        isLive = false
    }

    /// A file without playlist.
    init(file: KeptBytes, label: String) {
        self.init(kind: .file, label: label, bandwidth: nil)
        share = file.share(of: nil)
        isWhole = file.isComplete
    }

    /// One whose playlist is kept.
    ///
    /// - Parameters:
    ///   - child: what named it.
    ///   - list: its playlist.
    ///   - kept: what is there of a piece's resource; nil for nothing.
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
