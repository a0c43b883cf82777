/// The reason why a request cannot be parsed, with the status to respond with; the connection is
/// closed afterwards, since the start of the next request is unknown.
package struct RequestError: Error, Sendable, Hashable {
    package let status: HTTPStatus
    /// A sentence for the client that describes the fault; it contains nothing that the client
    /// sent.
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
