import URISyntax

/// The first line of a request (RFC 9112 section 3): method, target and version, separated by
/// exactly one space.
struct RequestLine: Sendable {
    let method: HTTPMethod
    let target: String
    let version: HTTPVersion

    /// Parses a line without its CRLF; `known` is the version if it is known by other means, nil
    /// to parse it.
    init(_ line: Span<UInt8>, version known: HTTPVersion?) throws(RequestError) {
        var index = 0
        while index < line.count, ASCII.isToken(line[index]) { index += 1 }
        guard index > 0, index < line.count, line[index] == ASCII.space else {
            throw .badRequest("The request line does not begin with a method and a space.")
        }
        method = RequestLine.method(line.extracting(0..<index))
        let targetStart = index + 1
        index = targetStart
        var isVisible = true
        while index < line.count, line[index] != ASCII.space, line[index] != ASCII.tab {
            if index &+ 8 <= line.count {
                let word = EightBytes.load(line, at: index)
                let stops = ASCII.controls(in: word) | ASCII.places(of: ASCII.space, in: word)
                if stops == 0, word & 0x8080_8080_8080_8080 == 0 {
                    index += 8
                    continue
                }
            }
            if line[index] > 0x7E { isVisible = false }
            index += 1
        }
        guard index > targetStart else { throw .badRequest("The request target is empty.") }
        guard index < line.count, line[index] == ASCII.space else {
            throw .badRequest("The request line has no version.")
        }
        version =
            if let known { known } else {
                try RequestLine.version(line.extracting((index + 1)..<line.count))
            }
        target = RequestLine.text(line.extracting(targetStart..<index), isVisible: isVisible)
        if let fault = RequestTarget.fault(of: target, method: method) {
            throw .badRequest(fault)
        }
    }

    private static func method(_ name: Span<UInt8>) -> HTTPMethod {
        // Nearly all requests are GET or HEAD: no string is built for GET.
        if name.count == 3, name[0] == 0x47, name[1] == 0x45, name[2] == 0x54 { return .get }
        return HTTPMethod(text(name, isVisible: true))
    }

    /// Parses `HTTP/` and two digits (RFC 9112 section 2.3).
    private static func version(_ bytes: Span<UInt8>) throws(RequestError) -> HTTPVersion {
        guard bytes.count == 8, bytes[0] == 0x48, bytes[1] == 0x54, bytes[2] == 0x54,
            bytes[3] == 0x50, bytes[4] == 0x2F, ASCII.isDigit(bytes[5]), bytes[6] == 0x2E,
            ASCII.isDigit(bytes[7])
        else { throw .badRequest("The HTTP version is malformed.") }
        let version = HTTPVersion(major: bytes[5] &- 0x30, minor: bytes[7] &- 0x30)
        guard version.major == 1 else {
            throw RequestError(.versionNotSupported, "The only versions known here are HTTP/1.x.")
        }
        return version
    }

    /// Returns the bytes as text, with those above 0x7F percent-encoded: some players send UTF-8
    /// paths raw, and encoding them does not change the URL's meaning.
    private static func text(_ bytes: Span<UInt8>, isVisible: Bool) -> String {
        if isVisible, let valid = try? UTF8Span(validating: bytes) {
            return String(copying: valid)
        }
        let copy = [UInt8](capacity: bytes.count) { output in
            for index in bytes.indices { output.append(bytes[index]) }
        }
        return PercentCoding.encode(bytes: copy, allowed: visible)
    }

    private static let visible = PercentCoding.Allowed(
        String(decoding: Array<UInt8>(0x21...0x7E), as: UTF8.self))
}
