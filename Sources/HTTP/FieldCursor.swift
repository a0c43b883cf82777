import URISyntax

/// A parser of structured field values: tokens, quoted strings, parameters and lists (RFC 9110
/// section 5.6).
///
/// It never fails: it returns what it finds, and the caller decides.
struct FieldCursor {
    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int
    /// True once an unterminated quote was found: searching again from every later quote would take
    /// quadratic time on hostile values.
    private var hasOpenQuote = false

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    init(_ text: String) {
        self.init(Array(text.utf8)[...])
    }

    var isAtEnd: Bool { position >= bytes.endIndex }

    /// The next byte, without consuming it; nil at the end.
    var peek: UInt8? { isAtEnd ? nil : bytes[position] }

    /// Consumes the byte if it is the next one.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        position += 1
        return true
    }

    mutating func skipOWS() {
        while let byte = peek, ASCII.isBlank(byte) { position += 1 }
    }

    /// Consumes a token; empty if none begins here.
    mutating func token() -> ArraySlice<UInt8> {
        take(while: ASCII.isToken)
    }

    /// Consumes bytes while the condition holds.
    mutating func take(while condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = peek, condition(byte) { position += 1 }
        return bytes[start..<position]
    }

    /// Consumes a quoted string and returns its content without escapes; nil, with nothing
    /// consumed, if none begins here or it is not terminated.
    mutating func quotedString() -> [UInt8]? {
        guard peek == ASCII.quote, !hasOpenQuote else { return nil }
        var content: [UInt8] = []
        var index = position + 1
        while index < bytes.endIndex {
            switch bytes[index] {
            case ASCII.quote:
                position = index + 1
                return content
            case ASCII.backslash where index + 1 < bytes.endIndex:
                content.append(bytes[index + 1])
                index += 2
            default:
                content.append(bytes[index])
                index += 1
            }
        }
        hasOpenQuote = true
        return nil
    }

    /// Consumes up to the next `separator` outside a quoted string, or to the end; the separator is
    /// not consumed.
    mutating func skip(to separator: UInt8) {
        while let byte = peek, byte != separator {
            if byte == ASCII.quote, quotedString() != nil { continue }
            position += 1
        }
    }

    /// Returns the members of a comma-separated list, trimmed of white space and without empty
    /// members.
    static func members(of bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        forEachMember(of: bytes) { members.append($0) }
        return members
    }

    /// Calls `body` with each member of a list with this separator, as `members(of:)` returns them.
    static func forEachMember(
        of bytes: ArraySlice<UInt8>, separator: UInt8 = ASCII.comma,
        _ body: (ArraySlice<UInt8>) -> Void
    ) {
        var cursor = FieldCursor(bytes)
        while !cursor.isAtEnd {
            let start = cursor.position
            cursor.skip(to: separator)
            let member = bytes[start..<cursor.position].trimmingOWS()
            if !member.isEmpty { body(member) }
            _ = cursor.skip(separator)
        }
    }
}
