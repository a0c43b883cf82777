package import URISyntax

/// One URI of a playlist: the resource it names, and what the playlist says about that.
package struct ResourceReference: Sendable {
    /// The URL at the origin, either whole or as folder and name.
    package enum Place: Sendable {
        case whole(AbsoluteURL)
        case joined(JoinedURL)

        /// The whole URL; makes a copy if it is stored as folder and name.
        package var url: AbsoluteURL {
            switch self {
            case .whole(let url): url
            case .joined(let joined): joined.url
            }
        }

        /// `AbsoluteURL.tailDigest` of the URL.
        package var tailDigest: UInt32 {
            switch self {
            case .whole(let url): url.tailDigest
            case .joined(let joined): joined.tailDigest
            }
        }

        /// True if the URL is `other`; copies nothing.
        package func isSame(as other: AbsoluteURL) -> Bool {
            switch self {
            case .whole(let url): url == other
            case .joined(let joined): joined.isSame(as: other)
            }
        }

        /// True if both URLs are equal, also across playlists; copies nothing if their folders are
        /// equal.
        package func isSame(as other: Place) -> Bool {
            switch other {
            case .whole(let url): isSame(as: url)
            case .joined(let joined):
                switch self {
                case .whole(let url): joined.isSame(as: url)
                case .joined(let own): own.isSame(as: joined)
                }
            }
        }

        /// A URL with the same scheme and authority, made without copying.
        package var neighbour: AbsoluteURL {
            switch self {
            case .whole(let url): url
            case .joined(let joined): joined.folder.member
            }
        }

        /// The folder of a URL stored as folder and name; nil for a whole URL.
        package var folder: URLFolder? {
            switch self {
            case .whole: nil
            case .joined(let joined): joined.folder
            }
        }

        /// The last byte of the file name; 0 for none.
        var lastOfName: UInt8 {
            switch self {
            case .whole(let url):
                let path = url.pathRange
                return path.isEmpty ? 0 : url.bytes[path.upperBound - 1]
            case .joined(let joined): return joined.lastOfName
            }
        }

        /// The file name.
        private var name: ArraySlice<UInt8> {
            switch self {
            case .whole(let url): url.bytes[url.lastPathSegmentRange]
            case .joined(let joined): joined.document[joined.name]
            }
        }

        /// True if the file name has an extension that players accept for a role.
        func hasExtension(of role: ResourceRole) -> Bool { role.accepts(extensionOf: name) }

        /// True if the file name ends in `suffix`, which is in lower case.
        func nameEnds(in suffix: String) -> Bool {
            name.suffix(suffix.utf8.count).lazy.map(ASCII.lowercased)
                .elementsEqual(suffix.utf8)
        }
    }

    package let place: Place
    package let role: ResourceRole
    /// The tag that names the resource; for a URI line the tag it follows (`inf`, `streamInf`).
    package let tag: Tag.Name
    /// The line of the URI in the origin's playlist, counted from 1.
    package let line: Int
    /// The media sequence number: for a segment its own, for a part or hint that of its parent
    /// segment, for a key, an initialization section or a playlist that of the next segment.
    package internal(set) var mediaSequence = 0
    /// The index in the parent segment of a part or a hinted part; otherwise nil.
    package internal(set) var partIndex: Int?
    /// The discontinuity sequence number in force.
    package internal(set) var discontinuitySequence = 0
    /// The value of EXTINF or DURATION; nil without one.
    package internal(set) var duration: Duration?
    /// The sub-range of the resource; nil for the whole resource, and for a hint without a length.
    package internal(set) var byteRange: SubRange?
    /// True for a hint for a range: it has BYTERANGE-START, or follows a part that is a range.
    package internal(set) var hasRangeStart = false
    /// True if the segment or part is marked as missing (EXT-X-GAP, GAP=YES).
    package internal(set) var isGap = false
    /// BANDWIDTH of a variant stream in bits per second; nil without it.
    package internal(set) var bandwidth: Int?
    /// Key and initialization section in force for a segment, part or hint.
    package let context: SegmentContext

    /// The absolute URL at the origin; makes a copy if it is stored as folder and name.
    package var url: AbsoluteURL { place.url }

    /// True if an EXT-X-MAP is in force, so that the resource is not a transport stream.
    package var hasMap: Bool { context.hasMap }
    /// The URL of the key in force; nil without encryption and for keys with opaque URIs.
    package var keyURL: AbsoluteURL? { context.keyURL }
    /// The URL of the media initialization section in force.
    package var mapURL: AbsoluteURL? { context.mapURL }
    /// The sub-range of that section; nil for the whole resource.
    package var mapByteRange: SubRange? { context.mapByteRange }
}
