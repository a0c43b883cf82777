import URISyntax

/// Resolution of references, and their form in error texts.
enum ReferenceText {
    /// Resolves a reference without variables; nil if it passes unchanged.
    static func resolve(
        _ reference: ArraySlice<UInt8>, _ role: ResourceRole, by resolver: URLResolver, line: Int,
        tag: String, isOptional: Bool
    ) throws(PlaylistError) -> AbsoluteURL? {
        switch SchemePolicy.judge(reference, role: role, isOptional: isOptional) {
        case .keep: return nil
        case .refuse(let scheme):
            throw .forbiddenScheme(line: line, tag: tag, scheme: scheme)
        case .resolve: break
        }
        do throws(URIError) {
            return try resolver.resolve(reference)
        } catch {
            throw .badURI(line: line, tag: tag, text: excerpt(reference), reason: error)
        }
    }

    /// The start of a URI for an error text: no user information, no query, at most 80 bytes.
    static func excerpt(_ text: ArraySlice<UInt8>) -> String {
        let parsed = URIReference(bytes: Array(text.prefix { $0 != 0x3F }))
        var shown = parsed.bytes
        if let userinfo = parsed.userinfo {
            shown.replaceSubrange(userinfo, with: "***".utf8)
        }
        var output: [UInt8] = []
        PercentCoding.appendRequestForm(of: shown.prefix(80), to: &output)
        return String(decoding: output, as: UTF8.self)
    }
}
