// `CDN-Cache-Control`: cache directives as a structured field (RFC 9213, RFC 8941 section 3.2).
package import HTTP
import Numbers
import URISyntax

/// Parses targeted cache directives.
package enum TargetedDirectives {
    /// Parses the directives of `CDN-Cache-Control`.
    ///
    /// - Returns: Nil if the field is absent, empty or not a well-formed dictionary: it is then
    ///   ignored (RFC 9213 section 2.1). A directive whose value has the wrong type is left out.
    package static func parse(_ fields: Fields) -> CacheControl? {
        guard let bytes = fields.combinedBytes(.cdnCacheControl) else { return nil }
        var reader = DictionaryReader(bytes: bytes)
        guard let members = reader.members(), !members.isEmpty else { return nil }
        var control = CacheControl()
        for (name, value) in members { add(name, value, to: &control) }
        return control
    }

    private static func add(
        _ name: String, _ value: DictionaryReader.Value, to control: inout CacheControl
    ) {
        switch value {
        case .integer(let number):
            addSeconds(name, max(0, min(number, CacheControl.maximumSeconds)), to: &control)
        case .true:
            addFlag(name, to: &control)
        case .string(let text) where name == "no-cache" || name == "private":
            let names = text.split(separator: ",").map {
                ASCII.lowercased($0.filter { $0 != " " })
            }.filter { !$0.isEmpty }
            // As in Cache-Control, an argument without names restricts the whole response.
            let scope: CacheControl.Scope = names.isEmpty ? .response : .fields(names)
            if name == "private" { control.private = scope }
            if name == "no-cache" { control.noCache = scope }
        case .string, .other:
            break
        }
    }

    private static func addSeconds(_ name: String, _ seconds: Int64, to control: inout CacheControl)
    {
        switch name {
        case "max-age": control.maxAge = seconds
        case "s-maxage": control.sharedMaxAge = seconds
        case "stale-while-revalidate": control.staleWhileRevalidate = seconds
        case "stale-if-error": control.staleIfError = seconds
        default: break
        }
    }

    private static func addFlag(_ name: String, to control: inout CacheControl) {
        switch name {
        case "no-store": control.noStore = true
        case "no-cache": control.noCache = .response
        case "private": control.private = .response
        case "public": control.public = true
        case "must-revalidate": control.mustRevalidate = true
        case "proxy-revalidate": control.proxyRevalidate = true
        case "must-understand": control.mustUnderstand = true
        default: break
        }
    }
}

/// Parses a dictionary of structured fields (RFC 8941 section 4.2.2) as strictly as specified: one
/// fault makes the whole field invalid.
struct DictionaryReader {
    enum Value: Equatable {
        case integer(Int64)
        case string(String)
        case `true`
        /// A token, a decimal, a byte sequence, false or an inner list: the value of no directive.
        case other
    }

    private let bytes: [UInt8]
    private var position = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Parses the members in their order; the last one of a repeated name counts.
    ///
    /// - Returns: Nil for a fault.
    mutating func members() -> [(name: String, value: Value)]? {
        var found: [(name: String, value: Value)] = []
        var places: [String: Int] = [:]
        skipBlanks()
        while next != nil {
            guard let name = key() else { return nil }
            var value = Value.true
            if skip(0x3D) {
                guard let read = next == 0x28 ? innerList() : item() else { return nil }
                value = read
            }
            guard parameters() else { return nil }
            if let place = places[name] {
                found[place].value = value
            } else {
                places[name] = found.count
                found.append((name, value))
            }
            skipBlanks()
            if next == nil { return found }
            guard skip(ASCII.comma) else { return nil }
            skipBlanks()
            // A trailing comma is a fault.
            if next == nil { return nil }
        }
        return found
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = next, ASCII.isBlank(byte) { position += 1 }
    }

    private mutating func take(while fits: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = next, fits(byte) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func key() -> String? {
        guard let first = next, (0x61...0x7A).contains(first) || first == 0x2A else { return nil }
        let name = take { byte in
            (0x61...0x7A).contains(byte) || ASCII.isDigit(byte)
                || [0x5F, 0x2D, 0x2E, 0x2A].contains(byte)
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// Skips parameters, which no directive uses; they only have to be well-formed.
    private mutating func parameters() -> Bool {
        while skip(ASCII.semicolon) {
            while skip(ASCII.space) {}
            guard key() != nil else { return false }
            if skip(0x3D), item() == nil { return false }
        }
        return true
    }

    private mutating func innerList() -> Value? {
        guard skip(0x28) else { return nil }
        while true {
            while skip(ASCII.space) {}
            if skip(0x29) { return .other }
            guard item() != nil, parameters() else { return nil }
            guard next == ASCII.space || next == 0x29 else { return nil }
        }
    }

    private mutating func item() -> Value? {
        guard let first = next else { return nil }
        switch first {
        case ASCII.quote: return string()
        case 0x3A: return byteSequence()
        case 0x3F:
            position += 1
            if skip(0x31) { return .true }
            return skip(0x30) ? .other : nil
        case 0x2D, 0x30...0x39: return number()
        case 0x2A, 0x41...0x5A, 0x61...0x7A:
            _ = take { ASCII.isToken($0) || $0 == ASCII.colon || $0 == 0x2F }
            return .other
        default: return nil
        }
    }

    private mutating func number() -> Value? {
        let isNegative = skip(0x2D)
        let digits = take(while: ASCII.isDigit)
        guard digits.count <= 15, let number = DecimalDigits(digits).number else { return nil }
        if skip(0x2E) {
            let fraction = take(while: ASCII.isDigit)
            return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
        }
        return .integer(isNegative ? -number : number)
    }

    private mutating func string() -> Value? {
        position += 1
        var content: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case ASCII.quote: return .string(String(decoding: content, as: UTF8.self))
            case ASCII.backslash:
                guard let escaped = next, escaped == byte || escaped == ASCII.quote else {
                    return nil
                }
                position += 1
                content.append(escaped)
            case 0x20...0x7E: content.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func byteSequence() -> Value? {
        position += 1
        _ = take { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte)
                || [0x2B, 0x2F, 0x3D].contains(byte)
        }
        return skip(0x3A) ? .other : nil
    }
}
