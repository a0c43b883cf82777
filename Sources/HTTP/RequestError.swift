/// Why a request cannot be understood: the status to answer with, after which the connection
/// closes, since where the next request begins is unknown.
package struct RequestError: Error, Sendable, Hashable {
    package let status: HTTPStatus
    /// A sentence that says what was wrong, fit for the client; it repeats nothing that was sent.
    package let reason: String

    package init(_ status: HTTPStatus, _ reason: String) {
        self.status = status
        self.reason = reason
    }

    static func badRequest(_ reason: String) -> RequestError {
        RequestError(.badRequest, reason)
    }
}

extension RequestError: CustomStringConvertible {
    package var description: String { "\(status.rawValue): \(reason)" }
}
