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
        if let name = attributes.text(of: "NAME") {
            return .value(name: name, value: attributes.text(of: "VALUE") ?? "")
        }
        if let name = attributes.text(of: "IMPORT") { return .imported(name: name) }
        return attributes.text(of: "QUERYPARAM").map { .queryParameter(name: $0) }
    }
}
