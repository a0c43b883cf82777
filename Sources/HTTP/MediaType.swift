import URISyntax

/// A media type with its parameters (RFC 9110 section 8.3.1).
package struct MediaType: Sendable, Hashable {
    /// One `name=value` after the type.
    package struct Parameter: Sendable, Hashable {
        /// In lower case.
        package let name: String
        /// As it was sent, quotes and escapes undone.
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The text before the slash, in lower case.
    package let type: String
    /// The text after the slash, in lower case.
    package let subtype: String
    /// In the order they were sent.
    package let parameters: [Parameter]

    package init(type: String, subtype: String, parameters: [Parameter] = []) {
        self.type = ASCII.lowercased(type)
        self.subtype = ASCII.lowercased(subtype)
        self.parameters = parameters
    }

    /// Parses a value such as `video/mp4; codecs="avc1.64001f"`.
    ///
    /// - Returns: Nil without type and subtype. Parameters from the first malformed one on are
    ///   dropped, since many origins send such.
    package init?(_ value: String) {
        var cursor = FieldCursor(value)
        cursor.skipOWS()
        let type = cursor.token()
        guard !type.isEmpty, cursor.skip(0x2F) else { return nil }
        let subtype = cursor.token()
        guard !subtype.isEmpty else { return nil }
        cursor.skipOWS()
        guard cursor.isAtEnd || cursor.peek == ASCII.semicolon else { return nil }
        self.init(
            type: type.text, subtype: subtype.text,
            parameters: MediaType.parameters(&cursor))
    }

    /// Parses a message's `Content-Type`; nil if absent or malformed.
    package static func parse(_ fields: Fields) -> MediaType? {
        fields.first(.contentType).flatMap { MediaType($0) }
    }

    /// Type and subtype without parameters, in lower case, such as `video/mp2t`.
    package var essence: String { "\(type)/\(subtype)" }

    /// Returns the value of the first parameter of this name, ignoring case.
    package func parameter(_ name: String) -> String? {
        parameters.first { ASCII.equalIgnoringCase($0.name, name) }?.value
    }

    static func parameters(_ cursor: inout FieldCursor) -> [Parameter] {
        var parameters: [Parameter] = []
        while cursor.skip(ASCII.semicolon) {
            cursor.skipOWS()
            let name = cursor.token()
            // `;;` and a semicolon at the end are harmless.
            if name.isEmpty, cursor.isAtEnd || cursor.peek == ASCII.semicolon { continue }
            guard !name.isEmpty, cursor.skip(ASCII.equals) else { return parameters }
            let value = cursor.quotedString() ?? [UInt8](cursor.token())
            parameters.append(
                Parameter(name: ASCII.lowercased(name.text), value: value[...].text))
            cursor.skipOWS()
        }
        return parameters
    }
}

extension MediaType: CustomStringConvertible {
    /// The type as written in a field.
    package var description: String {
        parameters.reduce(into: essence) { text, parameter in
            let value = parameter.value
            if !value.isEmpty, value.utf8.allSatisfy(ASCII.isToken) {
                text += "; \(parameter.name)=\(value)"
                return
            }
            var quoted: [UInt8] = []
            for byte in value.utf8 {
                if byte == ASCII.quote || byte == ASCII.backslash {
                    quoted.append(ASCII.backslash)
                }
                quoted.append(byte)
            }
            text += "; \(parameter.name)=\"\(quoted[...].text)\""
        }
    }
}
