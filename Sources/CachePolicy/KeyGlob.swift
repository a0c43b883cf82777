/// Patterns of key rules: `*` stands for any bytes, `?` for one.
package struct KeyGlob: Hashable, Sendable, CustomStringConvertible {
    private let pattern: [UInt8]
    /// The pattern as it was written.
    package var description: String { String(decoding: pattern, as: UTF8.self) }
    /// Whether the pattern stands for more than one text.
    package let isWild: Bool

    /// The bytes of all that fits; nil where they may be more or less.
    var length: Int? { isWild ? nil : pattern.count }

    package init(_ text: some StringProtocol) {
        pattern = Array(text.utf8)
        isWild = pattern.contains(0x2A) || pattern.contains(0x3F)
    }

    /// Whether all of `bytes` fits; case counts, escapes are not decoded.
    ///
    /// Takes time in proportion to the product of both lengths at worst.
    package func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
        // Most patterns are names, and most names are of another length.
        guard isWild else { return bytes.count == pattern.count && bytes.elementsEqual(pattern) }
        var at = bytes.startIndex
        var index = 0
        // Where to go on when what follows the last `*` does not fit: one byte further.
        var retry: (index: Int, at: Int)?
        while at < bytes.endIndex {
            if index < pattern.count, pattern[index] == 0x2A {
                retry = (index + 1, at)
                index += 1
            } else if index < pattern.count, pattern[index] == 0x3F || pattern[index] == bytes[at] {
                index += 1
                at += 1
            } else if let (afterStar, from) = retry {
                retry = (afterStar, from + 1)
                index = afterStar
                at = from + 1
            } else {
                return false
            }
        }
        return pattern[index...].allSatisfy { $0 == 0x2A }
    }

    /// Whether all of `text` fits.
    package func matches(_ text: String) -> Bool { matches(Array(text.utf8)[...]) }
}
