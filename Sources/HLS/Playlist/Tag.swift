/// A tag of HLS: the playlists that it belongs in, its value and the URIs in it.
///
/// `table` contains all that is known of each tag; code that treats most tags alike reads it there. From RFC 8216
/// and draft-pantos-hls-rfc8216bis, followed by tags that only services use.
package final class Tag: Sendable {
    /// The kind of text after a tag's colon.
    package enum Value: Hashable, Sendable {
        case none
        /// An enumerated string, a date, a duration or free text.
        case text
        /// A decimal integer.
        case integer
        case attributes
        /// A URI without quotes up to the end of the line.
        case uri
    }

    /// An attribute whose value is a URI, and the role of the resource that the URI names.
    package struct URIAttribute: Sendable {
        package let name: String
        package let role: ResourceRole
    }

    /// What a playlist loses with a URI that no player can or may open.
    package enum Loss: Equatable, Sendable {
        /// Everything: it cannot be played without the resource.
        case playlist
        /// A part, which becomes a gap; everything if the scheme of the URI would bypass the daemon.
        case part
        /// The tag, which means nothing without its URI.
        case tag
        /// The attribute.
        case attribute
        /// The attribute, or the tag if it lacks this other attribute too.
        case attributeOrTag(without: String)
    }

    package let name: Name
    /// The kind of playlist that the tag belongs to; nil if it may occur in both.
    let kind: PlaylistKind?
    package let value: Value
    package let uris: [URIAttribute]
    let loss: Loss
    /// The section of 8216bis; for tags not in it, the section on tags.
    let section: String
    /// True if a playlist may contain only one.
    let isUnique: Bool
    /// True if the tag is useful only while new segments are produced.
    let isForLive: Bool
    /// The attributes that it must have.
    let required: [String]
    /// Attributes whose values are quoted strings.
    let quoted: Set<String>
    /// Attributes whose values are enumerated strings, each with its defined values.
    let enumerated: [String: Set<String>]

    private init(
        _ name: Name, _ kind: PlaylistKind?, _ value: Value, section: String = "4.4",
        uris: [(name: String, role: ResourceRole)] = [], loss: Loss = .tag, isUnique: Bool = false,
        isForLive: Bool = false, required: [String] = [], quoted: Set<String> = [],
        enumerated: [String: Set<String>] = [:]
    ) {
        self.name = name
        self.kind = kind
        self.value = value
        self.section = section
        self.uris = uris.map { URIAttribute(name: $0.name, role: $0.role) }
        self.loss = loss
        self.isUnique = isUnique
        self.isForLive = isForLive
        self.required = required
        self.quoted = quoted.union(uris.map(\.name))
        self.enumerated = enumerated
    }

    /// Every known tag, in the order of the specification.
    package static let table: [Tag] = [
        // Basic tags (8216bis, 4.4.1) and tags of both kinds of playlist (4.4.2).
        Tag(.extM3U, both, .none, section: "4.4.1.1", isUnique: true),
        Tag(.version, both, .integer, section: "4.4.1.2", isUnique: true),
        Tag(.independentSegments, both, .none, section: "4.4.2.1", isUnique: true),
        Tag(
            .start, both, .attributes, section: "4.4.2.2", isUnique: true,
            required: ["TIME-OFFSET"],
            enumerated: ["PRECISE": yesOrNo]),
        Tag(
            .define, both, .attributes, section: "4.4.2.3",
            quoted: ["NAME", "VALUE", "IMPORT", "QUERYPARAM"]),
        // Media playlist tags (4.4.3).
        Tag(.targetDuration, .media, .integer, section: "4.4.3.1", isUnique: true),
        Tag(.mediaSequence, .media, .integer, section: "4.4.3.2", isUnique: true),
        Tag(.discontinuitySequence, .media, .integer, section: "4.4.3.3", isUnique: true),
        Tag(.endList, .media, .none, section: "4.4.3.4", isUnique: true),
        Tag(.playlistType, .media, .text, section: "4.4.3.5", isUnique: true),
        Tag(.iFramesOnly, .media, .none, section: "4.4.3.6", isUnique: true),
        Tag(
            .partInf, .media, .attributes, section: "4.4.3.7", isUnique: true, isForLive: true,
            required: ["PART-TARGET"]),
        Tag(
            .serverControl, .media, .attributes, section: "4.4.3.8", isUnique: true,
            isForLive: true,
            enumerated: ["CAN-SKIP-DATERANGES": ["YES"], "CAN-BLOCK-RELOAD": ["YES"]]),
        // Media segment tags (4.4.4).
        Tag(.inf, .media, .text, section: "4.4.4.1", loss: .playlist),
        Tag(.byteRange, .media, .text, section: "4.4.4.2"),
        Tag(.discontinuity, .media, .none, section: "4.4.4.3"),
        Tag(
            .key, .media, .attributes, section: "4.4.4.4", uris: [("URI", .key)], loss: .playlist,
            required: ["METHOD"], quoted: keyFormats, enumerated: ["METHOD": methods]),
        Tag(
            .map, .media, .attributes, section: "4.4.4.5", uris: [("URI", .initialization)],
            loss: .playlist, required: ["URI"], quoted: ["BYTERANGE"]),
        Tag(.programDateTime, .media, .text, section: "4.4.4.6"),
        Tag(.gap, .media, .none, section: "4.4.4.7"),
        Tag(.bitrate, .media, .integer, section: "4.4.4.8"),
        Tag(
            .part, .media, .attributes, section: "4.4.4.9", uris: [("URI", .part)], loss: .part,
            isForLive: true, required: ["URI", "DURATION"], quoted: ["BYTERANGE"],
            enumerated: ["INDEPENDENT": ["YES"], "GAP": ["YES"]]),
        // Media metadata tags (4.4.5); the attributes of interstitials are defined in appendix D,
        // X-URI belongs to preloads and schedules of date ranges.
        Tag(
            .dateRange, .media, .attributes, section: "4.4.5.1",
            uris: [("X-ASSET-URI", .playlist), ("X-ASSET-LIST", .json), ("X-URI", .json)],
            loss: .attribute, required: ["ID"],
            quoted: ["ID", "CLASS", "START-DATE", "CUE", "END-DATE"],
            enumerated: ["END-ON-NEXT": ["YES"]]),
        Tag(
            .skip, .media, .attributes, section: "4.4.5.2", isUnique: true,
            required: ["SKIPPED-SEGMENTS"], quoted: ["RECENTLY-REMOVED-DATERANGES"]),
        Tag(
            .preloadHint, .media, .attributes, section: "4.4.5.3", uris: [("URI", .part)],
            isForLive: true, required: ["TYPE", "URI"],
            enumerated: ["TYPE": ["PART", "MAP", "KEY"]]),
        Tag(
            .renditionReport, .media, .attributes, section: "4.4.5.4", uris: [("URI", .playlist)],
            isForLive: true, required: ["URI", "LAST-MSN"]),
        // Multivariant playlist tags (4.4.6).
        Tag(
            .media, .multivariant, .attributes, section: "4.4.6.1", uris: [("URI", .playlist)],
            loss: .playlist, required: ["TYPE", "GROUP-ID", "NAME"],
            quoted: [
                "GROUP-ID", "LANGUAGE", "ASSOC-LANGUAGE", "NAME", "STABLE-RENDITION-ID",
                "INSTREAM-ID", "CHARACTERISTICS", "CHANNELS", "PATHWAY-ID",
            ],
            enumerated: [
                "TYPE": ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"], "DEFAULT": yesOrNo,
                "AUTOSELECT": yesOrNo, "FORCED": yesOrNo,
            ]),
        Tag(
            .streamInf, .multivariant, .attributes, section: "4.4.6.2", loss: .playlist,
            required: ["BANDWIDTH"],
            quoted: streamTexts.union(["AUDIO", "SUBTITLES", "CLOSED-CAPTIONS"]),
            enumerated: streamValues),
        Tag(
            .iFrameStreamInf, .multivariant, .attributes, section: "4.4.6.3",
            uris: [("URI", .playlist)], required: ["BANDWIDTH", "URI"], quoted: streamTexts,
            enumerated: streamValues),
        Tag(
            .sessionData, .multivariant, .attributes, section: "4.4.6.4", uris: [("URI", .json)],
            loss: .attributeOrTag(without: "VALUE"), required: ["DATA-ID"],
            quoted: ["DATA-ID", "VALUE", "LANGUAGE"], enumerated: ["FORMAT": ["JSON", "RAW"]]),
        Tag(
            .sessionKey, .multivariant, .attributes, section: "4.4.6.5", uris: [("URI", .key)],
            required: ["METHOD"], quoted: keyFormats, enumerated: ["METHOD": methods]),
        Tag(
            .contentSteering, .multivariant, .attributes, section: "4.4.6.6",
            uris: [("SERVER-URI", .json)], isUnique: true, required: ["SERVER-URI"],
            quoted: ["PATHWAY-ID"]),
        // Removed in protocol version 7.
        Tag(.allowCache, both, .text),
        // Not in the specification: thumbnail tracks, and segments announced in advance.
        Tag(.imageStreamInf, .multivariant, .attributes, uris: [("URI", .playlist)]),
        Tag(.imagesOnly, .media, .none),
        Tag(.tiles, .media, .attributes),
        Tag(.prefetch, .media, .uri, isForLive: true),
        Tag(.twitchPrefetch, .media, .uri, isForLive: true),
    ]

    private static let both: PlaylistKind? = nil
    private static let yesOrNo: Set<String> = ["YES", "NO"]
    private static let keyFormats: Set<String> = ["KEYFORMAT", "KEYFORMATVERSIONS"]
    private static let methods: Set<String> = [
        "NONE", "AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR", "AES-256-GCM",
    ]
    private static let streamTexts: Set<String> = [
        "CODECS", "SUPPLEMENTAL-CODECS", "ALLOWED-CPC", "REQ-VIDEO-LAYOUT", "STABLE-VARIANT-ID",
        "VIDEO", "PATHWAY-ID",
    ]
    private static let streamValues: [String: Set<String>] = [
        "HDCP-LEVEL": ["TYPE-0", "TYPE-1", "NONE"], "VIDEO-RANGE": ["SDR", "HLG", "PQ"],
    ]

    private static let byName = Dictionary(uniqueKeysWithValues: table.map { ($0.name, $0) })

    /// Returns the tag of a name.
    static func named(_ name: Name) -> Tag {
        guard let tag = byName[name] else { preconditionFailure("every name is in the table") }
        return tag
    }

    /// The tag before the URI of a variant.
    static let streamInf = named(.streamInf)

    /// True if the playlist can be played without the resource that the tag names.
    var isOptional: Bool {
        switch loss {
        case .playlist, .part: false
        case .tag, .attribute, .attributeOrTag: true
        }
    }

    /// A tag's name without its `#`.
    package enum Name: String, CaseIterable, Hashable, Sendable {
        case extM3U = "EXTM3U"
        case version = "EXT-X-VERSION"
        case independentSegments = "EXT-X-INDEPENDENT-SEGMENTS"
        case start = "EXT-X-START"
        case define = "EXT-X-DEFINE"
        case targetDuration = "EXT-X-TARGETDURATION"
        case mediaSequence = "EXT-X-MEDIA-SEQUENCE"
        case discontinuitySequence = "EXT-X-DISCONTINUITY-SEQUENCE"
        case endList = "EXT-X-ENDLIST"
        case playlistType = "EXT-X-PLAYLIST-TYPE"
        case iFramesOnly = "EXT-X-I-FRAMES-ONLY"
        case partInf = "EXT-X-PART-INF"
        case serverControl = "EXT-X-SERVER-CONTROL"
        case inf = "EXTINF"
        case byteRange = "EXT-X-BYTERANGE"
        case discontinuity = "EXT-X-DISCONTINUITY"
        case key = "EXT-X-KEY"
        case map = "EXT-X-MAP"
        case programDateTime = "EXT-X-PROGRAM-DATE-TIME"
        case gap = "EXT-X-GAP"
        case bitrate = "EXT-X-BITRATE"
        case part = "EXT-X-PART"
        case dateRange = "EXT-X-DATERANGE"
        case skip = "EXT-X-SKIP"
        case preloadHint = "EXT-X-PRELOAD-HINT"
        case renditionReport = "EXT-X-RENDITION-REPORT"
        case media = "EXT-X-MEDIA"
        case streamInf = "EXT-X-STREAM-INF"
        case iFrameStreamInf = "EXT-X-I-FRAME-STREAM-INF"
        case sessionData = "EXT-X-SESSION-DATA"
        case sessionKey = "EXT-X-SESSION-KEY"
        case contentSteering = "EXT-X-CONTENT-STEERING"
        case allowCache = "EXT-X-ALLOW-CACHE"
        case imageStreamInf = "EXT-X-IMAGE-STREAM-INF"
        case imagesOnly = "EXT-X-IMAGES-ONLY"
        case tiles = "EXT-X-TILES"
        case prefetch = "EXT-X-PREFETCH"
        case twitchPrefetch = "EXT-X-TWITCH-PREFETCH"
    }
}

/// Finds tags by the bytes of their names.
struct TagIndex: Sendable {
    static let shared = TagIndex()

    /// The tags with the bytes of their names, indexed by the length of the name.
    private let byLength: [[(name: [UInt8], tag: Tag)]]

    private init() {
        var buckets: [[(name: [UInt8], tag: Tag)]] = []
        for tag in Tag.table {
            let name = Array(tag.name.rawValue.utf8)
            while buckets.count <= name.count { buckets.append([]) }
            buckets[name.count].append((name, tag))
        }
        byLength = buckets
    }

    /// Returns the tag whose name, without `#`, is in this range of `bytes`; nil if unknown.
    func tag(named range: Range<Int>, in bytes: [UInt8]) -> Tag? {
        guard range.count < byLength.count else { return nil }
        for entry in byLength[range.count] {
            // Compares from the end, because most names have the same beginning.
            var index = range.count - 1
            while index >= 0, bytes[range.lowerBound + index] == entry.name[index] { index -= 1 }
            if index < 0 { return entry.tag }
        }
        return nil
    }
}
