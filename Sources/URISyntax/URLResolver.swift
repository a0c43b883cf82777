/// Resolves the many references of one document against its URL.
///
/// Gives the same results as `URIReference.resolve`, but copies the base's folder once and takes a
/// short way for plain relative references, which is what long playlists consist of.
package struct URLResolver: Sendable {
    /// The document's URL, after redirects.
    package let base: AbsoluteURL
    private let baseReference: URIReference
    /// The base up to and including the last slash of its path; nil where dots stand in it.
    private let folder: ArraySlice<UInt8>?
    /// The base up to the end of its authority.
    private let authority: ArraySlice<UInt8>

    package init(base: AbsoluteURL) {
        self.base = base
        baseReference = URIReference(bytes: base.bytes)
        authority = base.bytes[..<base.pathRange.lowerBound]
        let folderEnd = base.lastPathSegmentRange.lowerBound
        let path = base.bytes[base.pathRange.lowerBound..<folderEnd]
        let hasDots = zip(path, path.dropFirst()).contains { $0 == 0x2F && $1 == 0x2E }
        folder = path.isEmpty || hasDots ? nil : base.bytes[..<folderEnd]
    }

    /// The URL that `reference` means. Throws where it is none that the daemon may ask for.
    package func resolve(_ reference: ArraySlice<UInt8>) throws(URIError) -> AbsoluteURL {
        if let url = try resolvePlain(reference) { return url }
        let parsed = URIReference(bytes: Array(reference))
        if parsed.scheme != nil, !Self.hasDotSegment(reference) {
            return try AbsoluteURL(bytes: parsed.bytes)
        }
        return try AbsoluteURL(
            bytes: URIReference.resolve(parsed, against: baseReference).bytes)
    }

    package func resolve(_ reference: String) throws(URIError) -> AbsoluteURL {
        try resolve(Array(reference.utf8)[...])
    }

    /// Resolves a reference that is a relative or rooted path without dot segments.
    ///
    /// Returns nil where the long way is needed.
    private func resolvePlain(
        _ reference: ArraySlice<UInt8>
    ) throws(URIError) -> AbsoluteURL? {
        guard let first = reference.first, first != 0x3F, first != 0x23 else { return nil }
        let isRooted = first == 0x2F
        guard let prefix = isRooted ? authority : folder else { return nil }
        if isRooted, reference.dropFirst().first == 0x2F { return nil }

        var previous: UInt8 = 0x2F
        var queryMark: Int?
        var mayBeScheme = true
        var index = reference.startIndex
        scan: while index < reference.endIndex {
            let byte = reference[index]
            switch byte {
            case 0x23: break scan
            case 0x3F: queryMark = queryMark ?? index
            case 0x2F: mayBeScheme = false
            case 0x3A where mayBeScheme && queryMark == nil: return nil
            case 0x2E where previous == 0x2F && queryMark == nil: return nil
            case 0..<0x20, 0x7F: throw .controlByte(offset: index - reference.startIndex)
            default: break
            }
            previous = byte
            index += 1
        }
        let length = prefix.count + index - reference.startIndex
        guard length <= AbsoluteURL.maximumLength else {
            throw .tooLong(length: length, limit: AbsoluteURL.maximumLength)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        bytes.append(contentsOf: prefix)
        bytes.append(contentsOf: reference[..<index])
        let mark = queryMark.map { prefix.count + $0 - reference.startIndex } ?? length
        return AbsoluteURL(bytes: bytes, sharingAuthorityWith: base, queryMark: mark)
    }

    private static func hasDotSegment(_ reference: ArraySlice<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for byte in reference {
            if byte == 0x3F || byte == 0x23 { return false }
            if byte == 0x2E, previous == 0x2F { return true }
            previous = byte
        }
        return false
    }
}

extension AbsoluteURL {
    /// The URL that `reference` means in a document at this URL (RFC 3986, 5.2).
    ///
    /// For many references of one document use a `URLResolver`.
    package func resolving(_ reference: String) throws(URIError) -> AbsoluteURL {
        try URLResolver(base: self).resolve(reference)
    }
}
