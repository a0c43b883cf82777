import URISyntax

/// The variables of EXT-X-DEFINE and their substitution (8216bis, 4.3 and 4.4.2.3).
struct Variables {
    private(set) var values: [String: String] = [:]
    /// The bytes of all names and values, limited because sessions keep them in memory.
    private(set) var byteCount = 0

    /// Defines a variable; returns false, and changes nothing, if it is already defined.
    mutating func define(_ name: String, as value: String) -> Bool {
        guard values[name] == nil else { return false }
        values[name] = value
        byteCount += name.utf8.count + value.utf8.count
        return true
    }

    /// True if `text` may contain a variable reference, which is rare.
    static func mayOccur(in text: ArraySlice<UInt8>) -> Bool {
        let span = text.span
        guard span.count > 3 else { return false }
        for index in 0..<span.count - 1 where span[index] == 0x7B && span[index + 1] == 0x24 {
            return true
        }
        return false
    }

    enum Expansion {
        case text([UInt8])
        case undefined(name: String)
        case tooLong
    }

    /// Replaces each `{$name}`; braces around anything that is not a variable name are kept.
    func expand(_ text: ArraySlice<UInt8>) -> Expansion {
        var output: [UInt8] = []
        var index = text.startIndex
        while index < text.endIndex {
            guard let name = Self.name(at: index, in: text) else {
                output.append(text[index])
                index += 1
                continue
            }
            let key = String(decoding: text[name], as: UTF8.self)
            guard let value = values[key] else { return .undefined(name: key) }
            output.append(contentsOf: value.utf8)
            // Bounded, so that a few definitions cannot multiply into gigabytes.
            guard output.count <= AbsoluteURL.maximumLength else { return .tooLong }
            index = name.upperBound + 1
        }
        return .text(output)
    }

    /// Returns the query parameters of a playlist's URL, decoded; the first of each name counts.
    ///
    /// Called at most once a pass, however many definitions need them. A parameter without a value
    /// is left out: it cannot define a variable (8216bis, 4.4.2.3).
    static func queryParameters(of url: AbsoluteURL) -> [[UInt8]: [UInt8]] {
        guard let query = url.queryRange else { return [:] }
        var values: [[UInt8]: [UInt8]] = [:]
        for argument in url.bytes[query].split(separator: 0x26) {
            guard let equals = argument.firstIndex(of: 0x3D) else { continue }
            let name = PercentCoding.decode(argument[..<equals])
            guard values[name] == nil else { continue }
            values[name] = PercentCoding.decode(argument[(equals + 1)...])
        }
        return values
    }

    /// Returns the range of the name in a `{$name}` that starts at `index`.
    private static func name(at index: Int, in text: ArraySlice<UInt8>) -> Range<Int>? {
        guard text[index...].starts(with: [0x7B, 0x24]) else { return nil }
        let start = index + 2
        var end = start
        while end < text.endIndex,
            ASCII.isAlphanumeric(text[end]) || text[end] == 0x2D || text[end] == 0x5F
        {
            end += 1
        }
        return end > start && end < text.endIndex && text[end] == 0x7D ? start..<end : nil
    }
}
