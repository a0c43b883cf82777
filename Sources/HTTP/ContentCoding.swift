import URISyntax

/// The content codings that a client accepts (RFC 9110 section 12.5.3).
package enum ContentCoding {
    /// True if the request accepts gzip, by name or `*`, with a weight above 0 and not below
    /// identity's.
    ///
    /// A request without `Accept-Encoding` gets no coding: few clients that omit it can decode.
    package static func acceptsGzip(_ fields: Fields) -> Bool {
        guard let value = fields.combinedBytes(.acceptEncoding) else { return false }
        var gzip: Int?
        var any: Int?
        var identity: Int?
        for member in FieldCursor.members(of: value[...]) {
            var cursor = FieldCursor(member)
            let coding = ASCII.lowercased(cursor.token().text)
            cursor.skipOWS()
            let weight = weight(&cursor)
            switch coding {
            case "gzip", "x-gzip": gzip = max(gzip ?? 0, weight)
            case "*": any = weight
            case "identity": identity = weight
            default: break
            }
        }
        let accepted = gzip ?? any ?? 0
        return accepted > 0 && accepted >= identity ?? 0
    }

    /// Parses the weight in thousandths; 1000 if absent, 0 if malformed.
    private static func weight(_ cursor: inout FieldCursor) -> Int {
        guard !cursor.isAtEnd else { return 1000 }
        guard let parameter = MediaType.parameters(&cursor).first, parameter.name == "q" else {
            return 0
        }
        return Weight.thousandths(parameter.value[...]) ?? 0
    }
}
