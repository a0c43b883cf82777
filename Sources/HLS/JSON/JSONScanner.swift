/// A cursor over a JSON document (RFC 8259), for code that looks at its structure.
struct JSONScanner {
    let body: [UInt8]
    /// The offset of the next byte.
    var cursor: Int

    init(_ body: [UInt8], from cursor: Int = 0) {
        self.body = body
        self.cursor = cursor
    }

    /// Creates a cursor behind the byte order mark of a document, if it has one.
    init(document body: [UInt8]) {
        self.init(body, from: PlaylistDetector.markLength(of: body))
    }

    var isAtEnd: Bool { cursor >= body.count }

    mutating func skipBlanks() {
        while cursor < body.count, JSONText.isBlank(body[cursor]) { cursor += 1 }
    }

    /// True if the next byte after blanks is `byte`; skips the blanks.
    mutating func isNext(_ byte: UInt8) -> Bool {
        skipBlanks()
        return cursor < body.count && body[cursor] == byte
    }

    /// Skips blanks and `byte`; returns false if another byte follows the blanks.
    mutating func take(_ byte: UInt8) -> Bool {
        guard isNext(byte) else { return false }
        cursor += 1
        return true
    }

    /// Skips blanks and a string; returns its range without the quotes.
    ///
    /// Returns nil, and skips only the blanks, if there is no string or it has no end.
    mutating func string() -> Range<Int>? {
        guard isNext(0x22) else { return nil }
        let start = cursor + 1
        var end = start
        while end < body.count, body[end] != 0x22 { end += body[end] == 0x5C ? 2 : 1 }
        guard end < body.count else { return nil }
        cursor = end + 1
        return start..<end
    }

    /// Skips a number, `true`, `false` or `null`; returns false if there is none.
    mutating func scalar() -> Bool {
        let start = cursor
        while cursor < body.count, JSONText.isScalarByte(body[cursor]) { cursor += 1 }
        return cursor > start
    }
}
