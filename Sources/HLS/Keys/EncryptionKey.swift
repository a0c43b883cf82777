/// EXT-X-KEY or EXT-X-SESSION-KEY (8216bis, 4.4.4.4).
package struct EncryptionKey: AttributeTag {
    package let text: TagText
    /// The resource that its URI names; nil if the URI is opaque or missing.
    package let reference: ResourceReference?

    package static let identity = "identity"

    package var method: String? { attributes.text(of: "METHOD") }
    /// True for METHOD=NONE: the following segments are not encrypted.
    package var isNone: Bool { attributes.isValue("NONE", of: "METHOD") }
    /// As written.
    package var uri: String? { attributes.text(of: "URI") }
    /// `identity` unless the tag has a KEYFORMAT.
    package var format: String { attributes.text(of: "KEYFORMAT") ?? Self.identity }

    /// True if a segment's media sequence number is its initialization vector (8216bis, 5.2).
    package var usesSequenceNumber: Bool {
        format == Self.identity && !attributes.has("IV")
            && !attributes.isValue("AES-256-GCM", of: "METHOD")
    }
}
