// Decides how a response is framed and whether the connection survives it: pure.
import HTTP
import Numbers

/// The framing of one response (RFC 9112 sections 6 and 9).
struct ResponsePlan: Equatable {
    enum Framing: Equatable {
        /// No content follows the head.
        case none
        case length(Int64)
        case chunked
        /// The content ends with the connection.
        case untilClose
    }

    /// The known length of the content.
    enum Content: Equatable {
        case none
        case length(Int64)
        case unknown
    }

    /// The properties of the request that framing depends on.
    struct AskedFraming: Equatable {
        var isHead = false
        var version = HTTPVersion.http11
        var keepAlive = false

        /// The properties assumed for a request that could not be parsed.
        static let nothingUnderstood = AskedFraming()
    }

    let framing: Framing
    /// True if the connection closes after the response.
    let closes: Bool
    /// The framing stated by the fields, which HEAD gets although no content follows.
    private let declaredFraming: Framing
    private let version: HTTPVersion
    /// True if a `Content-Length` written by the handler is kept.
    private let keepsLength: Bool

    init(_ asked: AskedFraming, status: HTTPStatus, content: Content, mustClose: Bool) {
        version = asked.version
        let full: Framing =
            switch content {
            case .none: .length(0)
            case .length(let length): .length(length)
            case .unknown: asked.version >= .http11 ? .chunked : .untilClose
            }
        let hasNoContent = asked.isHead || status.neverHasContent
        framing = hasNoContent ? .none : full
        keepsLength = hasNoContent && content == .none
        declaredFraming = keepsLength || (status.neverHasContent && !asked.isHead) ? .none : full
        closes = mustClose || !asked.keepAlive || framing == .untilClose
    }

    /// Appends the head, with the server's own fields, to `bytes`; `dateLine` is the `Date` field
    /// line with its CRLF.
    ///
    /// - Throws: `ResponseHeadError` if the head is ill-formed; `bytes` is then unchanged.
    func append(
        _ head: ResponseHead, dateLine: [UInt8], to bytes: inout [UInt8]
    ) throws(ResponseHeadError) {
        // A forwarded response keeps the origin's date (RFC 9110 section 6.6.1).
        var isDated = head.written?.isDated ?? false
        if head.fields.isEmpty, head.version == .http11 {
            // Hits have all their lines serialised already.
            try serialiseLines(head, into: &bytes)
        } else {
            var head = head
            for name in Self.ours where head.fields.contains(name) { head.fields.remove(name) }
            if !keepsLength { head.fields.remove(.contentLength) }
            isDated = isDated || head.fields.contains(.date)
            head.version = .http11
            try serialiseLines(head, into: &bytes)
        }
        if !isDated { bytes.append(contentsOf: dateLine) }
        switch declaredFraming {
        case .none, .untilClose: break
        case .length(let length):
            bytes.append(contentsOf: Self.lengthStart)
            appendDecimal(length, to: &bytes)
            bytes.append(contentsOf: Self.lineEnd)
        case .chunked: bytes.append(contentsOf: "Transfer-Encoding: chunked\r\n".utf8)
        }
        if closes {
            bytes.append(contentsOf: "Connection: close\r\n".utf8)
        } else if version < .http11 {
            bytes.append(contentsOf: "Connection: keep-alive\r\n".utf8)
        }
        bytes.append(contentsOf: Self.lineEnd)
    }

    private static let lengthStart = Array("Content-Length: ".utf8)
    private static let lineEnd = Array("\r\n".utf8)

    private static let ours: [FieldName] = [
        .connection, .keepAlive, .transferEncoding,
    ]
}

extension ResponsePlan.AskedFraming {
    init(_ request: RequestHead) {
        self.init(
            isHead: request.method == .head, version: request.version, keepAlive: request.keepAlive)
    }
}
