import CachePolicy
package import URISyntax

/// What a purge by prefix selects: the objects of one URL, with any query, and of all below it.
///
/// A prefix ends at a path segment: `http://h/show7` is one of `http://h/show7/1.ts` and of
/// `http://h/show7?x`, not of `http://h/show70`. One that ends with `/` leaves the URL without it.
package struct PurgePrefix: Hashable, Sendable {
    /// A URL as stored ones are, which are normalised; `init` makes the same value of it.
    package let text: String

    /// Takes a normalised URL; nil if it has a query or a blank, or no path.
    package init?(_ text: String) {
        guard let start = text.firstRange(of: "://"),
            text.utf8[start.upperBound...].contains(Self.slash),
            text.utf8.allSatisfy({ $0 > Self.blank && $0 != Self.questionMark })
        else { return nil }
        self.text = text
    }

    /// Returns what the responses below a URL are stored under by the key rules, in any kind of
    /// place; nothing for a URL with a query or a blank.
    package static func all(of url: AbsoluteURL, _ keys: KeyTable) -> Set<PurgePrefix> {
        // A part of a key follows the blank behind its URL.
        guard PurgePrefix(url.normalisedForKey) != nil else { return [] }
        return Set(keys.texts(of: url).compactMap { PurgePrefix(CacheKey.url(ofText: $0)) })
    }

    /// True if a stored URL, or the text of a key, is this one with any query, or below it.
    package func matches(_ url: String) -> Bool {
        let (own, other) = (text.utf8, url.utf8)
        guard other.starts(with: own) else { return false }
        guard own.last != Self.slash, let next = other.dropFirst(own.count).first else {
            return true
        }
        return next == Self.slash || Self.endsPath(next)
    }

    /// Returns the texts of the prefixes of a stored URL, or of the text of a key, that have one of
    /// some lengths in bytes; some of them twice.
    package static func texts(inURL url: String, ofLengths lengths: Set<Int>) -> [Substring] {
        guard let start = url.firstRange(of: "://") else { return [] }
        let bytes = url.utf8
        var found: [Substring] = []
        var index = start.upperBound
        var length = bytes.distance(from: bytes.startIndex, to: index)
        while index < bytes.endIndex, !endsPath(bytes[index]) {
            let next = bytes.index(after: index)
            if bytes[index] == slash {
                if lengths.contains(length) { found.append(url[..<index]) }
                if lengths.contains(length + 1) { found.append(url[..<next]) }
            }
            (index, length) = (next, length + 1)
        }
        if lengths.contains(length) { found.append(url[..<index]) }
        return found
    }

    /// True for the byte behind a path: of a query, or of the blank behind the URL in a key.
    private static func endsPath(_ byte: UInt8) -> Bool { byte == questionMark || byte == blank }

    private static let slash = UInt8(ascii: "/")
    private static let questionMark = UInt8(ascii: "?")
    private static let blank = UInt8(ascii: " ")
}
