package import HTTP
package import Lookahead

extension PlayerHints {
    /// The fields of CTA-5004.
    private static let fieldNames = [
        "CMCD-Request", "CMCD-Object", "CMCD-Status", "CMCD-Session",
    ]
    /// The text in a target whose query contains hints.
    private static let argument = Array("CMCD=".utf8)

    /// Parses the hints in the fields and the query of a request; nil if it has none of use.
    ///
    /// Without hints it costs a few comparisons: it is called for nearly every request, which an
    /// initializer would copy.
    package static func sent(in request: RequestHead) -> PlayerHints? {
        var texts: [String] = []
        // The lengths of the names.
        if request.fields.mayHaveName(of: 11) || request.fields.mayHaveName(of: 12) {
            texts = Self.fieldNames.compactMap { request.fields.combined($0) }
        }
        if request.targetContains(Self.argument) {
            texts += request.queryItems.filter { $0.rawName == "CMCD" }.compactMap { $0.value() }
        }
        return texts.isEmpty ? nil : PlayerHints(texts)
    }
}
