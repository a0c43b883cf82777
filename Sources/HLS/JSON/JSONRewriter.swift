package import URISyntax

/// Rewrites the JSON documents of HLS: steering manifests, asset lists, schedules, chapters.
///
/// In a steering manifest (8216bis, 7.2) RELOAD-URI and the URIs of pathway clones are replaced.
/// HOST of a clone, which would make the player bypass the daemon, becomes a member of its PARAMS,
/// which come back to the daemon with the links of the base pathway; other PARAMS are kept. In an
/// asset list (8216bis, appendix D) each asset's URI is replaced, in a schedule of date ranges the
/// URIs of the attributes known from EXT-X-DATERANGE, and in chapters (session data
/// `com.apple.hls.chapters`) their images. All other bytes are unchanged.
package enum JSONRewriter {
    /// The largest document in bytes; asset lists and manifests take a few kilobytes.
    package static let maximumLength = 4 << 20
    /// The deepest nesting; deeper documents are rejected.
    package static let maximumDepth = 64
    /// What the names of parameters begin with that a daemon adds to those of a clone.
    package static let ownParameters = "_sluice_"
    /// Stands behind that in the names of another daemon's, once for each daemon between.
    package static let anothersMark = UInt8(ascii: ".")

    /// Maps a HOST to the name and value of a member of PARAMS.
    package typealias HostMap = (_ host: [UInt8]) -> (name: String, value: [UInt8])

    /// Rewrites `body`, which came from `base`: its URL after redirects.
    ///
    /// Never blocks. Throws `notJSON`, `tooLarge` or the error that a URI in a playlist would
    /// throw. `map` is that of `PlaylistRewriter`; the role is `json` for RELOAD-URI, lists and
    /// schedules, `image` for the images of chapters, `media` for assets that are files and
    /// `playlist` for the rest. `host` is called for every pathway clone that has HOST or PARAMS,
    /// with an empty host if it has only PARAMS.
    package static func rewrite(
        _ body: [UInt8], base: AbsoluteURL, host: @escaping HostMap,
        map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) -> RewrittenJSON {
        guard body.count <= maximumLength else {
            throw .tooLarge(byteCount: body.count, limit: maximumLength)
        }
        var pass = JSONPass(body, base: base, host: host)
        try pass.run(map)
        return RewrittenJSON(
            bytes: pass.output, unusable: pass.unusable, resolvedByteCount: pass.resolvedByteCount)
    }
}

/// A rewritten JSON document.
package struct RewrittenJSON: Sendable {
    package let bytes: [UInt8]
    /// The URIs that are withheld from players; `about:invalid` replaces them.
    package let unusable: UnusableURIs
    /// The bytes of all URLs that were resolved.
    let resolvedByteCount: Int
}

/// Returns the lines of a series of ascending offsets; the whole series takes one pass.
private struct LineCounter {
    private var offset = 0
    private var line = 1

    mutating func line(at offset: Int, in body: [UInt8]) -> Int {
        line += body[self.offset..<max(offset, self.offset)].count { $0 == 0x0A }
        self.offset = max(offset, self.offset)
        return line
    }
}

/// One pass over a JSON document (RFC 8259) that copies everything except the strings it replaces.
struct JSONPass {
    /// The place in the document, as far as URIs may occur below it.
    private enum Place {
        case document
        case clones
        case clone
        case replacement
        case parameters
        case uris
        case assets
        case asset
        case dateRanges
        case dateRange
        case chapter
        case images
        case image
        case elsewhere

        /// Returns the place of a member's value.
        func member(_ key: String) -> Place {
            switch (self, key) {
            case (.document, "PATHWAY-CLONES"): .clones
            case (.document, "ASSETS"): .assets
            case (.document, "DATERANGES"): .dateRanges
            case (.chapter, "images"): .images
            case (.clone, "URI-REPLACEMENT"): .replacement
            case (.replacement, "PARAMS"): .parameters
            case (.replacement, "PER-VARIANT-URIS"), (.replacement, "PER-RENDITION-URIS"): .uris
            default: .elsewhere
            }
        }

        /// The place of an array's elements.
        var element: Place {
            switch self {
            case .clones: .clone
            case .assets: .asset
            case .dateRanges: .dateRange
            // Only chapters have an array at the top.
            case .document: .chapter
            case .images: .image
            default: .elsewhere
            }
        }

        /// Returns the role and tag of a member's string value, if it is a URI.
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

        /// True if a member would make the player build URLs that bypass the daemon; it is renamed.
        func hides(_ key: String) -> Bool {
            if case .replacement = self { return key == "HOST" }
            return false
        }
    }

    private let body: [UInt8]
    private let resolver: URLResolver
    private let host: JSONRewriter.HostMap
    /// The member to be added to the PARAMS of the current clone.
    private var parameter: [UInt8]?
    private var scanner: JSONScanner
    /// The end of the part of the body that has been copied or replaced.
    private var copied: Int
    /// Counts line ends once, from one URI to the next.
    private var lines = LineCounter()
    private(set) var output: [UInt8] = []
    /// The bytes of all URLs that were resolved.
    private(set) var resolvedByteCount = 0
    private(set) var unusable = UnusableURIs()

    init(_ body: [UInt8], base: AbsoluteURL, host: @escaping JSONRewriter.HostMap) {
        self.body = body
        self.host = host
        resolver = URLResolver(base: base)
        scanner = JSONScanner(document: body)
        copied = scanner.cursor
    }

    mutating func run(_ map: PlaylistRewriter.ReferenceMap) throws(PlaylistError) {
        output.reserveCapacity(body.count * 2)
        try readValue(at: .document, depth: 0, map)
        scanner.skipBlanks()
        guard scanner.isAtEnd else { throw notJSON }
        output.append(contentsOf: body[copied...])
    }

    // MARK: Values

    private mutating func readValue(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        scanner.skipBlanks()
        guard !scanner.isAtEnd, depth < JSONRewriter.maximumDepth else { throw notJSON }
        switch body[scanner.cursor] {
        case 0x7B: try readObject(at: place, depth: depth, map)
        case 0x5B: try readArray(at: place, depth: depth, map)
        case 0x22: _ = try readString()
        default:
            guard scanner.scalar() else { throw notJSON }
        }
    }

    private mutating func readObject(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        scanner.cursor += 1
        if case .replacement = place { try openReplacement(depth: depth, map) }
        if case .parameters = place { insertParameter(isAlone: scanner.isNext(0x7D)) }
        if scanner.take(0x7D) { return }
        repeat {
            let range = try readString()
            let key = String(decoding: JSONText.unescape(body[range]), as: UTF8.self)
            guard scanner.take(0x3A) else { throw notJSON }
            if place.hides(key) {
                copy(to: range.lowerBound)
                output.append(contentsOf: "X-ORIGIN-".utf8)
            }
            if case .parameters = place { keepApart(range) }
            if let (role, tag) = place.uri(key), scanner.isNext(0x22) {
                try replaceString(role, tag, map)
            } else {
                try readValue(at: place.member(key), depth: depth + 1, map)
            }
        } while scanner.take(0x2C)
        guard scanner.take(0x7D) else { throw notJSON }
    }

    private mutating func readArray(
        at place: Place, depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        scanner.cursor += 1
        if scanner.take(0x5D) { return }
        repeat {
            try readValue(at: place.element, depth: depth + 1, map)
        } while scanner.take(0x2C)
        guard scanner.take(0x5D) else { throw notJSON }
    }

    /// Skips a string; returns its range without the quotes.
    private mutating func readString() throws(PlaylistError) -> Range<Int> {
        guard let range = scanner.string() else { throw notJSON }
        return range
    }

    private mutating func replaceString(
        _ role: ResourceRole, _ tag: Tag.Name, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let range = try readString()
        let line = lines.line(at: range.lowerBound, in: body)
        let found: AbsoluteURL?
        do throws(PlaylistError) {
            found = try ReferenceText.resolve(
                JSONText.unescape(body[range])[...], role, by: resolver, line: line,
                tag: tag.rawValue, isOptional: true)
        } catch {
            guard error.isUnusableURI else { throw error }
            // A single asset or pathway then fails in the player, and not the whole document.
            copy(to: range.lowerBound)
            output.append(contentsOf: "about:invalid".utf8)
            copied = range.upperBound
            return unusable.add(error)
        }
        guard let url = found else { return }
        resolvedByteCount += url.bytes.count
        let limit = PlaylistLimits.standard.outputByteCount
        guard resolvedByteCount <= limit else {
            throw .outputTooLarge(line: line, limit: limit)
        }
        guard output.count <= limit else { throw .linksTooLong(line: line, limit: limit) }
        let isAsset = role == .playlist && tag == .dateRange
        let reference = ResourceReference(
            place: .whole(url), role: isAsset ? .ofAsset(url) : role, tag: tag, line: line,
            context: SegmentContext(hasMap: false))
        var replacement: [UInt8] = []
        guard map(reference, &replacement) else { return }
        copy(to: range.lowerBound)
        JSONText.append(replacement, to: &output)
        copied = range.upperBound
    }

    // MARK: Pathway clones

    /// Scans a clone for HOST and PARAMS after its opening brace, before its members are written.
    private mutating func openReplacement(
        depth: Int, _ map: PlaylistRewriter.ReferenceMap
    ) throws(PlaylistError) {
        let start = scanner.cursor
        var named: [UInt8]?
        var hasParameters = false
        if !scanner.isNext(0x7D) {
            repeat {
                let key = JSONText.unescape(body[try readString()])
                guard scanner.take(0x3A) else { throw notJSON }
                if key.elementsEqual("HOST".utf8), scanner.isNext(0x22) {
                    named = JSONText.unescape(body[try readString()])
                } else {
                    hasParameters = hasParameters || key.elementsEqual("PARAMS".utf8)
                    try readValue(at: .elsewhere, depth: depth + 1, map)
                }
            } while scanner.take(0x2C)
        }
        scanner.cursor = start
        parameter = nil
        guard named != nil || hasParameters else { return }
        let (name, value) = host(named ?? [])
        var member = Array("\"\(name)\":\"".utf8)
        JSONText.append(value, to: &member)
        member.append(0x22)
        guard hasParameters else {
            copy(to: scanner.cursor)
            return output.append(contentsOf: "\"PARAMS\":{".utf8 + member + "},".utf8)
        }
        parameter = member
    }

    /// Writes the member made for PARAMS after their opening brace.
    private mutating func insertParameter(isAlone: Bool) {
        guard let parameter else { return }
        copy(to: scanner.cursor)
        output.append(contentsOf: parameter)
        if !isAlone { output.append(0x2C) }
        self.parameter = nil
    }

    /// Marks a parameter of another daemon, before which this one stands, as none of ours.
    private mutating func keepApart(_ key: Range<Int>) {
        let prefix = JSONRewriter.ownParameters.utf8
        guard body[key].starts(with: prefix) else { return }
        copy(to: key.lowerBound + prefix.count)
        output.append(JSONRewriter.anothersMark)
    }

    // MARK: Bytes

    private mutating func copy(to end: Int) {
        output.append(contentsOf: body[copied..<end])
        copied = end
    }

    /// The error of a document that is not JSON where the scanner stands.
    private var notJSON: PlaylistError { .notJSON(offset: scanner.cursor) }
}
