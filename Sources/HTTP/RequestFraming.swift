// The framing of a request's content, with checks for all contradictions that request smuggling
// relies on (RFC 9112 sections 3.2, 6.1 and 6.3).
import Numbers
import URISyntax

extension Fields {
    /// Returns the framing of the content of a request with these fields.
    ///
    /// - Throws: 400 if two parsers could disagree about it, 501 for a transfer coding other than
    ///   chunked.
    func requestFraming(version: HTTPVersion) throws(RequestError) -> BodyFraming {
        let hasCoding = contains(.transferEncoding)
        guard let length = valueBytes(.contentLength) else {
            return hasCoding ? try chunkedFraming(version: version) : .none
        }
        if hasCoding {
            throw .badRequest("Content-Length and Transfer-Encoding exclude each other.")
        }
        // Equal duplicates could be merged, but no client needs them, and one that sends them may
        // have been manipulated.
        guard count(of: .contentLength) == 1 else {
            throw .badRequest("Content-Length is given more than once.")
        }
        switch DecimalDigits(length) {
        case .value(let bytes): return .length(bytes)
        case .overflow: throw RequestError(.contentTooLarge, "Content-Length is out of range.")
        case .malformed: throw .badRequest("Content-Length is not a decimal number.")
        }
    }

    private func chunkedFraming(version: HTTPVersion) throws(RequestError) -> BodyFraming {
        guard version >= .http11 else {
            throw .badRequest("Transfer-Encoding is not allowed in HTTP/1.0.")
        }
        let codings = listMembers(.transferEncoding).map { ASCII.lowercased($0) }
        guard !codings.isEmpty else {
            throw .badRequest("Transfer-Encoding is empty.")
        }
        if codings.dropLast().contains("chunked") {
            throw .badRequest("Chunked is not the last transfer coding.")
        }
        for coding in codings where !coding.utf8.allSatisfy(ASCII.isToken) {
            throw .badRequest("Transfer-Encoding is malformed.")
        }
        guard codings == ["chunked"] else {
            throw RequestError(.notImplemented, "The only transfer coding known here is chunked.")
        }
        return .chunked
    }

    /// Checks that `Host` occurs exactly once in HTTP/1.1 or at most once in HTTP/1.0, and is
    /// well-formed (RFC 9112 section 3.2).
    func checkHost(version: HTTPVersion) throws(RequestError) {
        guard let host = valueBytes(.host) else {
            if version >= .http11 { throw .badRequest("Host is missing.") }
            return
        }
        guard count(of: .host) == 1 else {
            throw .badRequest("Host is given more than once.")
        }
        guard RequestTarget.isHost(host.span) else { throw .badRequest("Host is malformed.") }
    }
}
