/// The tags of HLS in one table: the playlists they belong in, their values and their URIs.
///
/// From RFC 8216 and draft-pantos-hls-rfc8216bis, followed by tags that only services use.
package struct Tag: Sendable {
    /// The playlists that a tag may occur in.
    package enum Scope: Sendable {
        case multivariant
        case media
        case both
    }

    /// The kind of text after a tag's colon.
    package enum Value: Sendable {
        case none
        /// A number, an enumerated string, a date or free text.
        case text
        case attributes
        /// A URI without quotes up to the end of the line.
        case uri(ResourceRole)
    }

    /// An attribute whose value is a URI, and the role of the resource that the URI names.
    package struct URIAttribute: Sendable {
        package let name: String
        package let role: ResourceRole
    }

    package let name: Name
    package let scope: Scope
    package let value: Value
    package let uris: [URIAttribute]

    private init(
        _ name: Name, _ scope: Scope, _ value: Value,
        uris: [(name: String, role: ResourceRole)] = []
    ) {
        self.name = name
        self.scope = scope
        self.value = value
        self.uris = uris.map { URIAttribute(name: $0.name, role: $0.role) }
    }

    /// Every known tag, in the order of the specification.
    package static let table: [Tag] = [
        // Basic tags (8216bis, 4.4.1) and tags of both kinds of playlist (4.4.2).
        Tag(.extM3U, .both, .none),
        Tag(.version, .both, .text),
        Tag(.independentSegments, .both, .none),
        Tag(.start, .both, .attributes),
        Tag(.define, .both, .attributes),
        // Media playlist tags (4.4.3).
        Tag(.targetDuration, .media, .text),
        Tag(.mediaSequence, .media, .text),
        Tag(.discontinuitySequence, .media, .text),
        Tag(.endList, .media, .none),
        Tag(.playlistType, .media, .text),
        Tag(.iFramesOnly, .media, .none),
        Tag(.partInf, .media, .attributes),
        Tag(.serverControl, .media, .attributes),
        // Media segment tags (4.4.4).
        Tag(.inf, .media, .text),
        Tag(.byteRange, .media, .text),
        Tag(.discontinuity, .media, .none),
        Tag(.key, .media, .attributes, uris: [("URI", .key)]),
        Tag(.map, .media, .attributes, uris: [("URI", .initialization)]),
        Tag(.programDateTime, .media, .text),
        Tag(.gap, .media, .none),
        Tag(.bitrate, .media, .text),
        Tag(.part, .media, .attributes, uris: [("URI", .part)]),
        // Media metadata tags (4.4.5); the attributes of interstitials are defined in appendix D,
        // X-URI belongs to preloads and schedules of date ranges.
        Tag(
            .dateRange, .media, .attributes,
            uris: [("X-ASSET-URI", .playlist), ("X-ASSET-LIST", .json), ("X-URI", .json)]),
        Tag(.skip, .media, .attributes),
        Tag(.preloadHint, .media, .attributes, uris: [("URI", .part)]),
        Tag(.renditionReport, .media, .attributes, uris: [("URI", .playlist)]),
        // Multivariant playlist tags (4.4.6).
        Tag(.media, .multivariant, .attributes, uris: [("URI", .playlist)]),
        Tag(.streamInf, .multivariant, .attributes),
        Tag(.iFrameStreamInf, .multivariant, .attributes, uris: [("URI", .playlist)]),
        Tag(.sessionData, .multivariant, .attributes, uris: [("URI", .json)]),
        Tag(.sessionKey, .multivariant, .attributes, uris: [("URI", .key)]),
        Tag(.contentSteering, .multivariant, .attributes, uris: [("SERVER-URI", .json)]),
        // Removed in protocol version 7.
        Tag(.allowCache, .both, .text),
        // Not in the specification: thumbnail tracks, and segments announced in advance.
        Tag(.imageStreamInf, .multivariant, .attributes, uris: [("URI", .playlist)]),
        Tag(.imagesOnly, .media, .none),
        Tag(.tiles, .media, .attributes),
        Tag(.prefetch, .media, .uri(.segment)),
        Tag(.twitchPrefetch, .media, .uri(.segment)),
    ]

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
