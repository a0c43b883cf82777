/// A URL stored as a folder that it shares with others and a range of a document.
///
/// Long playlists name thousands of resources in one folder: their URLs are copied only when
/// needed.
package struct JoinedURL: Sendable {
    package let folder: URLFolder
    /// The range of path and query in `document`, after the folder.
    package let rest: Range<Int>
    /// The range of the path's last segment in `document`; may be empty.
    package let name: Range<Int>
    /// The last byte of the name; 0 if it is empty.
    package let lastOfName: UInt8
    /// True if the name consists of letters, digits, `-`, `.` and `_`, and is not empty.
    package let hasSafeName: Bool

    /// The document that contains the rest of the URL.
    package var document: [UInt8] { folder.document }

    /// The URL in one piece; makes a copy.
    package var url: AbsoluteURL { folder.url(at: offsets) }

    /// The place of the URL, for tables of many URLs of one folder.
    package var offsets: Offsets {
        Offsets(
            restStart: UInt32(rest.lowerBound), restEnd: UInt32(rest.upperBound),
            nameStart: UInt32(name.lowerBound), nameEnd: UInt32(name.upperBound))
    }

    /// The places of `rest` and `name` in the document: small, and without reference counting.
    package struct Offsets: Sendable {
        fileprivate let restStart: UInt32
        fileprivate let restEnd: UInt32
        fileprivate let nameStart: UInt32
        fileprivate let nameEnd: UInt32

        fileprivate var rest: Range<Int> { Int(restStart)..<Int(restEnd) }
    }

    /// The number of bytes of the URL.
    package var count: Int { folder.bytes.count + rest.count }

    /// `AbsoluteURL.tailDigest` of this URL.
    package var tailDigest: UInt32 { folder.tailDigest(at: offsets) }

    /// True if this is the same URL as `other`, also across documents; copies nothing if their
    /// folders are equal.
    package func isSame(as other: JoinedURL) -> Bool {
        // Folders learned from other documents are other objects.
        folder === other.folder || folder.isSame(as: other.folder)
            ? isSameRest(as: other) : isSame(as: other.url)
    }

    private func isSameRest(as other: JoinedURL) -> Bool {
        rest.count == other.rest.count
            && EightBytes.agree(
                document.span, rest, other.document.span, from: other.rest.lowerBound)
    }

    /// True if this is `url`; copies nothing.
    package func isSame(as url: AbsoluteURL) -> Bool { folder.isSame(at: offsets, as: url) }
}

extension AbsoluteURL {
    /// A digest of the text after the path's last slash, to tell unequal URLs apart quickly.
    ///
    /// Equal URLs have equal digests. Not secret: anybody can construct two URLs that collide.
    package var tailDigest: UInt32 {
        EightBytes.digest(bytes.span, lastPathSegmentRange.lowerBound..<bytes.count)
    }
}

/// The common part of the URLs of one folder.
///
/// While a document is read there is one object for each folder, so that values derived from the
/// folder can be cached by its identity.
package final class URLFolder: Sendable {
    /// Scheme, authority and path up to and including its last slash.
    package let bytes: [UInt8]
    /// A URL with this authority.
    package let member: AbsoluteURL
    /// The document that is being read.
    ///
    /// Stored here, so that each of its URLs holds only one reference.
    package let document: [UInt8]

    init(of url: AbsoluteURL, in document: [UInt8]) {
        member = url
        self.document = document
        bytes = Array(url.bytes[..<url.lastPathSegmentRange.lowerBound])
    }

    /// Returns the URL at a place in the document; makes a copy.
    package func url(at offsets: JoinedURL.Offsets) -> AbsoluteURL {
        let rest = document[offsets.rest]
        var url: [UInt8] = []
        url.reserveCapacity(bytes.count + rest.count)
        url.append(contentsOf: bytes)
        url.append(contentsOf: rest)
        let queryMark = bytes.count + Int(offsets.nameEnd - offsets.restStart)
        return AbsoluteURL(bytes: url, sharingAuthorityWith: member, queryMark: queryMark)
    }

    /// Returns `AbsoluteURL.tailDigest` of the URL at a place in the document.
    package func tailDigest(at offsets: JoinedURL.Offsets) -> UInt32 {
        let document = self.document
        return EightBytes.digest(
            document.span, Int(offsets.nameStart)..<Int(offsets.restEnd))
    }

    /// True if the URL at a place in the document is `url`; copies nothing.
    package func isSame(at offsets: JoinedURL.Offsets, as url: AbsoluteURL) -> Bool {
        let rest = offsets.rest
        let (document, own, its) = (self.document, bytes, url.bytes)
        return its.count == own.count + rest.count
            && EightBytes.agree(document.span, rest, its.span, from: own.count)
            && EightBytes.agree(own.span, own.indices, its.span, from: 0)
    }

    fileprivate func isSame(as other: URLFolder) -> Bool {
        let (own, its) = (bytes, other.bytes)
        return own.count == its.count && EightBytes.agree(own.span, own.indices, its.span, from: 0)
    }
}

/// The folder that the last reference of a document resolved to.
///
/// References with equal text up to their last slash name resources of one folder (RFC 3986, 5.2),
/// whatever that text is.
package struct FolderMemory: Sendable {
    private let document: [UInt8]
    /// The range in the document of the last learned reference up to its last slash.
    private var prefix = 0..<0
    private var folder: URLFolder?

    package init(document: [UInt8]) {
        self.document = document
    }

    /// Records the URL that the reference in `range` resolved to.
    package mutating func learn(_ range: Range<Int>, as url: AbsoluteURL) {
        let path = range.prefix { document[$0] != 0x3F && document[$0] != 0x23 }
        let nameStart = path.last { document[$0] == 0x2F }.map { $0 + 1 } ?? range.lowerBound
        let name = document[nameStart..<path.endIndex]
        // Dot segments, escapes or variables have changed the name: it cannot be joined.
        guard url.bytes[url.lastPathSegmentRange].elementsEqual(name),
            !url.pathRange.isEmpty, !name.isEmpty
        else { return folder = nil }
        prefix = range.lowerBound..<nameStart
        folder = URLFolder(of: url, in: document)
    }

    /// Returns the URL of the reference in `range`; nil if it needs full resolution.
    package func join(_ range: Range<Int>) -> JoinedURL? {
        guard let folder, range.count > prefix.count else { return nil }
        let span = document.span
        guard EightBytes.agree(span, prefix, span, from: range.lowerBound) else { return nil }
        let start = range.lowerBound + prefix.count
        var tail = Tail(start..<range.upperBound, isWhole: prefix.isEmpty)
        guard tail.read(span), folder.bytes.count + tail.rest.count <= AbsoluteURL.maximumLength
        else { return nil }
        return JoinedURL(
            folder: folder, rest: tail.rest, name: tail.name,
            lastOfName: tail.name.isEmpty ? 0 : span[tail.name.upperBound - 1],
            hasSafeName: tail.isSafe && !tail.name.isEmpty)
    }
}

/// Splits the text after a folder, eight bytes at a time.
private struct Tail {
    private(set) var rest: Range<Int>
    private(set) var name: Range<Int>
    /// True if the name consists of letters, digits, `-`, `.` and `_`.
    private(set) var isSafe = true
    /// True if the folder's part of the reference is empty, so that a scheme could occur here.
    private let isWhole: Bool

    init(_ range: Range<Int>, isWhole: Bool) {
        rest = range
        name = range
        self.isWhole = isWhole
    }

    /// Returns false unless this is a plain rest of a path, with or without a query.
    ///
    /// Plain means: not empty, no dot segment, nothing that could be a scheme, no control byte, and
    /// no brace, which may begin a variable.
    mutating func read(_ span: Span<UInt8>) -> Bool {
        var nameStart = rest.lowerBound
        var index = nameStart
        let end = rest.upperBound
        path: while index < end {
            if index &+ 8 <= end {
                let others = Word(span, at: index).others
                if others == 0 {
                    index &+= 8
                    continue
                }
                index &+= others.trailingZeroBitCount / 8
            }
            let byte = span[index]
            switch byte {
            case 0x23, 0x3F: break path
            case 0x2E: if index == nameStart { return false }
            case 0x2F:
                if index == rest.lowerBound { return false }
                nameStart = index &+ 1
                isSafe = true
            case 0x3A where isWhole && nameStart == rest.lowerBound: return false
            case 0..<0x20, 0x7F, 0x7B: return false
            default: if !Word.isNameByte(byte) { isSafe = false }
            }
            index &+= 1
        }
        name = nameStart..<index
        guard index > rest.lowerBound else { return false }
        return readQuery(span, from: index)
    }

    private mutating func readQuery(_ span: Span<UInt8>, from start: Int) -> Bool {
        var index = start
        let end = rest.upperBound
        while index < end {
            if index &+ 8 <= end, !Word(span, at: index).mayEndQuery {
                index &+= 8
                continue
            }
            let byte = span[index]
            if byte == 0x23 { break }
            if byte < 0x20 || byte == 0x7F || byte == 0x7B { return false }
            index &+= 1
        }
        rest = rest.lowerBound..<index
        return true
    }
}

/// Eight bytes of a text, classified together.
private struct Word {
    /// The first byte in the lowest bits.
    private let bits: UInt64

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highs: UInt64 = 0x8080_8080_8080_8080

    @inline(__always)
    init(_ span: Span<UInt8>, at index: Int) {
        bits = EightBytes.load(span, at: index)
    }

    /// True for letters, digits, `-` and `_`.
    @inline(__always)
    static func isNameByte(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == 0x2D || byte == 0x5F
    }

    /// A word with the high bit set in each byte that is not a letter, digit, `-` or `_`.
    ///
    /// The high bits are cleared first, so that the sums stay below 256 in each byte.
    @inline(__always)
    var others: UInt64 {
        let low = bits & ~Self.highs
        let folded = low | Self.ones &* 0x20
        let letters = Self.range(folded, 0x61, 0x7A)
        let digits = Self.range(low, 0x30, 0x39)
        let dashes = Self.range(low, 0x2D, 0x2D) | Self.range(low, 0x5F, 0x5F)
        return ~(letters | digits | dashes) & Self.highs | bits & Self.highs
    }

    /// True if a control byte, `#` or a brace may be among the bytes; never false if one is.
    @inline(__always)
    var mayEndQuery: Bool {
        let low = bits & ~Self.highs
        let belowBlank = ~(low &+ Self.ones &* (0x80 - 0x20))
        let delete = low &+ Self.ones
        let marks = Self.range(low, 0x23, 0x23) | Self.range(low, 0x7B, 0x7B)
        return (belowBlank | delete | marks) & Self.highs != 0
    }

    /// Returns a word with the high bit set in each byte from `first` to `last`; all bytes must be
    /// below 128.
    @inline(__always)
    private static func range(_ low: UInt64, _ first: UInt64, _ last: UInt64) -> UInt64 {
        (low &+ ones &* (0x80 &- first)) & ~(low &+ ones &* (0x7F &- last)) & highs
    }
}
