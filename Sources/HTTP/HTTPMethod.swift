/// A request method (RFC 9110 section 9), case-sensitive.
package enum HTTPMethod: Sendable, Hashable {
    case get, head, post, put, delete, options, patch, connect, trace
    /// Any other token, as it was sent.
    case other(String)

    /// Creates the method with this exact spelling; an unknown one becomes `other`.
    package init(_ name: String) {
        switch name {
        case "GET": self = .get
        case "HEAD": self = .head
        case "POST": self = .post
        case "PUT": self = .put
        case "DELETE": self = .delete
        case "OPTIONS": self = .options
        case "PATCH": self = .patch
        case "CONNECT": self = .connect
        case "TRACE": self = .trace
        default: self = .other(name)
        }
    }

    /// The spelling on the wire.
    package var name: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .options: "OPTIONS"
        case .patch: "PATCH"
        case .connect: "CONNECT"
        case .trace: "TRACE"
        case .other(let name): name
        }
    }

    /// True if the method requests no change of state (RFC 9110 section 9.2.1).
    package var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace: true
        default: false
        }
    }
}

extension HTTPMethod: CustomStringConvertible {
    package var description: String { name }
}
