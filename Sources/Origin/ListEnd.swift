// Whether a playlist that ends with its connection was cut: such a body is never known to be
// complete (RFC 9112 section 8).
import URISyntax

/// What the text of a playlist shows of its end.
struct ListEnd {
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

    private let endsInLineFeed: Bool
    /// True if the last tag of a segment has no URI behind it.
    private let hasOpenSegment: Bool
    /// The last line, without its end.
    private let lastLine: ArraySlice<UInt8>
    /// Nil if there is no URI.
    private let lastURI: ArraySlice<UInt8>?

    /// True if the last line says that no segment follows.
    private var isEnded: Bool { lastLine.elementsEqual("#EXT-X-ENDLIST".utf8) }

    init(_ text: [UInt8]) {
        var isOpen = false
        var last = text[..<0]
        var uri: ArraySlice<UInt8>?
        for line in text.split(whereSeparator: {
            $0 == ASCII.lineFeed || $0 == ASCII.carriageReturn
        }) {
            last = line
            if line.first != UInt8(ascii: "#") {
                isOpen = false
                uri = line
            } else if line.starts(with: "#EXTINF".utf8) {
                isOpen = true
            }
        }
        endsInLineFeed = text.last == ASCII.lineFeed
        hasOpenSegment = isOpen
        lastLine = last
        lastURI = uri
    }

    /// True if the playlist was cut, by comparison with the one that was received before it.
    ///
    /// Where playlists end without a line feed, or with the tag of a segment, only the loss of all
    /// URIs tells: many origins write so.
    func isCut(after former: ListEnd) -> Bool {
        guard let formerURI = former.lastURI else { return false }
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
