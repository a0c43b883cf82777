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

    /// True if the request accepts every coding of a response's body, each by name or `*` with a
    /// weight above 0.
    ///
    /// As in `acceptsGzip`, a request without `Accept-Encoding` accepts none.
    package static func accepts(codingsOf response: Fields, _ request: Fields) -> Bool {
        let codings = response.listMembers(.contentEncoding).map(usualName)
            .filter { $0 != "identity" }
        guard !codings.isEmpty else { return true }
        guard let value = request.combinedBytes(.acceptEncoding) else { return false }
        var weights: [String: Int] = [:]
        for member in FieldCursor.members(of: value[...]) {
            var cursor = FieldCursor(member)
            let coding = usualName(cursor.token().text)
            cursor.skipOWS()
            weights[coding] = max(weights[coding] ?? 0, weight(&cursor))
        }
        return codings.allSatisfy { (weights[$0] ?? weights["*"] ?? 0) > 0 }
    }

    /// Returns the name of a coding in lower case, for the old ones too (RFC 9110 section 8.4.1).
    private static func usualName(_ coding: String) -> String {
        switch ASCII.lowercased(coding) {
        case "x-gzip": "gzip"
        case "x-compress": "compress"
        case let name: name
        }
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
