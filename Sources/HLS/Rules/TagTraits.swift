/// The properties of each tag in the specification, as far as a table can express them.
struct TagTraits: Sendable {
    let name: Tag.Name
    /// The section of 8216bis; for tags not in it, the section on tags.
    let section: String
    let kind: PlaylistKind?
    let hasAttributes: Bool
    /// True if a playlist may contain only one.
    let isUnique: Bool
    /// True if the value is a decimal integer.
    let isInteger: Bool
    let required: [String]
    /// Attributes whose values are quoted strings.
    let quoted: Set<String>
    /// Attributes whose values are enumerated strings, each with its defined values.
    let enumerated: [String: Set<String>]

    private init(_ tag: Tag) {
        name = tag.name
        section = Self.sections[tag.name] ?? "4.4"
        kind = tag.kind
        if case .attributes = tag.value { hasAttributes = true } else { hasAttributes = false }
        isUnique = Self.unique.contains(tag.name)
        isInteger = Self.integers.contains(tag.name)
        required = Self.required[tag.name] ?? []
        quoted = Self.quoted[tag.name] ?? []
        enumerated = Self.enumerated[tag.name] ?? [:]
    }

    static let table = Tag.table.map(TagTraits.init)

    private static let byName = Dictionary(uniqueKeysWithValues: table.map { ($0.name, $0) })

    static func of(_ name: Tag.Name) -> TagTraits {
        guard let traits = byName[name] else { preconditionFailure("every tag is in the table") }
        return traits
    }

    private static let sections: [Tag.Name: String] = [
        .extM3U: "4.4.1.1", .version: "4.4.1.2", .independentSegments: "4.4.2.1",
        .start: "4.4.2.2", .define: "4.4.2.3", .targetDuration: "4.4.3.1",
        .mediaSequence: "4.4.3.2", .discontinuitySequence: "4.4.3.3", .endList: "4.4.3.4",
        .playlistType: "4.4.3.5", .iFramesOnly: "4.4.3.6", .partInf: "4.4.3.7",
        .serverControl: "4.4.3.8", .inf: "4.4.4.1", .byteRange: "4.4.4.2",
        .discontinuity: "4.4.4.3", .key: "4.4.4.4", .map: "4.4.4.5",
        .programDateTime: "4.4.4.6", .gap: "4.4.4.7", .bitrate: "4.4.4.8", .part: "4.4.4.9",
        .dateRange: "4.4.5.1", .skip: "4.4.5.2", .preloadHint: "4.4.5.3",
        .renditionReport: "4.4.5.4", .media: "4.4.6.1", .streamInf: "4.4.6.2",
        .iFrameStreamInf: "4.4.6.3", .sessionData: "4.4.6.4", .sessionKey: "4.4.6.5",
        .contentSteering: "4.4.6.6",
    ]

    private static let unique: Set<Tag.Name> = [
        .extM3U, .version, .independentSegments, .start, .targetDuration, .mediaSequence,
        .discontinuitySequence, .endList, .playlistType, .iFramesOnly, .partInf, .serverControl,
        .skip, .contentSteering,
    ]

    private static let integers: Set<Tag.Name> = [
        .version, .targetDuration, .mediaSequence, .discontinuitySequence, .bitrate,
    ]

    private static let required: [Tag.Name: [String]] = [
        .start: ["TIME-OFFSET"], .partInf: ["PART-TARGET"], .key: ["METHOD"], .map: ["URI"],
        .part: ["URI", "DURATION"], .dateRange: ["ID"], .skip: ["SKIPPED-SEGMENTS"],
        .preloadHint: ["TYPE", "URI"], .renditionReport: ["URI", "LAST-MSN"],
        .media: ["TYPE", "GROUP-ID", "NAME"], .streamInf: ["BANDWIDTH"],
        .iFrameStreamInf: ["BANDWIDTH", "URI"], .sessionData: ["DATA-ID"],
        .sessionKey: ["METHOD"], .contentSteering: ["SERVER-URI"],
    ]

    private static let stream: Set<String> = [
        "CODECS", "SUPPLEMENTAL-CODECS", "ALLOWED-CPC", "REQ-VIDEO-LAYOUT", "STABLE-VARIANT-ID",
        "VIDEO", "PATHWAY-ID",
    ]
    private static let keys: Set<String> = ["URI", "KEYFORMAT", "KEYFORMATVERSIONS"]

    private static let quoted: [Tag.Name: Set<String>] = [
        .define: ["NAME", "VALUE", "IMPORT", "QUERYPARAM"], .key: keys, .sessionKey: keys,
        .map: ["URI", "BYTERANGE"], .part: ["URI", "BYTERANGE"], .preloadHint: ["URI"],
        .renditionReport: ["URI"], .skip: ["RECENTLY-REMOVED-DATERANGES"],
        .dateRange: [
            "ID", "CLASS", "START-DATE", "CUE", "END-DATE", "X-ASSET-URI", "X-ASSET-LIST",
        ],
        .media: [
            "URI", "GROUP-ID", "LANGUAGE", "ASSOC-LANGUAGE", "NAME", "STABLE-RENDITION-ID",
            "INSTREAM-ID", "CHARACTERISTICS", "CHANNELS", "PATHWAY-ID",
        ],
        .streamInf: stream.union(["AUDIO", "SUBTITLES", "CLOSED-CAPTIONS"]),
        .iFrameStreamInf: stream.union(["URI"]),
        .sessionData: ["DATA-ID", "VALUE", "URI", "LANGUAGE"],
        .contentSteering: ["SERVER-URI", "PATHWAY-ID"],
    ]

    private static let yesOrNo: Set<String> = ["YES", "NO"]
    private static let methods: Set<String> = [
        "NONE", "AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR", "AES-256-GCM",
    ]
    private static let streamValues: [String: Set<String>] = [
        "HDCP-LEVEL": ["TYPE-0", "TYPE-1", "NONE"], "VIDEO-RANGE": ["SDR", "HLG", "PQ"],
    ]

    private static let enumerated: [Tag.Name: [String: Set<String>]] = [
        .start: ["PRECISE": yesOrNo],
        .key: ["METHOD": methods], .sessionKey: ["METHOD": methods],
        .part: ["INDEPENDENT": ["YES"], "GAP": ["YES"]],
        .serverControl: ["CAN-SKIP-DATERANGES": ["YES"], "CAN-BLOCK-RELOAD": ["YES"]],
        .preloadHint: ["TYPE": ["PART", "MAP", "KEY"]],
        .dateRange: ["END-ON-NEXT": ["YES"]],
        .media: [
            "TYPE": ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"], "DEFAULT": yesOrNo,
            "AUTOSELECT": yesOrNo, "FORCED": yesOrNo,
        ],
        .streamInf: streamValues, .iFrameStreamInf: streamValues,
        .sessionData: ["FORMAT": ["JSON", "RAW"]],
    ]
}

extension Tag {
    /// The kind of playlist that a tag belongs to; nil if it may occur in both.
    var kind: PlaylistKind? {
        switch scope {
        case .both: nil
        case .multivariant: .multivariant
        case .media: .media
        }
    }
}
