// Lengths of time as people write them into entries: `2h`, `90m`, `1h30m`, `3600`.
import URISyntax

/// Reads how far a window shall reach back, or how long something shall last.
package enum WindowLength {
    /// The longest window that time shift keeps, in seconds: a day.
    package static let longest = 86_400

    private static let units: [UInt8: Int] = [
        UInt8(ascii: "s"): 1, UInt8(ascii: "m"): 60, UInt8(ascii: "h"): 3_600,
        UInt8(ascii: "d"): 86_400,
    ]

    /// Seconds of a text: whole numbers with s, m, h or d behind each; one alone is in seconds.
    ///
    /// - Parameters:
    ///   - text: what was written.
    ///   - longest: the most seconds that are allowed.
    /// - Returns: 1...longest; nil for anything else.
    package static func seconds(_ text: some StringProtocol, longest: Int = longest) -> Int? {
        guard text.utf8.count <= 16 else { return nil }
        var total = 0
        var number: Int?
        var last = Int.max
        for byte in text.utf8 {
            if ASCII.isDigit(byte) {
                number = (number ?? 0) * 10 + Int(byte - 0x30)
                guard number ?? 0 <= 100_000_000 else { return nil }
            } else {
                // Larger units come first, so that `5m5m` is a slip and not ten minutes.
                guard let unit = units[byte], let count = number, unit < last else { return nil }
                total += count * unit
                last = unit
                number = nil
            }
        }
        if let number {
            guard last == .max else { return nil }
            total = number
        }
        return (1...longest).contains(total) ? total : nil
    }

    /// The shortest text that `seconds` reads as this many.
    package static func text(_ seconds: Int) -> String {
        var rest = seconds
        var text = ""
        for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] where rest >= size {
            text += "\(rest / size)\(unit)"
            rest %= size
        }
        return text.isEmpty ? "0s" : text
    }
}
