package import URISyntax

/// A playlist as reports describe it: its parts, features and faults.
package struct PlaylistOutline: Sendable {
    /// A line of a multivariant playlist that names a resource.
    package struct Entry: Sendable {
        package enum Kind: String, Sendable {
            case variant
            case rendition
            case iFrames = "i-frames"
            case images
            case sessionData = "session-data"
            case sessionKey = "session-key"
            case steering

            /// True if its URI is that of a playlist.
            package var isPlaylist: Bool {
                switch self {
                case .variant, .rendition, .iFrames, .images: true
                case .sessionData, .sessionKey, .steering: false
                }
            }
        }

        package let kind: Kind
        package let line: Int
        /// The attributes as written, in their order, without quotes; URIs are left out.
        package let attributes: [(name: String, value: String)]
        /// The URL that it names; nil if it has no URI or one that cannot be fetched.
        package let url: AbsoluteURL?

        fileprivate init(_ kind: Kind, _ tag: some AttributeTag, _ reference: ResourceReference?) {
            self.kind = kind
            line = tag.line
            let bytes = tag.attributes.bytes
            attributes = tag.attributes.compactMap { attribute in
                let name = PercentCoding.text(bytes[attribute.name])
                return name == "URI" || name == "SERVER-URI"
                    ? nil : (name: name, value: PercentCoding.text(bytes[attribute.value]))
            }
            url = reference?.url
        }

        /// Returns the value of an attribute; nil if it is missing.
        package func attribute(_ name: String) -> String? {
            attributes.first { $0.name == name }?.value
        }
    }

    /// A method and KEYFORMAT that keys of the playlist use, listed once.
    package struct Encryption: Hashable, Sendable {
        package let method: String
        /// `identity` unless the tag has a KEYFORMAT.
        package let keyFormat: String
    }

    /// A tag that Sluice does not know, with the line of its first occurrence.
    package struct UnknownTag: Hashable, Sendable {
        package let name: String
        package let line: Int
        package let count: Int
    }

    package let summary: PlaylistSummary
    package let entries: [Entry]
    /// In the order of their first appearance.
    package let encryption: [Encryption]
    /// The features beyond plain segments, in words: `parts`, `blocking reload` ...
    package let features: [String]
    package let unknownTags: [UnknownTag]
    package let violations: [Violation]
    /// The error that prevented resolving the URIs, if any; entries then have no URLs.
    package let refusal: PlaylistError?
    /// The shortest and the longest segment; nil without segments.
    package let segmentDurations: ClosedRange<Duration>?
    package let segments: [ResourceReference]
    /// The variables that this playlist passes to the playlists it names.
    package let definedVariables: [String: String]

    /// Parses `body`, which came from `base`: its URL after redirects.
    ///
    /// `variables` are those of the multivariant playlist. Never blocks. Throws only if `body` is
    /// not a playlist or exceeds the limits.
    package init(
        _ body: [UInt8], base: AbsoluteURL, variables: [String: String] = [:]
    ) throws(PlaylistError) {
        let reading = PlaylistReading(variables: variables, keepsLines: true)
        let list: Playlist
        do throws(PlaylistError) {
            list = try Playlist(body, base: base, reading)
            refusal = nil
        } catch {
            refusal = error
            list = try Playlist(body, base: nil, reading)
        }
        summary = list.summary
        segments = list.media?.segments.compactMap(\.reference) ?? []
        let durations = list.media?.segments.compactMap(\.duration) ?? []
        segmentDurations = durations.min().flatMap { low in durations.max().map { low...$0 } }
        definedVariables = list.definedVariables
        entries = list.multivariant.map(Self.entries) ?? []
        encryption = Self.encryption(
            (list.media?.keys ?? []) + (list.multivariant?.sessionKeys ?? []))
        features = Self.features(list)
        unknownTags = Self.unknownTags(list)
        violations = PlaylistRule.violations(in: list)
    }

    // MARK: Parts

    private static func entries(_ list: MultivariantPlaylist) -> [Entry] {
        let entries =
            list.variants.map { variant in
                let kind: Entry.Kind =
                    switch variant.kind {
                    case .stream: .variant
                    case .iFrames: .iFrames
                    case .images: .images
                    }
                return Entry(kind, variant, variant.reference)
            } + list.renditions.map { Entry(.rendition, $0, $0.reference) }
            + list.sessionData.map { Entry(.sessionData, $0, $0.reference) }
            + list.sessionKeys.map { Entry(.sessionKey, $0, $0.reference) }
            + list.steering.map { Entry(.steering, $0, $0.reference) }
        return entries.sorted { $0.line < $1.line }
    }

    private static func encryption(_ keys: [EncryptionKey]) -> [Encryption] {
        var found: [Encryption] = []
        var known: Set<Encryption> = []
        for key in keys where !key.isNone {
            let one = Encryption(method: key.method ?? "?", keyFormat: key.format)
            if known.insert(one).inserted { found.append(one) }
        }
        return found
    }

    private static func features(_ list: Playlist) -> [String] {
        let media = list.media
        let control = media?.serverControl
        let tags = Set(list.lines.compactMap(\.tag))
        let table: [(String, Bool)] = [
            ("parts", tags.contains(.part)), ("preload hints", tags.contains(.preloadHint)),
            ("blocking reload", control?.canBlockReload ?? false),
            ("delta updates", control?.attributes.has("CAN-SKIP-UNTIL") ?? false),
            ("a delta update", tags.contains(.skip)),
            ("rendition reports", tags.contains(.renditionReport)),
            ("byte ranges", tags.contains(.byteRange)),
            ("initialization sections", tags.contains(.map)),
            ("program date-time", tags.contains(.programDateTime)),
            ("discontinuities", tags.contains(.discontinuity)), ("gaps", tags.contains(.gap)),
            ("date ranges", tags.contains(.dateRange)),
            ("interstitials", media?.dateRanges.contains(where: \.isInterstitial) ?? false),
            ("I-frames only", tags.contains(.iFramesOnly)),
            ("images only", tags.contains(.imagesOnly)), ("variables", tags.contains(.define)),
            ("content steering", tags.contains(.contentSteering)),
            ("independent segments", tags.contains(.independentSegments)),
        ]
        return table.filter(\.1).map(\.0)
    }

    private static func unknownTags(_ list: Playlist) -> [UnknownTag] {
        var order: [String] = []
        var found: [String: (line: Int, count: Int)] = [:]
        for line in list.lines {
            guard case .unknownTag(let range) = line.kind else { continue }
            let name = list.text(range)
            // Bounded, so that a playlist of unknown tags cannot fill a report.
            guard found[name] != nil || order.count < 100 else { continue }
            if found[name] == nil { order.append(name) }
            found[name, default: (line.number, 0)].count += 1
        }
        return order.map { name in
            UnknownTag(name: name, line: found[name]?.line ?? 0, count: found[name]?.count ?? 0)
        }
    }
}
