// The hints that a player sends with a request (CTA-5004, Common Media Client Data).
import Numbers
import URISyntax

/// The CMCD fields that announce the next request, tell the urgency of this one, and report how
/// playback goes.
package struct PlayerHints: Sendable, Equatable {
    /// `sid`: identifies this playback among others of the same player.
    package var playback: String?
    /// `bl`: the playing time in the player's buffer, in seconds.
    package var bufferSeconds: Double?
    /// `su`: the player is starting, seeking or recovering, and waits for this object.
    package var isStarving = false
    /// `bs`: playback has stalled for lack of media since the player's previous request.
    package var hasStalled = false
    /// `mtp`: the throughput that the player measured, in bits per second.
    package var throughput: Double?
    /// `pr`: the playback rate; 0 is paused.
    package var speed: Double?
    /// `br`: the encoded bit rate of the requested object, in bits per second.
    package var bitRate: Double?
    /// `nor`: the next object, relative to this request's URL, percent-decoded.
    package var nextObject: String?
    /// `nrr`: the byte range of the next object; nil for all of it.
    package var nextRange: Range<Int64>?

    package init() {}

    /// Parses the values of the CMCD header fields, or of the decoded CMCD argument; ignores
    /// unknown and malformed items.
    ///
    /// Each text is a comma-separated list of `key=value` and `key`; nil if no item is of use.
    package init?(_ texts: [String]) {
        for text in texts {
            for (key, value) in Self.items(text) { take(key, value) }
        }
        if self == PlayerHints() { return nil }
    }

    private mutating func take(_ key: String, _ value: String) {
        switch key {
        case "sid": playback = value
        case "bl": bufferSeconds = Self.number(value).map { $0 / 1_000 }
        case "su": isStarving = value != "false"
        case "bs": hasStalled = value != "false"
        case "mtp": throughput = Self.number(value).map { $0 * 1_000 }
        case "pr": speed = Self.number(value)
        case "br": bitRate = Self.number(value).map { $0 * 1_000 }
        case "nor":
            nextObject = PercentCoding.decode(value)
        case "nrr": nextRange = Self.range(value)
        default: break
        }
    }

    /// Splits a list into items; commas inside quotes do not separate.
    private static func items(_ text: String) -> [(String, String)] {
        var items: [(String, String)] = []
        var rest = text[...]
        while !rest.isEmpty {
            var isQuoted = false
            let end =
                rest.firstIndex { character in
                    if character == "\"" { isQuoted.toggle() }
                    return character == "," && !isQuoted
                } ?? rest.endIndex
            let item = rest[..<end].drop { $0 == " " }
            let key = item.prefix { $0 != "=" }
            var value = item.dropFirst(key.count + 1)
            if value.first == "\"", value.last == "\"", value.count > 1 {
                value = value.dropFirst().dropLast()
            }
            if items.count < 64 { items.append((String(key), String(value))) }
            rest = end < rest.endIndex ? rest[rest.index(after: end)...] : ""
        }
        return items
    }

    private static func number(_ text: String) -> Double? {
        // Inner lists (`br=(3000;v 128;a)`) and signs are not supported.
        ExternalNumber.decimal(text, in: 0...1e12)
    }

    /// Parses `1234-5678`; nil for an open end (`1234-`), which cannot be fetched as a part.
    private static func range(_ text: String) -> Range<Int64>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let largest = Int64(ExternalNumber.largest)
        guard parts.count == 2, let first = ExternalNumber.integer(parts[0], in: 0...largest),
            let last = ExternalNumber.integer(parts[1], in: first...largest)
        else { return nil }
        return first..<last + 1
    }
}
