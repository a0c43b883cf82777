/// Gathers the lines that libcurl hands over into response heads.
import HTTP

/// One head after another: interim ones, redirects, the final one; then trailers, left out.
struct HeadParser {
    private(set) var status = HTTPStatus(rawValue: 0)
    private(set) var version = HTTPVersion.http11
    private(set) var fields = Fields()
    /// Bytes of the present head.
    private(set) var size = 0

    enum Event: Hashable {
        case more
        /// The empty line after a head came.
        case complete
        /// The status line is none.
        case malformed
    }

    /// Takes one line with its line end.
    ///
    /// Lines that are no well-formed field are left out, so that nothing an origin sends can forge
    /// one downstream.
    mutating func take(_ line: ArraySlice<UInt8>) -> Event {
        size += line.count
        if line.starts(with: "HTTP/".utf8) {
            fields = Fields()
            size = line.count
            return readStatus(line) ? .more : .malformed
        }
        if line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) { return .complete }
        _ = fields.append(line: line)
        return .more
    }

    /// Reads `HTTP/1.1 200 OK` or `HTTP/2 200` (RFC 9112 section 4).
    private mutating func readStatus(_ line: ArraySlice<UInt8>) -> Bool {
        let rest = line.dropFirst(5)
        guard let blank = rest.firstIndex(of: 0x20) else { return false }
        let digits = rest[..<blank].filter { $0 != 0x2E }.map { $0 &- 0x30 }
        guard let major = digits.first, digits.allSatisfy({ $0 <= 9 }) else { return false }
        version = HTTPVersion(major: major, minor: digits.count > 1 ? digits[1] : 0)
        let code = rest[(blank + 1)...].prefix(3)
        guard code.count == 3, code.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return false }
        status = HTTPStatus(rawValue: code.reduce(0) { $0 * 10 + UInt16($1 - 0x30) })
        return status.rawValue >= 100
    }
}
