// Parses JSON texts that API clients send (RFC 8259); nesting depth is limited.
//
// Not Foundation's decoder: it loses the order of members and the position of an error, and takes
// seven times as long for values of any shape (decision 19).
import Numbers

/// A JSON syntax error.
package struct JSONFault: Error, Equatable, CustomStringConvertible {
    package let message: String
    /// The number of bytes before the position where it was noticed.
    package let offset: Int

    package var description: String { "\(message) at byte \(offset)" }
}

extension JSONValue {
    /// Parses one value.
    ///
    /// - Parameter text: UTF-8; only whitespace may surround the value.
    /// - Throws: `JSONFault` with the position of the first error.
    package init(parsing text: [UInt8]) throws(JSONFault) {
        var reader = JSONReader(text)
        self = try reader.value(depth: 0)
        try reader.end()
    }

    /// Returns the value of a member; nil if it is absent or this is not an object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    package var asList: [JSONValue]? {
        if case .list(let values) = self { return values }
        return nil
    }

    package var asText: String? {
        if case .text(let text) = self { return text }
        return nil
    }

    package var asNumber: Double? {
        switch self {
        case .number(let number): Double(number)
        case .fraction(let fraction): fraction
        default: nil
        }
    }
}

private struct JSONReader {
    private let text: [UInt8]
    private var offset = 0

    /// Deeper texts are rejected: each level uses stack.
    private static let deepest = 32

    init(_ text: [UInt8]) { self.text = text }

    private var next: UInt8? { offset < text.count ? text[offset] : nil }

    private func fault(_ message: String) -> JSONFault {
        JSONFault(message: message, offset: offset)
    }

    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
            offset += 1
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        offset += 1
        return true
    }

    mutating func end() throws(JSONFault) {
        skipBlanks()
        guard offset == text.count else { throw fault("something follows the value") }
    }

    mutating func value(depth: Int) throws(JSONFault) -> JSONValue {
        guard depth < Self.deepest else { throw fault("the value is nested too deep") }
        skipBlanks()
        switch next {
        case 0x7B: return try object(depth)
        case 0x5B: return try list(depth)
        case 0x22: return .text(try string())
        case 0x74: return try word("true", .truth(true))
        case 0x66: return try word("false", .truth(false))
        case 0x6E: return try word("null", .null)
        case 0x2D: return try number()
        case nil: throw fault("the text ends where a value should be")
        case let byte?:
            guard (0x30...0x39).contains(byte) else {
                throw fault("a value cannot begin with this character")
            }
            return try number()
        }
    }

    private mutating func word(
        _ word: String, _ value: JSONValue
    ) throws(JSONFault) -> JSONValue {
        guard text[offset...].starts(with: word.utf8) else {
            throw fault("only the words true, false and null are values")
        }
        offset += word.utf8.count
        return value
    }

    private mutating func object(_ depth: Int) throws(JSONFault) -> JSONValue {
        offset += 1
        var members: [JSONValue.Member] = []
        skipBlanks()
        if take(0x7D) { return .object([]) }
        while true {
            skipBlanks()
            guard next == 0x22 else { throw fault("a member needs a name in quotes") }
            let name = try string()
            skipBlanks()
            guard take(0x3A) else { throw fault("a colon is missing") }
            members.append(JSONValue.Member(name, try value(depth: depth + 1)))
            skipBlanks()
            if take(0x7D) { return .object(members) }
            guard take(0x2C) else { throw fault("a comma or } is missing") }
        }
    }

    private mutating func list(_ depth: Int) throws(JSONFault) -> JSONValue {
        offset += 1
        var values: [JSONValue] = []
        skipBlanks()
        if take(0x5D) { return .list([]) }
        while true {
            values.append(try value(depth: depth + 1))
            skipBlanks()
            if take(0x5D) { return .list(values) }
            guard take(0x2C) else { throw fault("a comma or ] is missing") }
        }
    }

    private mutating func number() throws(JSONFault) -> JSONValue {
        let start = offset
        while let byte = next,
            (0x30...0x39).contains(byte) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains(byte)
        {
            offset += 1
        }
        let written = String(decoding: text[start..<offset], as: UTF8.self)
        if let whole = ExternalNumber.integer(written, in: Int64.min...Int64.max) {
            return .number(whole)
        }
        let finite = -Double.greatestFiniteMagnitude...Double.greatestFiniteMagnitude
        guard let value = ExternalNumber.decimal(written, in: finite) else {
            offset = start
            throw fault("this is not a number")
        }
        return .fraction(value)
    }

    private mutating func string() throws(JSONFault) -> String {
        offset += 1
        var bytes: [UInt8] = []
        while let byte = next {
            offset += 1
            switch byte {
            case 0x22:
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw fault("the string is not UTF-8")
                }
                return text
            case 0x5C: try escape(into: &bytes)
            case 0..<0x20: throw fault("a string has an unescaped control character")
            default: bytes.append(byte)
            }
        }
        throw fault("a string has no end")
    }

    private mutating func escape(into bytes: inout [UInt8]) throws(JSONFault) {
        guard let byte = next else { throw fault("a string has no end") }
        offset += 1
        switch byte {
        case 0x22, 0x5C, 0x2F: bytes.append(byte)
        case 0x62: bytes.append(0x08)
        case 0x66: bytes.append(0x0C)
        case 0x6E: bytes.append(0x0A)
        case 0x72: bytes.append(0x0D)
        case 0x74: bytes.append(0x09)
        case 0x75: bytes.append(contentsOf: String(Character(try scalar())).utf8)
        default: throw fault("the character after \\ makes no escape")
        }
    }

    /// Parses the scalar of `XXXX`, or of a surrogate pair.
    private mutating func scalar() throws(JSONFault) -> Unicode.Scalar {
        let first = try unit()
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, take(0x5C), take(0x75) else {
            throw fault("a surrogate lacks its partner")
        }
        let second = try unit()
        guard (0xDC00..<0xE000).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
        else { throw fault("a surrogate lacks its partner") }
        return scalar
    }

    private mutating func unit() throws(JSONFault) -> UInt32 {
        guard offset + 4 <= text.count,
            let digits = String(validating: text[offset..<offset + 4], as: UTF8.self),
            digits.allSatisfy(\.isHexDigit),
            let unit = ExternalNumber.integer(
                digits, in: 0...0xFFFF as ClosedRange<UInt32>, radix: 16)
        else { throw fault("\\u needs four digits") }
        offset += 4
        return unit
    }
}
