import URISyntax

/// An entity tag (RFC 9110 section 8.8.3).
package struct EntityTag: Sendable, Hashable {
    /// The text between the quotes.
    package let opaque: String
    /// True if the tag is marked `W/`: equivalent content, possibly with other bytes.
    package let isWeak: Bool

    package init(opaque: String, isWeak: Bool = false) {
        self.opaque = opaque
        self.isWeak = isWeak
    }

    /// Parses one tag, such as `"a1"` or `W/"a1"`.
    ///
    /// - Returns: Nil for any other value, including unquoted tags and tags that are not UTF-8: as
    ///   text, two of the latter could seem equal.
    package init?(_ value: String) {
        self.init(bytes: Array(value.utf8)[...])
    }

    private init?(bytes: ArraySlice<UInt8>) {
        if Self.isPlain(bytes.span) {
            self.init(opaque: bytes.dropFirst().dropLast().text)
            return
        }
        var cursor = FieldCursor(bytes)
        guard let tag = EntityTag.next(&cursor), cursor.isAtEnd else { return nil }
        self = tag
    }

    /// Parses the tag of a response; nil if absent, repeated or malformed.
    package static func parse(_ fields: Fields) -> EntityTag? {
        guard fields.count(of: .etag) == 1 else { return nil }
        return fields.valueBytes(.etag).flatMap { EntityTag(bytes: $0) }
    }

    /// Returns the strong tag of a response as written in a field; nil without one.
    package static func strongText(_ fields: Fields) -> String? {
        guard fields.count(of: .etag) == 1, let value = fields.valueBytes(.etag) else { return nil }
        if isPlain(value.span) { return value.text }
        guard let tag = EntityTag(bytes: value), !tag.isWeak else { return nil }
        return tag.description
    }

    /// True if the bytes are a strong ASCII tag, the common case.
    private static func isPlain(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count >= 2, bytes[0] == ASCII.quote, bytes[bytes.count - 1] == ASCII.quote
        else { return false }
        for index in 1..<(bytes.count - 1) {
            let byte = bytes[index]
            guard byte > ASCII.space, byte < 0x7F, byte != ASCII.quote else { return false }
        }
        return true
    }

    static func next(_ cursor: inout FieldCursor) -> EntityTag? {
        let mark = cursor.take { $0 == 0x57 || $0 == 0x2F }
        guard mark.isEmpty || mark == [0x57, 0x2F], cursor.skip(ASCII.quote) else { return nil }
        // Tags have no escapes: a backslash is an ordinary character.
        let opaque = cursor.take { $0 != ASCII.quote && $0 > ASCII.space && $0 != 0x7F }
        guard cursor.skip(ASCII.quote) else { return nil }
        let text = opaque.text
        guard opaque.allSatisfy({ $0 < 0x80 }) || !text.unicodeScalars.contains("\u{FFFD}") else {
            return nil
        }
        return EntityTag(opaque: text, isWeak: !mark.isEmpty)
    }

    /// True by strong comparison: the bytes are the same (RFC 9110 section 8.8.3.2).
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && isSameOpaque(other)
    }

    /// True by weak comparison: the content is equivalent.
    package func matchesWeakly(_ other: EntityTag) -> Bool {
        isSameOpaque(other)
    }

    private func isSameOpaque(_ other: EntityTag) -> Bool {
        // Compares bytes, because Unicode equivalence must not apply.
        opaque.utf8.elementsEqual(other.opaque.utf8)
    }

    /// True if both are the same tag, byte for byte.
    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.isSameOpaque(right)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(isWeak)
        for byte in opaque.utf8 { hasher.combine(byte) }
    }
}

extension EntityTag: CustomStringConvertible {
    /// The tag as written in a field.
    package var description: String { isWeak ? "W/\"\(opaque)\"" : "\"\(opaque)\"" }
}

/// The value of `If-Match` or `If-None-Match` (RFC 9110 sections 13.1.1 and 13.1.2).
package enum EntityTagList: Sendable, Hashable {
    /// `*`: any representation.
    case any
    /// The well-formed tags; malformed members match nothing.
    case tags([EntityTag])

    /// Parses a value.
    package init(_ value: String) {
        let bytes = Array(value.utf8)[...]
        if bytes.trimmingOWS() == [0x2A] {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        var cursor = FieldCursor(bytes)
        while !cursor.isAtEnd {
            cursor.skipOWS()
            if cursor.skip(ASCII.comma) { continue }
            let tag = EntityTag.next(&cursor)
            cursor.skipOWS()
            if let tag, cursor.isAtEnd || cursor.peek == ASCII.comma {
                tags.append(tag)
            } else {
                _ = cursor.take { $0 != ASCII.comma }
            }
        }
        self = .tags(tags)
    }
}
