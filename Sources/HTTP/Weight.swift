import URISyntax

/// The weight of a member of a list that a client sends, such as `de;q=0.5` (RFC 9110 section
/// 12.4.2).
package enum Weight {
    /// Parses a weight in thousandths, 0 to 1,000.
    ///
    /// A number above 1 that begins with `1.` counts as 1; digits after the third, which the grammar
    /// excludes and clients that print a fraction send, are ignored.
    ///
    /// - Parameter text: what follows `q=`.
    /// - Returns: nil for any other text.
    package static func thousandths(_ text: Substring) -> Int? {
        var bytes = text.utf8.makeIterator()
        guard let whole = bytes.next(), whole == 0x30 || whole == 0x31 else { return nil }
        var weight = whole == 0x31 ? 1_000 : 0
        guard let point = bytes.next() else { return weight }
        guard point == 0x2E else { return nil }
        var unit = 100
        while let digit = bytes.next() {
            guard ASCII.isDigit(digit) else { return nil }
            weight += Int(digit - 0x30) * unit
            unit /= 10
        }
        return min(weight, 1_000)
    }
}
