package import URISyntax

/// Rewrites the JSON documents of HLS: steering manifests, asset lists, schedules, chapters.
///
/// Of a steering manifest (8216bis, 7.2) RELOAD-URI and the URIs of pathway clones are replaced.
/// HOST and PARAMS of a clone, which would make the player change our URLs, are renamed so that
/// players ignore them: the clone then plays through the daemon by its base pathway. Of an asset
/// list (8216bis, appendix D) each asset's URI is replaced, of a schedule of date ranges what the
/// same attributes of EXT-X-DATERANGE name, of chapters (session data `com.apple.hls.chapters`)
/// their images. Every other byte stays.
package enum JSONRewriter {
    /// The largest document in bytes; asset lists and manifests have a few kilobytes.
    package static let maximumLength = 4 << 20
    /// The deepest nesting; deeper documents are refused.
    package static let maximumDepth = 64

    /// Rewrites `body`, which came from `base`: its URL after redirects.
    ///
    /// Never blocks. Throws `notJSON`, `tooLarge` or what a URI in a playlist would throw. `map` is that of
    /// `PlaylistRewriter`; the role is `json` for RELOAD-URI, lists and schedules, `image` for the
    /// images of chapters and `playlist` for the rest.
    package static func rewrite(
        _ body: [UInt8], base: AbsoluteURL, map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) -> [UInt8] {
        guard body.count <= maximumLength else {
            throw .tooLarge(byteCount: body.count, limit: maximumLength)
        }
        var pass = JSONPass(body, base: base)
        try pass.run(map)
        return pass.output
    }
}

/// One pass over a JSON document (RFC 8259) that copies all but the strings it replaces.
struct JSONPass {
    /// Where in a document the pass stands, as far as URIs may follow from there.
    private enum Place {
        case document
        case clones
        case clone
        case replacement
        case uris
        case assets
        case asset
        case dateRanges
        case dateRange
        case chapter
        case images
        case image
        case elsewhere

        /// Where the value of a member stands.
        func member(_ key: String) -> Place {
            switch (self, key) {
            case (.document, "PATHWAY-CLONES"): .clones
            case (.document, "ASSETS"): .assets
            case (.document, "DATERANGES"): .dateRanges
            case (.chapter, "images"): .images
            case (.clone, "URI-REPLACEMENT"): .replacement
            case (.replacement, "PER-VARIANT-URIS"), (.replacement, "PER-RENDITION-URIS"): .uris
            default: .elsewhere
            }
        }

        /// Where the elements of an array stand.
        var element: Place {
            switch self {
            case .clones: .clone
            case .assets: .asset
            case .dateRanges: .dateRange
            // Of these documents only chapters are an array.
            case .document: .chapter
            case .images: .image
            default: .elsewhere
            }
        }

        /// What the string value of a member names, if it is a URI.
        func uri(_ key: String) -> (role: ResourceRole, tag: Tag.Name)? {
            switch (self, key) {
            case (.document, "RELOAD-URI"): (.json, .contentSteering)
            case (.asset, "URI"): (.playlist, .dateRange)
            case (.uris, _): (.playlist, .streamInf)
            case (.dateRange, "X-ASSET-URI"): (.playlist, .dateRange)
            case (.dateRange, "X-ASSET-LIST"), (.dateRange, "X-URI"): (.json, .dateRange)
            case (.image, "url"): (.image, .sessionData)
            default: nil
            }
        }

        /// Whether a member would make the player build URLs that are not ours.
        func hides(_ key: String) -> Bool {
            if case .replacement = self { return key == "HOST" || key == "PARAMS" }
            return false
        }
    }

    private let body: [UInt8]
    private let resolver: URLResolver
    private var cursor: Int
    /// Up to here the body has been copied or replaced.
    private var copied: Int
    private(set) var output: [UInt8] = []

    init(_ body: [UInt8], base: AbsoluteURL) {
        self.body = body
        resolver = URLResolver(base: base)
        cursor = body.starts(with: PlaylistDetector.byteOrderMark) ? 3 : 0
        copied = cursor
    }

    mutating func run(_ map: PlaylistRewriter.ReferenceMap) throws(PlaylistError) {
        output.reserveCapacity(body.count * 2)
        try readValue(at: .document, depth: 0, map)
        skipBlanks()
        guard cursor == body.count else { throw .notJSON(offset: cursor) }
        output.append(contentsOf: body[copied...])
    }

    // MARK: Values

    private mutating func readValue(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        skipBlanks()
        guard cursor < body.count, depth < JSONRewriter.maximumDepth else {
            throw .notJSON(offset: cursor)
        }
        switch body[cursor] {
        case 0x7B: try readObject(at: place, depth: depth, map)
        case 0x5B: try readArray(at: place, depth: depth, map)
        case 0x22: _ = try readString()
        default: try readScalar()
        }
    }

    private mutating func readObject(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        cursor += 1
        if take(0x7D) { return }
        repeat {
            skipBlanks()
            let range = try readString()
            let key = String(decoding: JSONText.unescape(body[range]), as: UTF8.self)
            guard take(0x3A) else { throw .notJSON(offset: cursor) }
            if place.hides(key) {
                copy(to: range.lowerBound)
                output.append(contentsOf: "X-ORIGIN-".utf8)
            }
            skipBlanks()
            if let (role, tag) = place.uri(key), cursor < body.count, body[cursor] == 0x22 {
                try replaceString(role, tag, map)
            } else {
                try readValue(at: place.member(key), depth: depth + 1, map)
            }
        } while take(0x2C)
        guard take(0x7D) else { throw .notJSON(offset: cursor) }
    }

    private mutating func readArray(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        cursor += 1
        if take(0x5D) { return }
        repeat { try readValue(at: place.element, depth: depth + 1, map) } while take(0x2C)
        guard take(0x5D) else { throw .notJSON(offset: cursor) }
    }

    private mutating func readScalar() throws(PlaylistError) {
        let start = cursor
        while cursor < body.count, JSONText.isScalarByte(body[cursor]) { cursor += 1 }
        guard cursor > start else { throw .notJSON(offset: cursor) }
    }

    /// Steps over a string; returns its range without the quotes.
    private mutating func readString() throws(PlaylistError) -> Range<Int> {
        guard cursor < body.count, body[cursor] == 0x22 else { throw .notJSON(offset: cursor) }
        let start = cursor + 1
        cursor = start
        while cursor < body.count, body[cursor] != 0x22 {
            cursor += body[cursor] == 0x5C ? 2 : 1
        }
        guard cursor < body.count else { throw .notJSON(offset: start - 1) }
        cursor += 1
        return start..<cursor - 1
    }

    private mutating func replaceString(
        _ role: ResourceRole, _ tag: Tag.Name, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let range = try readString()
        let line = 1 + body[..<range.lowerBound].count { $0 == 0x0A }
        let url = try RewritePass.resolve(
            JSONText.unescape(body[range])[...], role, by: resolver, line: line, tag: tag.rawValue)
        guard let url else { return }
        let reference = ResourceReference(
            place: .whole(url), role: role, tag: tag, line: line, mediaSequence: 0, partIndex: nil,
            discontinuitySequence: 0, duration: nil, byteRange: nil, isGap: false, bandwidth: nil,
            context: SegmentContext(hasMap: false))
        var replacement: [UInt8] = []
        guard map(reference, &replacement) else { return }
        copy(to: range.lowerBound)
        JSONText.append(replacement, to: &output)
        copied = range.upperBound
    }

    // MARK: Bytes

    private mutating func copy(to end: Int) {
        output.append(contentsOf: body[copied..<end])
        copied = end
    }

    private mutating func skipBlanks() {
        while cursor < body.count, JSONText.isBlank(body[cursor]) { cursor += 1 }
    }

    /// Steps over `byte` behind blanks; returns false where something else stands there.
    private mutating func take(_ byte: UInt8) -> Bool {
        skipBlanks()
        guard cursor < body.count, body[cursor] == byte else { return false }
        cursor += 1
        return true
    }
}
