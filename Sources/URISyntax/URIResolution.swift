/// Reference resolution (RFC 3986, 5.2).
extension URIReference {
    /// Resolves a reference in a document whose URI is `base`.
    ///
    /// Strict in the sense of 5.2.2: a reference with a scheme is never merged with the base. The
    /// fragment is dropped, since requests do not include it. An empty reference resolves to the
    /// base.
    package static func resolve(
        _ reference: URIReference, against base: URIReference
    ) -> URIReference {
        var output: [UInt8] = []
        output.reserveCapacity(base.bytes.count + reference.bytes.count)
        let ownPath = reference.bytes[reference.path]
        var query = reference.query.map { reference.bytes[$0] }

        append(scheme: reference.scheme == nil ? base : reference, to: &output)
        if reference.scheme != nil || reference.authority != nil {
            append(authority: reference, to: &output)
            appendWithoutDotSegments(ownPath, to: &output)
        } else {
            append(authority: base, to: &output)
            if ownPath.isEmpty {
                output.append(contentsOf: base.bytes[base.path])
                query = query ?? base.query.map { base.bytes[$0] }
            } else if ownPath.first == 0x2F {
                appendWithoutDotSegments(ownPath, to: &output)
            } else {
                appendWithoutDotSegments(merge(ownPath, into: base)[...], to: &output)
            }
        }
        if let query {
            output.append(0x3F)
            output.append(contentsOf: query)
        }
        return URIReference(bytes: output)
    }

    private static func append(scheme source: URIReference, to output: inout [UInt8]) {
        guard let scheme = source.scheme else { return }
        output.append(contentsOf: source.bytes[scheme])
        output.append(0x3A)
    }

    private static func append(authority source: URIReference, to output: inout [UInt8]) {
        guard let authority = source.authority else { return }
        output.append(0x2F)
        output.append(0x2F)
        output.append(contentsOf: source.bytes[authority])
    }

    /// Merges a relative path with the base's path (5.2.3).
    private static func merge(_ path: ArraySlice<UInt8>, into base: URIReference) -> [UInt8] {
        let basePath = base.bytes[base.path]
        if basePath.isEmpty, base.authority != nil { return [0x2F] + path }
        guard let slash = basePath.lastIndex(of: 0x2F) else { return Array(path) }
        return Array(basePath[...slash] + path)
    }

    /// Appends `path` without its `.` and `..` segments (5.2.4).
    ///
    /// Only literal dots count: bytes are never decoded, so `%2E%2E` is an ordinary name.
    static func appendWithoutDotSegments(_ path: ArraySlice<UInt8>, to output: inout [UInt8]) {
        let start = output.count
        var cursor = path.startIndex
        while cursor < path.endIndex {
            // One segment with its leading slash, if it has one.
            let hasSlash = path[cursor] == 0x2F
            let nameStart = hasSlash ? cursor + 1 : cursor
            let end = path[nameStart...].firstIndex(of: 0x2F) ?? path.endIndex
            let name = path[nameStart..<end]
            let isLast = end == path.endIndex
            if isDotDot(name) {
                removeLastSegment(of: &output, from: start)
                if isLast, hasSlash { output.append(0x2F) }
            } else if isDot(name) {
                if isLast, hasSlash { output.append(0x2F) }
            } else {
                output.append(contentsOf: path[cursor..<end])
            }
            cursor = end
            // A relative path that began with dot segments must not become absolute.
            if !hasSlash, cursor < path.endIndex, isDot(name) || isDotDot(name) { cursor += 1 }
        }
    }

    private static func isDot(_ name: ArraySlice<UInt8>) -> Bool {
        name.count == 1 && name.first == 0x2E
    }

    private static func isDotDot(_ name: ArraySlice<UInt8>) -> Bool {
        name.count == 2 && name.first == 0x2E && name.last == 0x2E
    }

    private static func removeLastSegment(of output: inout [UInt8], from start: Int) {
        let slash = output[start...].lastIndex(of: 0x2F) ?? start
        output.removeSubrange(slash...)
    }
}
