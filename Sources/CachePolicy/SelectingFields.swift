// `Vary`: the request fields that selected a response, and the text that distinguishes its variants
// (RFC 9111 section 4.1).
package import HTTP
import URISyntax

/// The fields that a response names in `Vary`.
package struct SelectingFields: Sendable, Hashable {
    /// In lower case, sorted, each once.
    package let names: [String]
    /// True for `*`, and for what names no field: no request is known to match.
    package let isAny: Bool

    /// Parses the fields of a response.
    ///
    /// A body with a content coding depends on `Accept-Encoding`, even if the origin does not say
    /// so. A member that is no token, such as two names without a comma, may mean anything.
    package init(_ response: Fields) {
        var named = Set(response.listMembers(.vary).map { ASCII.lowercased($0) })
        isAny = named.contains("*") || !named.allSatisfy { $0.utf8.allSatisfy(ASCII.isToken) }
        if let coding = response.first(.contentEncoding),
            !ASCII.equalIgnoringCase(coding, "identity")
        {
            named.insert("accept-encoding")
        }
        names = isAny ? [] : named.sorted()
    }

    /// Creates a set from stored names, which must be in lower case and sorted.
    package init(names: [String]) {
        self.names = names
        isAny = false
    }

    /// True if every request matches.
    package var isEmpty: Bool { names.isEmpty && !isAny }

    /// True if other clients may get another content: codings are decoded, and the fields of
    /// cross-origin requests are answered, before a playlist is passed on.
    package var tellsClientsApart: Bool {
        isAny || names.contains { !Self.ofForm.contains($0) }
    }

    private static let ofForm: Set = [
        "accept-encoding", "origin", "access-control-request-method",
        "access-control-request-headers",
    ]

    /// Returns the normalised values of the named fields in a request: equal texts select the same
    /// variant.
    ///
    /// Contains what a client sent, so it is only used for digests and never logged.
    package func text(of request: Fields) -> String {
        names.map { name in
            guard let value = request.combined(name) else { return name }
            return "\(name): \(Self.normalised(value, of: name))"
        }.joined(separator: "\n")
    }

    // MARK: Normalising

    /// Returns the members without white space around them; for fields whose order and case do not
    /// matter, in lower case and sorted by descending weight.
    private static func normalised(_ value: String, of name: String) -> String {
        var fields = Fields()
        fields.append(name, value)
        let members = fields.listMembers(FieldName(name))
        switch name {
        case "accept-language", "accept-encoding", "accept-charset", "accept":
            return members.map(Weighted.init).sorted().map(\.text).joined(separator: ",")
        default:
            return members.joined(separator: ",")
        }
    }

    /// Returns the single most preferred language of a request, in lower case; nil if there are
    /// several.
    package static func preferredLanguage(_ request: Fields) -> String? {
        let wanted = request.listMembers("Accept-Language").map(Weighted.init).sorted()
        guard let first = wanted.first, first.weight > 0, first.value != "*" else { return nil }
        if wanted.count > 1, wanted[1].weight == first.weight { return nil }
        return first.value
    }

    /// A member with a weight, such as `de;q=0.5` (RFC 9110 section 12.4.2).
    private struct Weighted: Comparable {
        let value: String
        /// In thousandths.
        let weight: Int

        init(_ member: String) {
            var kept: [String] = []
            var weight = 1_000
            for part in ASCII.lowercased(member).split(separator: ";") {
                let trimmed = String(part.filter { $0 != " " && $0 != "\t" })
                if trimmed.hasPrefix("q="), let read = Weight.thousandths(trimmed.dropFirst(2)) {
                    weight = read
                } else {
                    kept.append(trimmed)
                }
            }
            value = kept.joined(separator: ";")
            self.weight = weight
        }

        var text: String { weight == 1_000 ? value : "\(value);q=\(weight)" }

        static func < (a: Weighted, b: Weighted) -> Bool {
            a.weight != b.weight ? a.weight > b.weight : a.value < b.value
        }
    }
}
