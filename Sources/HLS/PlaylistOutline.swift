package import URISyntax

/// What a reader of reports wants to know of one playlist: its parts, features and faults.
package struct PlaylistOutline: Sendable {
    /// Something that a multivariant playlist names.
    package struct Entry: Sendable {
        package enum Kind: String, Sendable {
            case variant
            case rendition
            case iFrames = "i-frames"
            case images
            case sessionData = "session-data"
            case sessionKey = "session-key"
            case steering
        }

        package let kind: Kind
        package let line: Int
        /// The attributes as written, quotes taken off, in their order, URIs left out.
        package let attributes: [(name: String, value: String)]
        /// The URL it leads to; nil where there is none or none that could be asked for.
        package let url: AbsoluteURL?

        /// The value of an attribute; nil without it.
        package func attribute(_ name: String) -> String? {
            attributes.first { $0.name == name }?.value
        }
    }

    /// A key of the playlist, counted by the segments that it is in force for.
    package struct Encryption: Hashable, Sendable {
        package let method: String
        /// `identity` where the tag says nothing else.
        package let keyFormat: String
    }

    /// A tag that is in no table, by its first line.
    package struct UnknownTag: Hashable, Sendable {
        package let name: String
        package let line: Int
        package let count: Int
    }

    package let summary: PlaylistSummary
    package let entries: [Entry]
    /// In the order of their first appearance.
    package let encryption: [Encryption]
    /// What the list offers beyond plain segments, in words: `parts`, `blocking reload` ...
    package let features: [String]
    package let unknownTags: [UnknownTag]
    package let violations: [Violation]
    /// What kept the URIs from being read, if anything did; entries then have no URLs.
    package let refusal: PlaylistError?
    /// The shortest and the longest segment; nil without segments.
    package let segmentDurations: ClosedRange<Duration>?
    /// Segments by the role that their names and context give them.
    package let segments: [ResourceReference]
    /// For the playlists that this one names.
    package let definedVariables: [String: String]

    /// Reads `body`, which came from `base`: its URL after redirects.
    ///
    /// `variables` are those of the multivariant playlist. Never blocks. Throws only where `body`
    /// is no playlist or beyond the limits.
    package init(
        _ body: [UInt8], base: AbsoluteURL, variables: [String: String] = [:]
    ) throws(PlaylistError) {
        let text = try PlaylistText(body)
        var options = PlaylistRewriter.Options()
        options.collectsReferences = true
        options.inheritedVariables = variables
        var list: RewrittenPlaylist?
        var refusal: PlaylistError?
        do throws(PlaylistError) {
            list = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false
            }
        } catch {
            refusal = error
        }
        self.refusal = refusal
        var summary = list?.summary ?? PlaylistSummary()
        if list == nil { summary.kind = text.kind }
        self.summary = summary
        let references = list?.references ?? []
        segments = references.filter { $0.tag == .inf }
        let durations = segments.compactMap(\.duration)
        segmentDurations = durations.min().flatMap { low in durations.max().map { low...$0 } }
        definedVariables = list?.definedVariables ?? [:]
        let view = PlaylistView(text)
        entries = Self.entries(view, references)
        encryption = Self.encryption(view)
        features = Self.features(view)
        unknownTags = Self.unknownTags(text)
        violations = PlaylistRule.violations(in: text)
    }

    // MARK: Parts

    private static func entries(
        _ view: PlaylistView, _ references: [ResourceReference]
    ) -> [Entry] {
        guard view.kind == .multivariant else { return [] }
        let urls = Dictionary(references.map { ($0.line, $0.url) }, uniquingKeysWith: { $1 })
        return view.tags.compactMap { use in
            guard let kind = kind(of: use.name) else { return nil }
            // A variant's URI stands on a line of its own, behind the tag.
            let line =
                kind == .variant
                ? view.uri(after: use.line)?.line ?? use.line : use.line
            let attributes = use.attributes.compactMap { attribute in
                let name = view.text.text(attribute.name)
                return name == "URI" || name == "SERVER-URI"
                    ? nil : (name: name, value: view.text(attribute))
            }
            return Entry(kind: kind, line: use.line, attributes: attributes, url: urls[line])
        }
    }

    private static func kind(of name: Tag.Name) -> Entry.Kind? {
        switch name {
        case .streamInf: .variant
        case .media: .rendition
        case .iFrameStreamInf: .iFrames
        case .imageStreamInf: .images
        case .sessionData: .sessionData
        case .sessionKey: .sessionKey
        case .contentSteering: .steering
        default: nil
        }
    }

    private static func encryption(_ view: PlaylistView) -> [Encryption] {
        var found: [Encryption] = []
        var known: Set<Encryption> = []
        for use in view.uses(of: .key) + view.uses(of: .sessionKey) {
            let key = Encryption(
                method: use.attributes.text(of: "METHOD") ?? "?",
                keyFormat: use.attributes.text(of: "KEYFORMAT") ?? "identity")
            if key.method != "NONE", known.insert(key).inserted { found.append(key) }
        }
        return found
    }

    private static func features(_ view: PlaylistView) -> [String] {
        let control = view.first(.serverControl)?.attributes
        let table: [(String, Bool)] = [
            ("parts", view.contains(.part)), ("preload hints", view.contains(.preloadHint)),
            ("blocking reload", control?.isYes("CAN-BLOCK-RELOAD") ?? false),
            ("delta updates", control?.first("CAN-SKIP-UNTIL") != nil),
            ("a delta update", view.contains(.skip)),
            ("rendition reports", view.contains(.renditionReport)),
            ("byte ranges", view.contains(.byteRange)),
            ("initialization sections", view.contains(.map)),
            ("program date-time", view.contains(.programDateTime)),
            ("discontinuities", view.contains(.discontinuity)), ("gaps", view.contains(.gap)),
            ("date ranges", view.contains(.dateRange)),
            ("interstitials", hasInterstitials(view)),
            ("I-frames only", view.contains(.iFramesOnly)),
            ("images only", view.contains(.imagesOnly)), ("variables", view.contains(.define)),
            ("content steering", view.contains(.contentSteering)),
            ("independent segments", view.contains(.independentSegments)),
        ]
        return table.filter(\.1).map(\.0)
    }

    private static func hasInterstitials(_ view: PlaylistView) -> Bool {
        view.uses(of: .dateRange).contains {
            $0.attributes.isValue("com.apple.hls.interstitial", of: "CLASS")
        }
    }

    private static func unknownTags(_ text: PlaylistText) -> [UnknownTag] {
        var order: [String] = []
        var found: [String: (line: Int, count: Int)] = [:]
        for line in text.lines {
            guard case .unknownTag(let range) = line.kind else { continue }
            let name = text.text(range)
            // A list made of nothing else must not fill a report.
            guard found[name] != nil || order.count < 100 else { continue }
            if found[name] == nil { order.append(name) }
            found[name, default: (line.number, 0)].count += 1
        }
        return order.map { name in
            UnknownTag(name: name, line: found[name]?.line ?? 0, count: found[name]?.count ?? 0)
        }
    }
}
