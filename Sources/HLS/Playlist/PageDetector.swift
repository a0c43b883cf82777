/// Recognizes pages and messages that an origin sends with success in place of media, as captive
/// portals and expired sessions do.
///
/// The bytes of media may be anything, since segments and keys are encrypted: only what no media
/// begins with by chance is recognized. XML other than XHTML is not, for subtitles may be XML.
package enum PageDetector {
    package enum Verdict: Hashable, Sendable {
        /// An HTML page.
        case page
        /// A JSON object.
        case object
        case other
        /// Undecidable so far; more bytes may decide.
        case undecided
    }

    /// The beginnings of HTML pages, in lower case, without `<`.
    private static let beginnings = [
        "!doctype html", "html", "head", "body", "title", "script", "style", "meta", "center",
        "h1>",
    ]
    .map { Array($0.utf8) }

    /// Comments and XML declarations, which may precede the beginning of a page.
    private static let preambles = [("?xml", "?>"), ("!--", "-->")]
        .map { (start: Array($0.0.utf8), end: Array($0.1.utf8)) }

    /// Classifies a body by its first bytes.
    package static func inspect(_ prefix: [UInt8]) -> Verdict {
        var rest = prefix[...]
        if rest.starts(with: PlaylistDetector.byteOrderMark) {
            rest = rest.dropFirst(PlaylistDetector.byteOrderMark.count)
        } else if PlaylistDetector.byteOrderMark.starts(with: rest) {
            return .undecided
        }
        while true {
            rest = rest.drop { isBlank($0) }
            guard let first = rest.popFirst() else { return .undecided }
            if first == 0x7B { return inspectObject(rest, isText: prefix.allSatisfy(isText)) }
            guard first == 0x3C else { return .other }
            let lower = rest.prefix(16).map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
            if beginnings.contains(where: { lower.starts(with: $0) }) { return .page }
            guard let preamble = preambles.first(where: { lower.starts(with: $0.start) }) else {
                let mayBecome = (beginnings + preambles.map(\.start))
                    .contains { $0.starts(with: lower) }
                return mayBecome ? .undecided : .other
            }
            guard let end = rest.firstIndex(of: preamble.end, after: preamble.start.count) else {
                return .undecided
            }
            rest = rest[end...]
        }
    }

    private static func inspectObject(_ rest: ArraySlice<UInt8>, isText: Bool) -> Verdict {
        guard let next = rest.first(where: { !isBlank($0) }) else { return .undecided }
        return isText && (next == 0x22 || next == 0x7D) ? .object : .other
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }

    private static func isText(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || 0x09...0x0D ~= byte
    }
}

extension ArraySlice<UInt8> {
    /// Returns the index behind the first occurrence of a text.
    fileprivate func firstIndex(of text: [UInt8], after count: Int) -> Int? {
        var rest = dropFirst(count)
        while rest.count >= text.count {
            if rest.starts(with: text) { return rest.startIndex + text.count }
            rest = rest.dropFirst()
        }
        return nil
    }
}
