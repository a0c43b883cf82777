import URISyntax

/// URIs that hold their content themselves (RFC 2397).
enum DataURI {
    /// The longest URI whose content is read, in bytes; manifests and asset lists take a few
    /// kilobytes.
    static let maximumLength = 64 << 10

    private static let scheme = Array("data".utf8)

    /// True for a URI of this scheme.
    static func isDataURI(_ uri: ArraySlice<UInt8>) -> Bool {
        guard let range = URIReference.scheme(in: uri) else { return false }
        return uri[range].elementsEqual(scheme) { ASCII.lowercased($0) == $1 }
    }

    /// Returns the content; nil if the URI is malformed or too long.
    static func content(of uri: ArraySlice<UInt8>) -> [UInt8]? {
        guard uri.count <= maximumLength else { return nil }
        let text = uri.dropFirst(scheme.count + 1).prefix { $0 != 0x23 }
        guard let comma = text.firstIndex(of: 0x2C) else { return nil }
        let content = PercentCoding.decode(text[(comma + 1)...])
        let type = text[..<comma].filter { !ASCII.isBlank($0) }.map { ASCII.lowercased($0) }
        guard type.suffix(7).elementsEqual(";base64".utf8) else { return content }
        return Base64.decode(content.filter { $0 != 0x0A && $0 != 0x0D && !ASCII.isBlank($0) })
    }

    /// Returns a URI with a JSON document as its content.
    static func json(_ document: [UInt8]) -> [UInt8] {
        Array("data:application/json;base64,\(Base64.encode(document))".utf8)
    }
}
