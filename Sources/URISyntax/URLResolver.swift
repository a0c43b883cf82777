/// Resolves the many references of one document against its URL.
///
/// Gives the same results as `URIReference.resolve`, but copies the base's folder only once and has
/// a fast path for plain relative references, the common case in long playlists.
///
/// A class, because the containing value would copy its many parts.
package final class URLResolver: Sendable {
    /// The document's URL, after redirects.
    package let base: AbsoluteURL
    private let baseReference: URIReference
    /// The base up to and including the last slash of its path; nil without a path or if that has
    /// dots after a slash.
    private let folder: [UInt8]?
    /// The base up to the end of its authority.
    private let authority: [UInt8]

    package init(base: AbsoluteURL) {
        self.base = base
        baseReference = URIReference(bytes: base.bytes)
        authority = Array(base.bytes[..<base.pathRange.lowerBound])
        let folderEnd = base.lastPathSegmentRange.lowerBound
        let path = base.bytes[base.pathRange.lowerBound..<folderEnd]
        let hasDots = zip(path, path.dropFirst()).contains { $0 == 0x2F && $1 == 0x2E }
        folder = path.isEmpty || hasDots ? nil : Array(base.bytes[..<folderEnd])
    }

    /// Resolves a reference.
    ///
    /// Throws if the result is not a URL that the daemon may fetch.
    package func resolve(_ reference: ArraySlice<UInt8>) throws(URIError) -> AbsoluteURL {
        if let url = resolvePlain(reference) { return url }
        let bytes = Array(reference.prefix { $0 != 0x23 })
        // Rejected even if a dot segment would remove it, for the same result as on the fast path.
        if let offset = bytes.firstIndex(where: ASCII.isControl) {
            throw .controlByte(offset: offset)
        }
        let isWhole = URIReference.scheme(in: reference) != nil && !Self.hasDotSegment(bytes)
        let url = try AbsoluteURL(
            bytes: isWhole
                ? bytes
                : URIReference.resolve(URIReference(bytes: bytes), against: baseReference).bytes)
        // The document's own may be a stand-in; no document may name another's.
        guard !url.hasStandIn || url.sharesAuthority(with: base) else { throw .reservedUser }
        return url
    }

    package func resolve(_ reference: String) throws(URIError) -> AbsoluteURL {
        try resolve(Array(reference.utf8)[...])
    }

    /// Resolves a relative or absolute path whose only dot segments are `..` at its start.
    ///
    /// Returns nil if full resolution is needed: for schemes, other dots, faults, and braces, which
    /// may begin a variable of the document.
    package func resolvePlain(_ reference: ArraySlice<UInt8>) -> AbsoluteURL? {
        guard let first = reference.first, first != 0x3F, first != 0x23 else { return nil }
        if first == 0x2F {
            guard reference.dropFirst().first != 0x2F else { return nil }
            return append(reference, to: authority, of: base)
        }
        guard let folder else { return nil }
        guard first == 0x2E else { return append(reference, to: folder, of: base) }
        var rest = reference
        var length = folder.count
        while rest.starts(with: [0x2E, 0x2E, 0x2F]) {
            rest = rest.dropFirst(3)
            length = parent(ofFolderOf: length)
        }
        return append(rest, to: Array(folder[..<length]), of: base)
    }

    /// Resolves an absolute reference to the origin of `other`, an earlier reference.
    ///
    /// Returns nil if full resolution is needed.
    package func resolvePlain(
        _ reference: ArraySlice<UInt8>, likely other: AbsoluteURL
    ) -> AbsoluteURL? {
        let length = other.pathRange.lowerBound
        guard reference.count > length, reference[reference.startIndex + length] == 0x2F else {
            return nil
        }
        let span = reference.span
        let expected = other.bytes.span
        for index in 0..<length where span[index] != expected[index] { return nil }
        return append(reference.dropFirst(length), to: Array(other.bytes[..<length]), of: other)
    }

    /// Returns the length of the parent of the folder with length `length`; the root is its own
    /// parent.
    private func parent(ofFolderOf length: Int) -> Int {
        var end = length - 1
        while end > authority.count, base.bytes[end - 1] != 0x2F { end -= 1 }
        return max(end, authority.count + 1)
    }

    /// Joins a prefix of `whole` and a reference; nil if the reference is not plain.
    private func append(
        _ reference: ArraySlice<UInt8>, to prefix: [UInt8], of whole: AbsoluteURL
    ) -> AbsoluteURL? {
        let span = reference.span
        let end = span.count
        var queryMark: Int?
        var mayBeScheme = true
        var count = 0
        scan: while count < end {
            let byte = span[count]
            // Fast path for letters and digits, which are nearly all bytes.
            if ASCII.isAlphanumeric(byte) {
                count &+= 1
                continue
            }
            switch byte {
            case 0x23: break scan
            case 0x3F: queryMark = queryMark ?? count
            case 0x2F: mayBeScheme = false
            case 0x3A where mayBeScheme && queryMark == nil: return nil
            case 0x2E where queryMark == nil && (count == 0 || span[count - 1] == 0x2F):
                return nil
            case 0..<0x20, 0x7F, 0x7B: return nil
            default: break
            }
            count &+= 1
        }
        let length = prefix.count + count
        guard length <= AbsoluteURL.maximumLength else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        bytes.append(contentsOf: prefix)
        let start = reference.startIndex
        bytes.append(contentsOf: reference[start..<start + count])
        let mark = queryMark.map { prefix.count + $0 } ?? length
        return AbsoluteURL(bytes: bytes, sharingAuthorityWith: whole, queryMark: mark)
    }

    private static func hasDotSegment(_ reference: [UInt8]) -> Bool {
        let span = reference.span
        var previous: UInt8 = 0
        for index in span.indices {
            let byte = span[index]
            if byte == 0x3F || byte == 0x23 { return false }
            if byte == 0x2E, previous == 0x2F { return true }
            previous = byte
        }
        return false
    }
}

extension AbsoluteURL {
    /// Resolves a reference in a document at this URL (RFC 3986, 5.2).
    ///
    /// For many references of one document use a `URLResolver`.
    package func resolving(_ reference: String) throws(URIError) -> AbsoluteURL {
        try URLResolver(base: self).resolve(reference)
    }
}
