// What clients of the administration are told: the result of their request, or why there is none.
package import HTTP
package import Model

/// The response to one request.
package enum AdministrationAnswer: Sendable {
    case value(HTTPStatus, JSONValue)
    /// A rejection, with the reason in words.
    case failure(HTTPStatus, String)
    /// A rejection of the method: 405 with the methods that the path takes, for `Allow` (RFC 9110
    /// section 15.5.6), and the reason in words.
    case methodNotAllowed(allowed: [HTTPMethod], String)

    /// Returns the same with a note for the user, unless it is a failure.
    func noting(_ note: String) -> AdministrationAnswer {
        guard case .value(let status, .object(let members)) = self else { return self }
        return .value(status, .object(members + [.init("note", .text(note))]))
    }
}

/// Why a request is not carried out, in words for its client.
package struct AdministrationRefusal: Error {
    package let status: HTTPStatus
    package let reason: String

    package init(_ status: HTTPStatus, _ reason: String) {
        self.status = status
        self.reason = reason
    }

    package var answer: AdministrationAnswer { .failure(status, reason) }

    static let noURL = Self(.badRequest, "the argument url is no http or https URL")
    static let noPrefix = Self(
        .badRequest,
        "prefix is an http or https URL with scheme and host and without blanks, such as http://cdn.example/show7"
    )
    static let longPrefix = Self(
        .badRequest,
        "prefix has no query and no fragment: what is below its path is purged with any query")
    /// For a URL of this daemon, or a link of another node, that names no URL of an origin.
    static let leadsNowhere = Self(
        .badRequest,
        "the URL is one of this daemon or of another node, and no origin's URL is known for it here; give the origin's URL, or for a title its number"
    )

    package static func missing(_ what: String) -> Self {
        Self(.badRequest, "the argument \(what) is missing")
    }
}
