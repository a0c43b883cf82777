// What a player tells of itself with a request (CTA-5004, Common Media Client Data).
import Numbers
import URISyntax

/// The fields that say what will be asked for next, and how urgent it is.
package struct PlayerHints: Sendable, Equatable {
    /// `sid`: names this playback among others of the same player.
    package var playback: String?
    /// `bl`: playing time in the player's buffer, in seconds.
    package var bufferSeconds: Double?
    /// `su`: starting up, seeking or recovering: it waits for this very object.
    package var isStarving = false
    /// `pr`: speed of playing; 0 stands still.
    package var speed: Double?
    /// `br`: bits per second of what is asked for.
    package var bitRate: Double?
    /// `nor`: the next object, relative to this request's URL, percent-encoding taken off.
    package var nextObject: String?
    /// `nrr`: bytes of it; nil for the whole.
    package var nextRange: Range<Int64>?

    package init() {}

    /// Reads the values of the CMCD header fields, or of the decoded CMCD argument; unknown and
    /// broken ones are left out.
    ///
    /// Each text is a list of `key=value` and `key` with commas between; nil where they say nothing
    /// of use.
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
        case "pr": speed = Self.number(value)
        case "br": bitRate = Self.number(value).map { $0 * 1_000 }
        case "nor":
            nextObject = PercentCoding.decode(value)
        case "nrr": nextRange = Self.range(value)
        default: break
        }
    }

    /// The items of a list; a comma inside quotes is none of its own.
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
        // Inner lists (`br=(3000;v 128;a)`) and signs are not for us.
        OutsideNumber.decimal(text, in: 0...1e12)
    }

    /// `1234-5678`, `1234-`: an open end cannot be fetched as a part.
    private static func range(_ text: String) -> Range<Int64>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let largest = Int64(OutsideNumber.largest)
        guard parts.count == 2, let first = OutsideNumber.integer(parts[0], in: 0...largest),
            let last = OutsideNumber.integer(parts[1], in: first...largest)
        else { return nil }
        return first..<last + 1
    }
}
