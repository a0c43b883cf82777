// One stored playlist of a title, read for the resources that playing it again requires.
package import HLS
package import URISyntax

/// A resource, or a byte range of one, that playing requires.
package struct TitlePiece: Sendable, Hashable {
    /// A name, which a stream may use again for another resource.
    package struct Name: Sendable, Hashable {
        package let url: AbsoluteURL
        package let epoch: Epoch
    }

    package let name: Name
    /// The byte range; nil for the whole resource.
    package let range: Range<Int64>?
    /// Playing time; 0 for initialization sections and keys.
    package let seconds: Double

    package var url: AbsoluteURL { name.url }
}

/// A playlist that another one names.
package struct TitleChild: Sendable, Equatable {
    package let url: AbsoluteURL
    package let kind: TitleVariant.Kind
    /// A short description that distinguishes it from the others: resolution and bit rate, or name
    /// and language.
    package let label: String
    /// Bits per second; nil if the playlist lacks it.
    package let bandwidth: Int64?
}

/// The facts of a playlist that titles are computed from.
package struct TitleList: Sendable, Equatable {
    /// The variant streams and renditions of a multivariant playlist.
    package let children: [TitleChild]
    /// The resources that a media playlist requires, in its order; keys and initialization sections
    /// once.
    package let pieces: [TitlePiece]
    package let isMultivariant: Bool
    package let isLive: Bool
    /// True if the names of its pieces have the epochs of an ended recording's window.
    let hasWindow: Bool
    /// The title's name, if the playlist contains one.
    package let name: String?
    /// Variables for the playlists that this one names.
    package let variables: [String: String]
    /// The key systems that prevent playback of a media playlist with stored keys.
    package let protection: ContentProtection?

    /// Reads a playlist.
    ///
    /// - Parameters:
    ///   - list: the playlist.
    ///   - recorded: called for a playlist that may be that of an ended recording; returns its
    ///     window.
    init(_ list: Playlist, recorded: () -> TimeShift? = { nil }) {
        isMultivariant = list.kind == .multivariant
        isLive = list.summary.isLive
        variables = list.definedVariables
        name = TitleName.recorded(in: list.source) ?? TitleName.announced(in: list)
        children = list.multivariant.map(Self.children) ?? []
        let keys = list.media.map(ContentProtection.read)
        protection = keys?.protection
        let isEnded = list.summary.playlistType == .vod && list.summary.hasEndList
        let window = keys != nil && isEnded ? recorded() : nil
        hasWindow = window != nil
        pieces = keys.map { Self.pieces(of: list, without: $0.foreignKeyLines, window) } ?? []
    }

    // MARK: Media playlists

    private static func pieces(
        of list: Playlist, without foreignKeys: Set<Int>, _ window: TimeShift?
    ) -> [TitlePiece] {
        var pieces: [TitlePiece] = []
        var structure: Set<TitlePiece> = []
        func piece(_ reference: ResourceReference, seconds: Double) -> TitlePiece {
            let epoch = window?.nameEpoch(of: reference, for: reference.mediaSequence)
            return TitlePiece(
                name: TitlePiece.Name(url: reference.url, epoch: epoch ?? .first),
                range: reference.byteRange?.bytes, seconds: seconds)
        }
        list.forEachReference { reference in
            switch reference.role {
            // Only a key system can fetch it.
            case .key where foreignKeys.contains(reference.line): break
            case .key, .initialization:
                guard reference.tag != .preloadHint else { return }
                let needed = piece(reference, seconds: 0)
                // A section that is repeated after each discontinuity is listed once; those of one
                // file differ in their ranges.
                guard structure.insert(needed).inserted else { return }
                pieces.append(needed)
            case .segment, .subtitle, .image, .media:
                guard reference.tag == .inf, !reference.isGap else { return }
                let seconds = reference.duration.map { max(0, $0 / .seconds(1)) } ?? 0
                pieces.append(piece(reference, seconds: seconds))
            case .playlist, .part, .json: break
            }
        }
        return pieces
    }

    // MARK: Multivariant playlists

    private static func children(of list: MultivariantPlaylist) -> [TitleChild] {
        let variants = list.variants.compactMap { variant -> (line: Int, child: TitleChild)? in
            guard let reference = variant.reference else { return nil }
            let kind: TitleVariant.Kind =
                switch variant.kind {
                case .stream: .variant
                case .iFrames: .iFrames
                case .images: .images
                }
            let child = TitleChild(
                url: reference.url, kind: kind, label: label(variant),
                bandwidth: variant.bandwidth.map(Int64.init))
            return (reference.line, child)
        }
        let renditions = list.renditions.compactMap {
            rendition -> (line: Int, child: TitleChild)? in
            guard let reference = rendition.reference, let kind = kind(rendition) else {
                return nil
            }
            let child = TitleChild(
                url: reference.url, kind: kind, label: label(rendition), bandwidth: nil)
            return (reference.line, child)
        }
        var known: Set<AbsoluteURL> = []
        return (variants + renditions).sorted { $0.line < $1.line }.map(\.child)
            .filter { known.insert($0.url).inserted }
    }

    private static func kind(_ rendition: MultivariantPlaylist.Rendition) -> TitleVariant.Kind? {
        switch rendition.type {
        case "AUDIO": .audio
        case "VIDEO": .video
        case "SUBTITLES": .subtitles
        default: nil
        }
    }

    private static func label(_ variant: MultivariantPlaylist.Variant) -> String {
        let parts = [variant.resolutionText, variant.bandwidth.map(rate)].compactMap { $0 }
        return parts.isEmpty ? "stream" : parts.joined(separator: " ")
    }

    private static func label(_ rendition: MultivariantPlaylist.Rendition) -> String {
        switch (rendition.name, rendition.language) {
        case (let name?, let language?) where name != language: "\(name) (\(language))"
        case (let name?, _): name
        case (nil, let language?): language
        case (nil, nil): "rendition"
        }
    }

    /// `2.4 Mb/s`, `640 kb/s`.
    private static func rate(_ bandwidth: Int) -> String {
        if bandwidth < 1_000_000 { return "\(bandwidth / 1_000) kb/s" }
        let tenths = bandwidth / 100_000
        return "\(tenths / 10).\(tenths % 10) Mb/s"
    }
}
