import URISyntax

/// Resolves the URIs of one playlist: replaces variables, joins the result with the playlist's URL,
/// and limits how long all URLs are together.
struct PlaylistResolver {
    /// Nil if URIs are not resolved.
    private let urls: URLResolver?
    /// The most bytes of all URLs.
    private let limit: Int
    private(set) var variables = PlaylistVariables()
    /// The last URL that could not be resolved by a fast path.
    private var last: AbsoluteURL?
    /// The bytes of all URLs that were resolved one by one.
    private var byteCount = 0

    /// Creates the resolver of a playlist that came from `base`; nil resolves nothing.
    init(base: AbsoluteURL?, limit: Int) {
        urls = base.map { URLResolver(base: $0) }
        self.limit = limit
    }

    /// Defines a variable, see `PlaylistVariables.define`.
    ///
    /// - Returns: the line for players; nil if URIs are not resolved, since no variables are needed
    ///   then.
    mutating func define(
        _ list: AttributeList, at line: Int, _ reading: PlaylistReading
    ) throws(PlaylistError) -> PlaylistVariables.Form? {
        guard let urls else { return nil }
        return try variables.define(list, at: line, of: urls.base, reading)
    }

    /// Resolves a URI of the playlist; nil if it passes to the player unchanged.
    ///
    /// Variables are replaced first; `tag` is nil for a URI line.
    mutating func resolve(
        _ text: ArraySlice<UInt8>, _ role: ResourceRole, line: Int, tag: Tag?
    ) throws(PlaylistError) -> AbsoluteURL? {
        guard let urls else { return nil }
        // The common cases in long playlists: plain names, and URLs at the origin of the previous
        // line.
        if let url = urls.resolvePlain(text) { return try counted(url, line) }
        if let last, let url = urls.resolvePlain(text, likely: last) {
            return try counted(url, line)
        }
        let url = try resolveAny(text, role, by: urls, line: line, tag: tag)
        last = url
        return try counted(url, line)
    }

    @inline(__always)
    private mutating func counted(
        _ url: AbsoluteURL?, _ line: Int
    ) throws(PlaylistError) -> AbsoluteURL? {
        guard let url else { return nil }
        try count(url.bytes.count, at: line)
        return url
    }

    /// Counts bytes of URLs.
    ///
    /// Throws if the URLs are longer together than a written playlist may be: a long base URL or
    /// variable makes them so from a few bytes each.
    @inline(__always)
    mutating func count(_ bytes: Int, at line: Int) throws(PlaylistError) {
        byteCount += bytes
        guard byteCount <= limit else { throw .outputTooLarge(line: line, limit: limit) }
    }

    private func resolveAny(
        _ text: ArraySlice<UInt8>, _ role: ResourceRole, by urls: URLResolver, line: Int, tag: Tag?
    ) throws(PlaylistError) -> AbsoluteURL? {
        let tagName = tag?.name.rawValue ?? "URI"
        var reference = text
        if Variables.mayOccur(in: text) {
            switch variables.expand(text) {
            case .text(let expanded): reference = expanded[...]
            case .undefined(let name):
                throw variables.undefined(name, at: line, tagName)
            case .tooLong:
                throw .badURI(
                    line: line, tag: tagName, text: ReferenceText.excerpt(text),
                    reason: .tooLong(
                        length: AbsoluteURL.maximumLength + 1, limit: AbsoluteURL.maximumLength))
            }
        }
        return try ReferenceText.resolve(
            reference, role, by: urls, line: line, tag: tagName,
            isOptional: tag?.isOptional ?? false)
    }

    /// Returns a substitute URL for a malformed URI: its text as a name in the playlist's folder.
    ///
    /// Players that request gaps get the origin's error and continue. Nil if URIs are not resolved.
    func placeholder(of text: ArraySlice<UInt8>) throws(PlaylistError) -> AbsoluteURL? {
        guard let urls else { return nil }
        var name = Array("./".utf8)
        for byte in text.prefix(80) {
            if ASCII.isAlphanumeric(byte) || byte == 0x2E || byte == 0x2D {
                name.append(byte)
            } else {
                PercentCoding.append(byte, to: &name)
            }
        }
        do throws(URIError) {
            return try urls.resolve(name[...])
        } catch {
            throw .badURI(line: 0, tag: "URI", text: ReferenceText.excerpt(text), reason: error)
        }
    }
}
