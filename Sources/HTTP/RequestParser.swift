import URISyntax

/// What a call of `RequestParser.parse` came to.
package enum ParseOutcome: Sendable, Equatable {
    /// The head does not end in the input. The first `examined` bytes have been looked at and
    /// will not be again, but have to be passed again.
    case incomplete(examined: Int)
    /// A whole head; the content or the next request begins after `consumed` bytes.
    case head(RequestHead, consumed: Int)
}

/// An incremental parser of request heads (RFC 9112 sections 2 to 5), strict where two readers
/// could disagree.
///
/// The caller keeps the bytes that were not consumed and passes all of them, longer than before,
/// on each call; every byte is looked at once, however many calls there are. After a head the
/// parser is ready for the next one; after an error the connection is of no more use.
///
/// States, and what moves on: request line → `finishLine` → fields → `finishLine` with an empty
/// line → `finishHead` → request line.
package struct RequestParser: Sendable {
    private let limits: RequestLimits
    private let version: HTTPVersion?
    private var progress = Progress()

    /// How far the head has been understood; offsets count from the start of the input.
    private struct Progress: Sendable {
        /// The first byte not yet looked at.
        var position = 0
        var lineStart = 0
        var sawEmptyLine = false
        var requestLine: RequestLine?
        var fieldsStart = 0
        var entries: [Fields.Entry] = []
    }

    /// A parser of heads.
    ///
    /// - Parameters:
    ///   - limits: What a head may hold.
    ///   - version: That of heads which came in the frames of a later version and were written down as
    ///     lines, whatever version those name; nil to read it in the request line.
    package init(limits: RequestLimits = RequestLimits(), version: HTTPVersion? = nil) {
        self.limits = limits
        self.version = version
    }

    /// Whether part of a head has been seen, so that a connection ending now ends in its middle.
    package var isMidHead: Bool { progress.position > 0 }

    /// Looks for a whole request head at the start of `input`.
    ///
    /// - Parameter input: Every byte received since the last head and its content.
    /// - Returns: The head, or how far the input has been looked at.
    /// - Throws: What to answer: 400, 414, 431, 501, 505, or 413 for a length beyond counting.
    package mutating func parse(_ input: Span<UInt8>) throws(RequestError) -> ParseOutcome {
        // Fewer bytes than before: a misuse that must not become a trap on what a client sent.
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

    /// Moves to the end of the current line.
    ///
    /// - Returns: Where its CRLF begins; nil where the input ends first.
    private mutating func scanLine(_ input: Span<UInt8>) throws(RequestError) -> Int? {
        let isRequestLine = progress.requestLine == nil
        // The first offset whose being part of the line breaks a limit.
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
        // Exactly as long as allowed: only the line's own end may follow.
        if input[index] == ASCII.carriageReturn, index + 1 < limits.head {
            return try lineEnd(at: index, input)
        }
        throw tooLong(isRequestLine: isRequestLine)
    }

    /// Judges the control character at `index`: where it begins a CRLF, the line ends there.
    private func lineEnd(at index: Int, _ input: Span<UInt8>) throws(RequestError) -> Int? {
        switch input[index] {
        case ASCII.carriageReturn:
            guard index + 1 < limits.head else {
                throw tooLong(isRequestLine: progress.requestLine == nil)
            }
            guard index + 1 < input.count else { return nil }
            guard input[index + 1] == ASCII.lineFeed else {
                throw .badRequest("A carriage return stands without its line feed.")
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

    /// Reads a whole line.
    ///
    /// - Returns: Whether it was the empty one that ends the head.
    private mutating func finishLine(
        _ line: Range<Int>, _ input: Span<UInt8>
    ) throws(RequestError) -> Bool {
        guard progress.requestLine != nil else {
            if line.isEmpty {
                // Old clients send an extra CRLF after a body (RFC 9112 section 2.2).
                guard !progress.sawEmptyLine else {
                    throw .badRequest("Empty lines stand where a request should begin.")
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

    /// Reads a field line; offsets in the result count from the first field.
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
            : .badRequest("A field name contains a character that none may have.")
    }

    /// Makes the head out of what was found; `emptyLine` is the one that ends it.
    private mutating func finishHead(
        _ emptyLine: Range<Int>, _ input: Span<UInt8>
    ) throws(RequestError) -> RequestHead {
        guard let line = progress.requestLine else {
            throw .badRequest("There is no request line.")
        }
        let section = input.extracting(progress.fieldsStart..<emptyLine.lowerBound)
        var storage: [UInt8] = []
        // Appending nothing would write the count that all empty arrays share, beside other threads.
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
