// Durations as users write them in entries: `2h`, `90m`, `1h30m`, `3600`.
import URISyntax

/// Parses the length of a window or of a recording.
package enum WindowLength {
    /// The longest window that time shift keeps, in seconds: a day.
    package static let longest = 86_400

    /// The letters of the units with their seconds, the longest first.
    private static let units: [(name: Unicode.Scalar, seconds: Int)] = [
        ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1),
    ]

    /// Returns the seconds of a text: whole numbers, each followed by s, m, h or d; a single number
    /// is in seconds; nil unless the result is in 1...longest.
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
                // Units must decrease, so that `5m5m` is an error and not ten minutes.
                guard let unit = units.first(where: { UInt8(ascii: $0.name) == byte })?.seconds,
                    let count = number, unit < last
                else { return nil }
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

    /// Returns the shortest text that `seconds(_:longest:)` parses as this number.
    package static func text(_ seconds: Int) -> String {
        var rest = seconds
        var text = ""
        for (unit, size) in units where rest >= size {
            text += "\(rest / size)\(unit)"
            rest %= size
        }
        return text.isEmpty ? "0s" : text
    }
}
