import URISyntax

/// The result of a call of `RequestParser.parse`.
package enum ParseOutcome: Sendable, Equatable {
    /// The head is not complete in the input.
    ///
    /// The first `examined` bytes have been scanned and will not be scanned again, but must be
    /// passed again.
    case incomplete(examined: Int)
    /// A complete head; the content or the next request begins after `consumed` bytes.
    case head(RequestHead, consumed: Int)
}

/// An incremental parser of request heads (RFC 9112 sections 2 to 5), strict where two parsers
/// could disagree.
///
/// The caller keeps the bytes that were not consumed and passes all of them again, with more
/// appended, on each call; every byte is scanned once, however many calls there are. After a head
/// the parser is ready for the next one; after an error the connection is unusable.
///
/// States and transitions: request line → `finishLine` → fields → `finishLine` with an empty
/// line → `finishHead` → request line.
package struct RequestParser: Sendable {
    private let limits: RequestLimits
    private let version: HTTPVersion?
    private var progress = Progress()

    /// The progress within the current head; offsets count from the start of the input.
    private struct Progress: Sendable {
        /// The first byte not yet scanned.
        var position = 0
        var lineStart = 0
        var sawEmptyLine = false
        var requestLine: RequestLine?
        var fieldsStart = 0
        var entries: [Fields.Entry] = []
    }

    /// Creates a parser of heads.
    ///
    /// - Parameters:
    ///   - limits: The limits of a head.
    ///   - version: The version of heads that arrived in the frames of a later HTTP version and
    ///     were converted to lines, whatever version these name; nil to parse it from the request
    ///     line.
    package init(limits: RequestLimits = RequestLimits(), version: HTTPVersion? = nil) {
        self.limits = limits
        self.version = version
    }

    /// True if part of a head has been scanned, so that a connection that ends now is truncated.
    package var isMidHead: Bool { progress.position > 0 }

    /// True if the request line has begun; false after the empty line that may precede it.
    package var hasBegun: Bool {
        progress.requestLine != nil || progress.position > progress.lineStart
    }

    /// Parses a complete request head at the start of `input`.
    ///
    /// - Parameter input: Every byte received since the last head and its content.
    /// - Returns: The head, or the number of bytes scanned.
    /// - Throws: The error to respond with: 400, 414, 431, 501, 505, or 413 for a length that
    ///   overflows.
    package mutating func parse(_ input: Span<UInt8>) throws(RequestError) -> ParseOutcome {
        // Fewer bytes than before are a misuse, which must not make client input trap.
        if input.count < progress.position { progress = Progress() }
        while let lineEnd = try scanLine(input) {
            let line = progress.lineStart..<lineEnd
            progress.position = lineEnd + 2
            progress.lineStart = progress.position
            if try finishLine(line, input) {
                let head = try finishHead(line, input)
                let consumed = progress.position
                progress = Progress()
                return .head(head, consumed: consumed)
            }
        }
        return .incomplete(examined: progress.position)
    }

    /// Scans to the end of the current line.
    ///
    /// - Returns: The offset of its CRLF; nil if the input ends first.
    private mutating func scanLine(_ input: Span<UInt8>) throws(RequestError) -> Int? {
        let isRequestLine = progress.requestLine == nil
        // The first offset that exceeds a limit if it is part of the line.
        let cap =
            isRequestLine
            ? min(progress.lineStart + limits.requestLine, limits.head) : limits.head
        let end = min(input.count, cap)
        var index = progress.position
        while index < end {
            if index &+ 8 <= end {
                let controls = ASCII.controls(in: EightBytes.load(input, at: index))
                if controls == 0 {
                    index &+= 8
                    continue
                }
                index &+= controls.trailingZeroBitCount / 8
            }
            let byte = input[index]
            if ASCII.isFieldValue(byte) {
                index += 1
                continue
            }
            progress.position = index
            return try lineEnd(at: index, input)
        }
        progress.position = index
        guard index == cap, index < input.count else { return nil }
        // Exactly at the limit: only the line end may follow.
        if input[index] == ASCII.carriageReturn, index + 1 < limits.head {
            return try lineEnd(at: index, input)
        }
        throw tooLong(isRequestLine: isRequestLine)
    }

    /// Returns the line end for the control character at `index` if that begins a CRLF; nil if more
    /// input is needed.
    private func lineEnd(at index: Int, _ input: Span<UInt8>) throws(RequestError) -> Int? {
        switch input[index] {
        case ASCII.carriageReturn:
            guard index + 1 < limits.head else {
                throw tooLong(isRequestLine: progress.requestLine == nil)
            }
            guard index + 1 < input.count else { return nil }
            guard input[index + 1] == ASCII.lineFeed else {
                throw .badRequest("A carriage return is not followed by a line feed.")
            }
            return index
        case ASCII.lineFeed:
            throw .badRequest("A line ends without a carriage return.")
        default:
            throw .badRequest("The head contains a control character.")
        }
    }

    private func tooLong(isRequestLine: Bool) -> RequestError {
        isRequestLine
            ? RequestError(.uriTooLong, "The request line is too long.")
            : RequestError(.requestHeaderFieldsTooLarge, "The head is too large.")
    }

    /// Parses a complete line.
    ///
    /// - Returns: True for the empty line that ends the head.
    private mutating func finishLine(
        _ line: Range<Int>, _ input: Span<UInt8>
    ) throws(RequestError) -> Bool {
        guard progress.requestLine != nil else {
            if line.isEmpty {
                // Old clients send an extra CRLF after a body (RFC 9112 section 2.2).
                guard !progress.sawEmptyLine else {
                    throw .badRequest("Too many empty lines precede the request line.")
                }
                progress.sawEmptyLine = true
                return false
            }
            progress.requestLine = try RequestLine(input.extracting(line), version: version)
            progress.fieldsStart = progress.position
            progress.entries.reserveCapacity(16)
            return false
        }
        if line.isEmpty { return true }
        guard progress.entries.count < limits.fieldCount else {
            throw RequestError(.requestHeaderFieldsTooLarge, "There are too many fields.")
        }
        progress.entries.append(try fieldEntry(line, input))
        return false
    }

    /// Parses a field line; offsets in the result count from the first field.
    private func fieldEntry(
        _ line: Range<Int>, _ input: Span<UInt8>
    ) throws(RequestError) -> Fields.Entry {
        var colon = line.lowerBound
        while colon < line.upperBound, ASCII.isToken(input[colon]) { colon += 1 }
        guard colon < line.upperBound, colon > line.lowerBound, input[colon] == ASCII.colon
        else { throw fieldFault(line, colon, input) }
        var start = colon + 1
        var end = line.upperBound
        while start < end, ASCII.isBlank(input[start]) { start += 1 }
        while end > start, ASCII.isBlank(input[end - 1]) { end -= 1 }
        let base = progress.fieldsStart
        return Fields.Entry(
            nameStart: UInt32(line.lowerBound - base), nameEnd: UInt32(colon - base),
            valueStart: UInt32(start - base), valueEnd: UInt32(end - base))
    }

    private func fieldFault(
        _ line: Range<Int>, _ stop: Int, _ input: Span<UInt8>
    ) -> RequestError {
        guard stop < line.upperBound else {
            return .badRequest("A field line has no colon.")
        }
        if ASCII.isBlank(input[stop]) {
            return stop == line.lowerBound
                ? .badRequest("A field line begins with white space.")
                : .badRequest("White space stands in or after a field name.")
        }
        return stop == line.lowerBound && input[stop] == ASCII.colon
            ? .badRequest("A field has no name.")
            : .badRequest("A field name contains a forbidden character.")
    }

    /// Creates the head from the parsed lines; `emptyLine` is the one that ends it.
    private mutating func finishHead(
        _ emptyLine: Range<Int>, _ input: Span<UInt8>
    ) throws(RequestError) -> RequestHead {
        guard let line = progress.requestLine else {
            throw .badRequest("There is no request line.")
        }
        let section = input.extracting(progress.fieldsStart..<emptyLine.lowerBound)
        var storage: [UInt8] = []
        // Appending nothing would write the reference count that all threads share for the empty
        // array.
        if !section.isEmpty {
            storage.append(addingCapacity: section.count) { bytes in
                for index in section.indices { bytes.append(section[index]) }
            }
        }
        let fields = Fields(storage: storage, entries: progress.entries)
        try fields.checkHost(version: line.version)
        _ = try fields.requestFraming(version: line.version)
        return RequestHead(
            method: line.method, target: line.target, version: line.version, fields: fields)
    }
}
