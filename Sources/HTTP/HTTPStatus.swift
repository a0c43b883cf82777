/// A response status code (RFC 9110 section 15); any number is representable.
package struct HTTPStatus: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package static let `continue` = HTTPStatus(rawValue: 100)
    package static let switchingProtocols = HTTPStatus(rawValue: 101)
    package static let earlyHints = HTTPStatus(rawValue: 103)
    package static let ok = HTTPStatus(rawValue: 200)
    package static let created = HTTPStatus(rawValue: 201)
    package static let accepted = HTTPStatus(rawValue: 202)
    package static let noContent = HTTPStatus(rawValue: 204)
    package static let resetContent = HTTPStatus(rawValue: 205)
    package static let partialContent = HTTPStatus(rawValue: 206)
    package static let movedPermanently = HTTPStatus(rawValue: 301)
    package static let found = HTTPStatus(rawValue: 302)
    package static let seeOther = HTTPStatus(rawValue: 303)
    package static let notModified = HTTPStatus(rawValue: 304)
    package static let permanentRedirect = HTTPStatus(rawValue: 308)
    package static let badRequest = HTTPStatus(rawValue: 400)
    package static let unauthorized = HTTPStatus(rawValue: 401)
    package static let forbidden = HTTPStatus(rawValue: 403)
    package static let notFound = HTTPStatus(rawValue: 404)
    package static let methodNotAllowed = HTTPStatus(rawValue: 405)
    package static let requestTimeout = HTTPStatus(rawValue: 408)
    package static let conflict = HTTPStatus(rawValue: 409)
    package static let gone = HTTPStatus(rawValue: 410)
    package static let preconditionFailed = HTTPStatus(rawValue: 412)
    package static let contentTooLarge = HTTPStatus(rawValue: 413)
    package static let uriTooLong = HTTPStatus(rawValue: 414)
    package static let rangeNotSatisfiable = HTTPStatus(rawValue: 416)
    package static let misdirectedRequest = HTTPStatus(rawValue: 421)
    package static let unprocessableContent = HTTPStatus(rawValue: 422)
    package static let tooManyRequests = HTTPStatus(rawValue: 429)
    package static let requestHeaderFieldsTooLarge = HTTPStatus(rawValue: 431)
    package static let internalServerError = HTTPStatus(rawValue: 500)
    package static let notImplemented = HTTPStatus(rawValue: 501)
    package static let badGateway = HTTPStatus(rawValue: 502)
    package static let serviceUnavailable = HTTPStatus(rawValue: 503)
    package static let gatewayTimeout = HTTPStatus(rawValue: 504)
    package static let versionNotSupported = HTTPStatus(rawValue: 505)
    package static let insufficientStorage = HTTPStatus(rawValue: 507)
    package static let loopDetected = HTTPStatus(rawValue: 508)

    /// True for an interim response (1xx), which another response follows.
    package var isInformational: Bool { rawValue >= 100 && rawValue < 200 }
    /// True for redirects with `Location`; false for 300 and 304.
    package var isRedirect: Bool {
        switch rawValue {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
    /// True if a response with this status never has content, whatever its fields are (RFC 9110
    /// section 6.4.1).
    package var neverHasContent: Bool {
        isInformational || self == .noContent || self == .notModified
    }

    /// The phrase after the code in a status line; "Unknown" for a code without a name.
    package var reasonPhrase: String {
        HTTPStatus.phrases[rawValue] ?? "Unknown"
    }

    private static let phrases: [UInt16: String] = [
        100: "Continue", 101: "Switching Protocols", 103: "Early Hints",
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information",
        204: "No Content", 205: "Reset Content", 206: "Partial Content",
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
        304: "Not Modified", 305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden",
        404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
        407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict",
        410: "Gone", 411: "Length Required", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type",
        416: "Range Not Satisfiable", 417: "Expectation Failed", 421: "Misdirected Request",
        422: "Unprocessable Content", 425: "Too Early", 426: "Upgrade Required",
        428: "Precondition Required",
        429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
        507: "Insufficient Storage", 508: "Loop Detected",
    ]
}

extension HTTPStatus: CustomStringConvertible {
    package var description: String { "\(rawValue) \(reasonPhrase)" }
}
