/// A pattern of key rules: `*` matches any bytes, `?` matches one.
package struct KeyGlob: Hashable, Sendable, CustomStringConvertible {
    private let pattern: [UInt8]
    /// The pattern as written.
    package var description: String { String(decoding: pattern, as: UTF8.self) }
    /// True if the pattern can match more than one text.
    package let isWild: Bool

    /// The length of all matches; nil for a pattern with wildcards.
    var length: Int? { isWild ? nil : pattern.count }

    package init(_ text: some StringProtocol) {
        pattern = Array(text.utf8)
        isWild = pattern.contains(0x2A) || pattern.contains(0x3F)
    }

    /// True if all of `bytes` match; case-sensitive, escapes are not decoded.
    ///
    /// Takes time proportional to the product of both lengths in the worst case.
    package func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
        // Most patterns have no wildcard, and most names have another length.
        guard isWild else { return bytes.count == pattern.count && bytes.elementsEqual(pattern) }
        var at = bytes.startIndex
        var index = 0
        // The place to retry from if the text after the last `*` does not match: one byte further.
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

    /// True if all of `text` matches.
    package func matches(_ text: String) -> Bool { matches(Array(text.utf8)[...]) }
}
