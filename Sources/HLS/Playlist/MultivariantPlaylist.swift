import URISyntax

/// The content of a multivariant playlist (RFC 8216bis, 4.4.6), each kind in its order.
package struct MultivariantPlaylist: Sendable {
    /// All variants, including I-frame and image streams.
    package internal(set) var variants: [Variant] = []
    package internal(set) var renditions: [Rendition] = []
    package internal(set) var sessionData: [SessionData] = []
    package internal(set) var sessionKeys: [EncryptionKey] = []
    /// EXT-X-CONTENT-STEERING; the RFC allows one.
    package internal(set) var steering: [ContentSteering] = []

    /// True if it has no values.
    var isEmpty: Bool {
        variants.isEmpty && renditions.isEmpty && sessionData.isEmpty && sessionKeys.isEmpty
            && steering.isEmpty
    }

    /// The variant streams without the I-frame and image streams.
    package var streams: some Sequence<Variant> { variants.lazy.filter { $0.kind == .stream } }

    /// EXT-X-STREAM-INF, EXT-X-I-FRAME-STREAM-INF or EXT-X-IMAGE-STREAM-INF (8216bis, 4.4.6.2).
    package struct Variant: AttributeTag {
        package enum Kind: Sendable {
            case stream
            case iFrames
            case images
        }

        /// Width and height in pixels.
        package struct Resolution: Hashable, Sendable {
            package let width: Int
            package let height: Int
        }

        package let text: TagText
        package let kind: Kind
        /// BANDWIDTH in bits per second.
        package let bandwidth: Int?
        package internal(set) var reference: ResourceReference?
        /// The line of its URI; nil if that is missing.
        package internal(set) var uriLine: Int?

        /// AVERAGE-BANDWIDTH in bits per second.
        package var averageBandwidth: Int? { attributes.integer(of: "AVERAGE-BANDWIDTH") }
        package var codecs: String? { attributes.text(of: "CODECS") }
        /// RESOLUTION as written.
        package var resolutionText: String? { attributes.text(of: "RESOLUTION") }
        package var resolution: Resolution? {
            guard let bytes = attributes.bytes(of: "RESOLUTION"),
                let cross = bytes.firstIndex(of: 0x78),
                let width = DecimalNumber.integer(bytes[..<cross]),
                let height = DecimalNumber.integer(bytes[(cross + 1)...])
            else { return nil }
            return Resolution(width: width, height: height)
        }
        /// The height of the picture in pixels; nil outside the plausible range 1 to 100,000.
        package var height: Int? {
            resolution.flatMap { (1...100_000).contains($0.height) ? $0.height : nil }
        }
        package var videoRange: String? { attributes.text(of: "VIDEO-RANGE") }
        package var audioGroup: String? { attributes.text(of: "AUDIO") }
        package var subtitlesGroup: String? { attributes.text(of: "SUBTITLES") }
        package var pathwayID: String? { attributes.text(of: "PATHWAY-ID") }

        /// Returns the group of a type of renditions (`AUDIO`, `VIDEO` ...); nil if it is not a
        /// quoted string.
        package func group(_ type: String) -> String? {
            guard let attribute = attributes.first(type), attribute.isQuoted else { return nil }
            return PercentCoding.text(attributes.bytes[attribute.value])
        }
    }

    /// EXT-X-MEDIA (8216bis, 4.4.6.1).
    package struct Rendition: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?

        package var type: String? { attributes.text(of: "TYPE") }
        package var groupID: String? { attributes.text(of: "GROUP-ID") }
        package var name: String? { attributes.text(of: "NAME") }
        package var language: String? { attributes.text(of: "LANGUAGE") }
        package var isDefault: Bool { attributes.isYes("DEFAULT") }
        package var isForced: Bool { attributes.isYes("FORCED") }
    }

    /// EXT-X-SESSION-DATA (8216bis, 4.4.6.4).
    package struct SessionData: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?

        package var dataID: String? { attributes.text(of: "DATA-ID") }
    }

    /// EXT-X-CONTENT-STEERING (8216bis, 4.4.6.6).
    package struct ContentSteering: AttributeTag {
        package let text: TagText
        package let reference: ResourceReference?
    }
}
