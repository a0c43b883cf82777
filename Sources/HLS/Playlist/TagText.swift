import URISyntax

/// The place of a tag and its attributes.
package struct TagText: Sendable {
    /// Counted from 1.
    package let line: Int
    /// The line from its `#` in the playlist's text, without its end.
    package let source: Range<Int>
    package let attributes: AttributeList

    init(_ line: TagLine, _ attributes: AttributeList) {
        self.line = line.number
        source = line.range
        self.attributes = attributes
    }

    /// Returns a decimal number of seconds; nil if negative.
    func length(_ name: String) -> Duration? {
        attributes.bytes(of: name).flatMap(DecimalNumber.length)
    }

    func date(_ name: String) -> DateTime? { attributes.bytes(of: name).flatMap { DateTime($0) } }

    func text(_ name: String) -> String? { attributes.text(of: name) }
}

/// A tag with attributes.
///
/// Properties of conforming types read their attribute on access; the first of several attributes
/// with the same name counts.
package protocol AttributeTag: Sendable {
    var text: TagText { get }
}

extension AttributeTag {
    /// Counted from 1.
    package var line: Int { text.line }
    /// The line from its `#` in the playlist's text, without its end.
    package var source: Range<Int> { text.source }
    package var attributes: AttributeList { text.attributes }
}

/// EXT-X-DEFINE (8216bis, 4.4.2.3).
package struct VariableDefinition: AttributeTag {
    package enum Form: Hashable, Sendable {
        case value(name: String, value: String)
        case imported(name: String)
        case queryParameter(name: String)
    }

    package let text: TagText

    /// As written, with variables in the value not replaced; nil without NAME, IMPORT and
    /// QUERYPARAM.
    package var form: Form? {
        if let name = text.text("NAME") {
            return .value(name: name, value: text.text("VALUE") ?? "")
        }
        if let name = text.text("IMPORT") { return .imported(name: name) }
        return text.text("QUERYPARAM").map { .queryParameter(name: $0) }
    }
}

/// EXT-X-KEY or EXT-X-SESSION-KEY (8216bis, 4.4.4.4).
package struct EncryptionKey: AttributeTag {
    package let text: TagText
    /// The resource that its URI names; nil if the URI is opaque or missing.
    package let reference: ResourceReference?

    package static let identity = "identity"

    package var method: String? { text.text("METHOD") }
    /// True for METHOD=NONE: the following segments are not encrypted.
    package var isNone: Bool { attributes.isValue("NONE", of: "METHOD") }
    /// As written.
    package var uri: String? { text.text("URI") }
    /// `identity` unless the tag has a KEYFORMAT.
    package var format: String { text.text("KEYFORMAT") ?? Self.identity }

    /// True if a segment's media sequence number is its initialization vector (8216bis, 5.2).
    package var usesSequenceNumber: Bool {
        format == Self.identity && !attributes.has("IV")
            && !attributes.isValue("AES-256-GCM", of: "METHOD")
    }
}
