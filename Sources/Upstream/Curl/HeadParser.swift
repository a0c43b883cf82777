// Collects the lines from libcurl into response heads.
import HTTP
import Numbers
import URISyntax

/// Parses one head after another: interim ones, redirects, the final one; trailers are dropped.
///
/// Strict where two parsers could disagree about the end of the body (RFC 9112 section 6.3), so
/// that libcurl and downstream recipients frame it in the same way.
struct HeadParser {
    private(set) var status = HTTPStatus(rawValue: 0)
    private(set) var version = HTTPVersion.http11
    private(set) var fields = Fields()
    /// True if the body has the chunked transfer coding.
    private(set) var isChunked = false
    /// Bytes of the current head.
    private(set) var size = 0
    /// A field line that the next line may continue.
    private var open: ArraySlice<UInt8> = []
    private var isMalformed = false
    /// True from a status line to the empty line.
    private var isInHead = false

    /// The whole status line of SHOUTcast stations, in place of one of HTTP/1.0.
    static let stationLine = "ICY 200 OK"

    enum Event: Hashable {
        case more
        /// The empty line after a head was received.
        case complete
        /// The status line is invalid, or the framing is ambiguous.
        case malformed
    }

    /// Parses one line with its line end.
    ///
    /// Lines that are not well-formed fields are dropped, so that an origin cannot forge one
    /// downstream.
    mutating func take(_ line: ArraySlice<UInt8>) -> Event {
        size += line.count
        if line.first == 0x48, line.starts(with: "HTTP/".utf8) {
            fields = Fields()
            // Enough for most heads, so that the arrays do not grow line by line.
            fields.reserve(lines: 16, bytes: 512)
            open = []
            isChunked = false
            isMalformed = false
            size = line.count
            isInHead = true
            return readStatus(line) ? .more : .malformed
        }
        // Only as the first line: libcurl takes it for a field anywhere else.
        if !isInHead, line.first == 0x49,
            Self.withoutLineEnd(line).elementsEqual(Self.stationLine.utf8)
        {
            return take(Array("HTTP/1.0 200 OK\r\n".utf8)[...])
        }
        if line.count <= 2, line.allSatisfy({ $0 == 0x0D || $0 == 0x0A }) {
            closeField()
            isInHead = false
            return !isMalformed && checkFraming() ? .complete : .malformed
        }
        if line.first == 0x20 || line.first == 0x09 {
            fold(line)
        } else {
            closeField()
            let line = Self.withoutLineEnd(line)
            open = Self.withoutBlanksBeforeColon(line)
            // libcurl does not recognise such a name, so it would not frame the body by it.
            if open.count != line.count, isFraming { isMalformed = true }
        }
        return .more
    }

    /// Continues the field of the line before (RFC 9112 section 5.2): the fold becomes a space.
    private mutating func fold(_ line: ArraySlice<UInt8>) {
        guard !open.isEmpty else { return }
        if isFraming { isMalformed = true }
        open += [0x20] + Self.withoutLineEnd(line).drop { $0 == 0x20 || $0 == 0x09 }
    }

    private mutating func closeField() {
        guard !open.isEmpty else { return }
        if !fields.append(line: open), isFraming { isMalformed = true }
        open = []
    }

    /// True if the open field determines the framing of the body.
    private var isFraming: Bool {
        // A longer name is none of them, and a field may be continued by thousands of lines.
        let name = open.prefix(Self.longestFramingName + 1).prefix { $0 != 0x3A }
        return Self.framingNames.contains {
            $0.utf8.elementsEqual(name.map { byte in byte | 0x20 })
        }
    }

    private static let framingNames = ["content-length", "transfer-encoding"]
    private static let longestFramingName = 17

    private static func withoutLineEnd(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        // By index: removing bytes from a slice runs generic code.
        var end = line.endIndex
        if end > line.startIndex, line[end - 1] == 0x0A { end -= 1 }
        if end > line.startIndex, line[end - 1] == 0x0D { end -= 1 }
        return line[line.startIndex..<end]
    }

    /// Removes white space between name and colon, as a proxy must (RFC 9112 section 5.1).
    private static func withoutBlanksBeforeColon(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex,
            line[colon - 1] == 0x20 || line[colon - 1] == 0x09
        else { return line }
        var name = line[..<colon]
        while name.last == 0x20 || name.last == 0x09 { name.removeLast() }
        return name + line[colon...]
    }

    // MARK: Framing

    /// Returns false if the head is contradictory about the end of the body.
    private mutating func checkFraming() -> Bool {
        guard version.major < 2 else { return unifyLengths() }
        if fields.contains(.transferEncoding) {
            // HTTP/1.0 has no transfer codings (RFC 9112 section 6.1).
            guard version >= .http11 else { return false }
            let codings = fields.listMembers(.transferEncoding).map { ASCII.lowercased($0) }
            guard !codings.isEmpty, !codings.dropLast().contains("chunked") else { return false }
            isChunked = codings.last == "chunked"
            // The coding overrides Content-Length, which must not be forwarded.
            fields.remove(.contentLength)
            return true
        }
        return unifyLengths()
    }

    /// Merges equal Content-Length values; returns false if they differ, are malformed or exceed
    /// 2^53 - 1.
    private mutating func unifyLengths() -> Bool {
        guard fields.contains(.contentLength) else { return true }
        if fields.count(of: .contentLength) == 1, let length = fields.valueBytes(.contentLength),
            (1...15).contains(length.count), length.allSatisfy(ASCII.isDigit)
        {
            return true
        }
        let lengths = Set(fields.listMembers(.contentLength))
        guard lengths.count == 1, let length = lengths.first, !length.isEmpty,
            ExternalNumber.integer(length, in: 0...ExternalNumber.largest) != nil
        else { return false }
        if fields.count(of: .contentLength) > 1 || fields.first(.contentLength) != length {
            fields.set(.contentLength, length)
        }
        return true
    }

    // MARK: Status

    /// Reads `HTTP/1.1 200 OK` or `HTTP/2 200` (RFC 9112 section 4).
    private mutating func readStatus(_ line: ArraySlice<UInt8>) -> Bool {
        let rest = line.dropFirst(5)
        guard let blank = rest.firstIndex(of: 0x20) else { return false }
        let digits = rest[..<blank].filter { $0 != 0x2E }.map { $0 &- 0x30 }
        guard let major = digits.first, digits.allSatisfy({ $0 <= 9 }) else { return false }
        version = HTTPVersion(major: major, minor: digits.count > 1 ? digits[1] : 0)
        let code = rest[(blank + 1)...].prefix(3)
        guard code.count == 3, let number = DecimalDigits<UInt16>(code, upTo: 999).number else {
            return false
        }
        status = HTTPStatus(rawValue: number)
        return status.rawValue >= 100
    }
}
