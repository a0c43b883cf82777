// The fields of one HTTP/2 request, written as the lines of HTTP/1.1: pure.
import HTTP
import URISyntax

/// Collects the fields of one request (RFC 9113 section 8.3.1) and writes them as lines, so that
/// one parser, one set of limits and one table of repeated heads serve both protocols.
///
/// The session has already validated names, values and the order of pseudo-header fields.
struct HeaderBlock {
    private var method: [UInt8] = []
    private var path: [UInt8] = []
    private var authority: [UInt8] = []
    private var host: [UInt8] = []
    private var cookies: [UInt8] = []
    private var lines: [UInt8] = []
    private(set) var hasPriority = false
    /// True if the fields exceed the limit of a head; the excess was not kept.
    private(set) var isTooLarge = false

    /// Resets the block for the next request; keeps the capacity.
    mutating func reset() {
        method.removeAll(keepingCapacity: true)
        path.removeAll(keepingCapacity: true)
        authority.removeAll(keepingCapacity: true)
        host.removeAll(keepingCapacity: true)
        cookies.removeAll(keepingCapacity: true)
        lines.removeAll(keepingCapacity: true)
        hasPriority = false
        isTooLarge = false
    }

    private var count: Int { path.count + authority.count + cookies.count + lines.count }

    /// Adds one field; all fields together may have `limit` bytes.
    mutating func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, limit: Int
    ) {
        guard !isTooLarge, count + name.count + value.count + 4 <= limit else {
            isTooLarge = true
            return
        }
        if name.count > 1, name[0] == ASCII.colon {
            // The session admits no other pseudo-header fields; the connection determines the
            // scheme.
            switch name[1] {
            case UInt8(ascii: "m"): method.append(contentsOf: value)
            case UInt8(ascii: "p"): path.append(contentsOf: value)
            case UInt8(ascii: "a"): authority.append(contentsOf: value)
            default: break
            }
            return
        }
        if Self.equal(name, "cookie") {
            // Joins split cookie fields (RFC 9113 section 8.2.3).
            if !cookies.isEmpty { cookies.append(contentsOf: "; ".utf8) }
            cookies.append(contentsOf: value)
            return
        }
        if Self.equal(name, "host") {
            host.append(contentsOf: value)
            return
        }
        if Self.equal(name, "priority") { hasPriority = true }
        Self.append(name, value, to: &lines)
    }

    private static func equal(_ name: UnsafeBufferPointer<UInt8>, _ other: StaticString) -> Bool {
        name.count == other.utf8CodeUnitCount
            && name.elementsEqual(
                UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
    }

    private static func append(
        _ name: some Collection<UInt8>, _ value: some Collection<UInt8>, to lines: inout [UInt8]
    ) {
        lines.append(contentsOf: name)
        lines.append(ASCII.colon)
        lines.append(ASCII.space)
        lines.append(contentsOf: value)
        lines.append(ASCII.carriageReturn)
        lines.append(ASCII.lineFeed)
    }

    /// The reason why the block is not a valid request; nil if it is valid.
    var fault: RequestError? {
        if isTooLarge {
            return RequestError(.requestHeaderFieldsTooLarge, "The head is too large.")
        }
        // A `Host` field that differs from `:authority` would make the target ambiguous.
        if !host.isEmpty, !authority.isEmpty, host != authority {
            return RequestError(.badRequest, "Host and :authority name different hosts.")
        }
        return nil
    }

    /// Writes the block as a head with its empty line.
    ///
    /// Nothing in it can end a line: the session rejects control characters.
    func write(to head: inout [UInt8]) {
        head.append(contentsOf: method)
        head.append(ASCII.space)
        // CONNECT has no path (RFC 9113 section 8.5).
        head.append(contentsOf: path.isEmpty ? authority : path)
        head.append(contentsOf: " HTTP/2.0\r\n".utf8)
        let named = authority.isEmpty ? host : authority
        if !named.isEmpty { Self.append("host".utf8, named, to: &head) }
        head.append(contentsOf: lines)
        if !cookies.isEmpty { Self.append("cookie".utf8, cookies, to: &head) }
        head.append(ASCII.carriageReturn)
        head.append(ASCII.lineFeed)
    }
}
