// Whether a playlist that ends with its connection was cut: such a body is never known to be
// complete (RFC 9112 section 8).
import Numbers
package import Posix
import URISyntax

/// What the text of a playlist shows of its end.
package struct ListEnd {
    /// What the URIs of a playlist have in common.
    private struct URIForm: Equatable {
        let nameExtension: [UInt8]
        let queryLength: Int

        init(_ line: ArraySlice<UInt8>) {
            let path = line.prefix { $0 != UInt8(ascii: "?") }
            let start = path.lastIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ".") }
            nameExtension =
                start.map { path[$0] == UInt8(ascii: ".") ? Array(path[$0...]) : [] } ?? []
            queryLength = line.count - path.count
        }
    }

    private static let targetTag = "#EXT-X-TARGETDURATION:".utf8

    private let text: [UInt8]
    private let endsInLineFeed: Bool
    /// True if the last tag of a segment has no URI behind it.
    private let hasOpenSegment: Bool
    /// True if it has a segment, or the tag of one, as no multivariant playlist has.
    private let hasSegments: Bool
    /// True if it has the tag of a variant stream or a rendition, as only multivariant playlists
    /// have.
    private let hasVariants: Bool
    /// True if the last tag of a variant stream has no URI behind it.
    private let hasOpenVariant: Bool
    private let lineCount: Int
    /// The last line, without its end.
    private let lastLine: ArraySlice<UInt8>
    /// Nil if there is no URI.
    private let lastURI: ArraySlice<UInt8>?

    /// The target duration, between 1 and 20 s.
    private let target: Int64
    /// The age beyond which the playlist gives way to any other: three target durations, which a
    /// player buffers (RFC 8216 section 6.3.3), between 3 and 60 s.
    private var lifetime: Interval { Interval.seconds(3 * target) }

    /// True if the last line says that no segment follows.
    private var isEnded: Bool { lastLine.elementsEqual("#EXT-X-ENDLIST".utf8) }

    /// True for a playlist that does not change with time: one that has ended, or a multivariant
    /// one.
    private var isLasting: Bool { isEnded || !hasSegments }

    /// True for a multivariant playlist whose text ends as a cut one does: within a line, or after
    /// the tag of a variant stream.
    ///
    /// Many origins write no line feed at the end: only a body that does not prove its end may be
    /// cut.
    package var mayBeCut: Bool {
        hasVariants && !hasSegments && (!endsInLineFeed || hasOpenVariant)
    }

    package init(_ text: [UInt8]) {
        self.text = text
        var isOpen = false
        var isMedia = false
        var (hasVariants, isVariantOpen) = (false, false)
        var lines = 0
        var last = text[..<0]
        var uri: ArraySlice<UInt8>?
        var stated: Int64?
        for line in text.split(whereSeparator: {
            $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn
        }) {
            last = line
            lines += 1
            if line.first != UInt8(ascii: "#") {
                (isOpen, isVariantOpen) = (false, false)
                uri = line
            } else if line.starts(with: "#EXTINF".utf8) {
                (isOpen, isMedia) = (true, true)
            } else if line.starts(with: "#EXT-X-STREAM-INF:".utf8) {
                (hasVariants, isVariantOpen) = (true, true)
            } else if line.starts(with: "#EXT-X-MEDIA:".utf8) {
                hasVariants = true
            } else if line.starts(with: Self.targetTag) {
                let number = line.dropFirst(Self.targetTag.count)
                stated = ExternalNumber.integer(
                    String(decoding: number, as: UTF8.self), in: 0...Int64.max)
            }
        }
        endsInLineFeed = text.last == ASCII.lineFeed
        hasOpenSegment = isOpen
        hasSegments = isMedia
        self.hasVariants = hasVariants
        hasOpenVariant = isVariantOpen
        lineCount = lines
        lastLine = last
        lastURI = uri
        target = min(max(stated ?? 6, 1), 20)
    }

    /// True if the playlist was cut, by comparison with the one that was received before it.
    ///
    /// Where playlists end without a line feed, or with the tag of a segment, only the loss of all
    /// URIs tells: many origins write so. Beside an old one nothing tells: the origin may end its
    /// playlists in another way now, or its channel may be off the air. Only the beginning of a
    /// multivariant playlist, or of one that has ended, is compared with it whatever its age.
    ///
    /// A multivariant playlist whose last variant has no URI takes the place of no whole one. Of two
    /// that may both be cut, the longer one is kept.
    ///
    /// - Parameters:
    ///   - former: the playlist that was received before.
    ///   - age: the time since the origin sent it, or said that it is current; nil if unknown.
    /// - Returns: false if the received playlist replaces the former one.
    package func isCut(after former: ListEnd, age: Interval?) -> Bool {
        guard let formerURI = former.lastURI else { return false }
        if hasOpenVariant, former.hasVariants, !former.mayBeCut { return true }
        let isRecent = age.map { $0 <= former.lifetime } ?? false
        let isBeginning = former.text.starts(with: text)
        guard isRecent || (former.isLasting && isBeginning) else { return false }
        if mayBeCut, former.mayBeCut {
            return isBeginning
                ? text.count < former.text.count : lineCount < former.lineCount
        }
        // An event that is over may list no segment any more, and says that it ends there.
        guard let lastURI else { return !isEnded }
        guard former.endsInLineFeed, !endsInLineFeed else { return false }
        if hasOpenSegment { return !former.hasOpenSegment }
        guard lastLine.first == UInt8(ascii: "#") else {
            return URIForm(lastURI) != URIForm(formerURI)
        }
        return !isEnded
    }
}
