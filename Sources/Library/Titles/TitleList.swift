// One stored playlist of a title, read for what has to be kept to play it again.
package import HLS
package import URISyntax

/// A bytes range of a resource that playing needs.
package struct TitlePiece: Sendable, Equatable {
    package let url: AbsoluteURL
    /// Bytes of the resource; nil for the whole of it.
    package let range: Range<Int64>?
    /// Playing time; 0 for what plays for no time itself: initialization sections and keys.
    package let seconds: Double
}

/// A playlist that another one names.
package struct TitleChild: Sendable, Equatable {
    package let url: AbsoluteURL
    package let kind: TitleVariant.Kind
    /// What tells it from its neighbours: resolution and bit rate, or name and language.
    package let label: String
    /// Bits per second; nil where the list does not say.
    package let bandwidth: Int64?
}

/// What is read out of a playlist.
package struct TitleList: Sendable, Equatable {
    /// The variant streams and renditions of a multivariant playlist.
    package let children: [TitleChild]
    /// What a media playlist needs, in its order, each once.
    package let pieces: [TitlePiece]
    package let isMultivariant: Bool
    package let isLive: Bool
    /// What the title is called, where the list says so.
    package let name: String?
    /// Variables for the lists that this one names.
    package let variables: [String: String]
    /// What keeps a media playlist from being played with stored keys.
    package let protection: ContentProtection?

    /// Reads a playlist.
    ///
    /// - Parameters:
    ///   - body: the playlist as the origin sent it.
    ///   - base: the URL that it came from, after redirects.
    ///   - variables: those of the multivariant playlist that named it.
    ///   - limits: what a playlist may cost.
    /// - Throws: `PlaylistError` for what is no playlist, or too large a one.
    package init(
        _ body: [UInt8], base: AbsoluteURL, variables: [String: String] = [:],
        limits: PlaylistLimits = .standard
    ) throws(PlaylistError) {
        var options = PlaylistRewriter.Options()
        options.limits = limits
        options.inheritedVariables = variables
        options.collectsReferences = true
        let read = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in
            false
        }
        isMultivariant = read.summary.kind == .multivariant
        isLive = read.summary.isLive
        self.variables = read.definedVariables
        name =
            TitleName.recorded(in: body) ?? (isMultivariant ? TitleName.announced(in: body) : nil)
        children = isMultivariant ? Self.children(of: read.references, in: body) : []
        guard !isMultivariant else {
            pieces = []
            protection = nil
            return
        }
        let keys = ContentProtection.read(try PlaylistText(body, limits: limits))
        protection = keys.protection
        pieces = Self.pieces(of: read.references, without: keys.foreignKeyLines)
    }

    // MARK: Media playlists

    private static func pieces(
        of references: [ResourceReference], without foreignKeys: Set<Int>
    ) -> [TitlePiece] {
        var pieces: [TitlePiece] = []
        var structure: Set<AbsoluteURL> = []
        for reference in references {
            switch reference.role {
            // No request of ours brings it.
            case .key where foreignKeys.contains(reference.line): continue
            case .key, .initialization:
                // A section that is named again for each discontinuity is one.
                guard reference.tag != .preloadHint, structure.insert(reference.url).inserted else {
                    continue
                }
                pieces.append(TitlePiece(url: reference.url, range: range(reference), seconds: 0))
            case .segment, .subtitle, .image, .media:
                guard reference.tag == .inf, !reference.isGap else { continue }
                let seconds = reference.duration.map { max(0, $0 / .seconds(1)) } ?? 0
                pieces.append(
                    TitlePiece(url: reference.url, range: range(reference), seconds: seconds))
            case .playlist, .part, .json: continue
            }
        }
        return pieces
    }

    private static func range(_ reference: ResourceReference) -> Range<Int64>? {
        reference.byteRange?.bytes
    }

    // MARK: Multivariant playlists

    private static func children(of references: [ResourceReference], in body: [UInt8])
        -> [TitleChild]
    {
        var known: Set<AbsoluteURL> = []
        let lines = TagLines(body)
        return references.compactMap { reference in
            guard reference.role == .playlist, let kind = kind(reference, lines),
                known.insert(reference.url).inserted
            else { return nil }
            let attributes = lines.attributes(of: reference)
            let label =
                kind == .variant || kind == .iFrames || kind == .images
                ? streamLabel(attributes, reference.bandwidth) : renditionLabel(attributes)
            return TitleChild(
                url: reference.url, kind: kind, label: label,
                bandwidth: reference.bandwidth.map(Int64.init))
        }
    }

    private static func kind(_ reference: ResourceReference, _ lines: TagLines)
        -> TitleVariant.Kind?
    {
        switch reference.tag {
        case .streamInf: return .variant
        case .iFrameStreamInf: return .iFrames
        case .imageStreamInf: return .images
        case .media:
            switch lines.attributes(of: reference)?.text(of: "TYPE") {
            case "AUDIO": return .audio
            case "VIDEO": return .video
            case "SUBTITLES": return .subtitles
            default: return nil
            }
        default: return nil
        }
    }

    private static func streamLabel(_ attributes: AttributeList?, _ bandwidth: Int?) -> String {
        var parts: [String] = []
        if let resolution = attributes?.text(of: "RESOLUTION") { parts.append(resolution) }
        if let bandwidth { parts.append(rate(bandwidth)) }
        return parts.isEmpty ? "stream" : parts.joined(separator: " ")
    }

    private static func renditionLabel(_ attributes: AttributeList?) -> String {
        let name = attributes?.text(of: "NAME"), language = attributes?.text(of: "LANGUAGE")
        switch (name, language) {
        case (let name?, let language?) where name != language: return "\(name) (\(language))"
        case (let name?, _): return name
        case (nil, let language?): return language
        case (nil, nil): return "rendition"
        }
    }

    /// `2.4 Mb/s`, `640 kb/s`.
    private static func rate(_ bandwidth: Int) -> String {
        if bandwidth < 1_000_000 { return "\(bandwidth / 1_000) kb/s" }
        let tenths = bandwidth / 100_000
        return "\(tenths / 10).\(tenths % 10) Mb/s"
    }
}

/// The lines of a playlist, by number, for the attributes of a reference.
private struct TagLines {
    private let body: [UInt8]
    private let lines: [Range<Int>]

    init(_ body: [UInt8]) {
        self.body = body
        lines = body.split(separator: 0x0A, omittingEmptySubsequences: false).map(\.indices)
    }

    /// The attributes of the tag that a reference stands in, or that it follows.
    func attributes(of reference: ResourceReference) -> AttributeList? {
        let name = Array("#\(reference.tag.rawValue):".utf8)
        var number = reference.line - 1
        // A URI line follows its tag, with comments between at most.
        while number >= 0, number < lines.count, number > reference.line - 8 {
            let line = lines[number]
            if body[line].starts(with: name) {
                var end = line.upperBound
                if end > line.lowerBound, body[end - 1] == 0x0D { end -= 1 }
                return AttributeList(body, in: line.lowerBound + name.count..<end)
            }
            number -= 1
        }
        return nil
    }
}
