import URISyntax

/// An incremental decoder of chunked bodies (RFC 9112 section 7.1), strict where two parsers could
/// disagree.
///
/// It stores no bytes: each call returns the range of its input that is content, and the caller
/// continues with the bytes after those consumed. Trailers are validated and dropped, since they
/// must not be merged into the fields by default (RFC 9110 section 6.5.1).
package struct ChunkedDecoder: Sendable {
    /// The result of a call of `decode`.
    package enum Step: Sendable, Equatable {
        /// All of the input was framing; more is needed.
        case needsMore(consumed: Int)
        /// The bytes in `range` are content, at least one; continue after `range.upperBound`.
        case content(Range<Int>)
        /// The body is complete; the next request begins after `consumed` bytes.
        case end(consumed: Int)
    }

    /// The part of the framing that the next byte belongs to.
    private enum State: Sendable {
        case sizeStart, size, spaceBeforeExtension, extensions, sizeLineFeed
        case content, contentReturn, contentLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed, lastLineFeed, ended
    }

    private let limits: RequestLimits
    private var state = State.sizeStart
    /// Bytes of the current chunk that have not arrived yet.
    private var remaining: Int64 = 0
    private var extensionBytes = 0
    private var trailerBytes = 0
    /// Content bytes found so far.
    package private(set) var contentLength: Int64 = 0

    package init(limits: RequestLimits = RequestLimits()) {
        self.limits = limits
    }

    /// True once the end of the body has been parsed.
    package var isAtEnd: Bool { state == .ended }

    /// Parses framing from the start of `input` up to the next content or the end of the body.
    ///
    /// - Throws: 400 for malformed framing, 413 for a size that overflows, 431 for too large a
    ///   trailer section. The decoder cannot be used afterwards.
    package mutating func decode(_ input: Span<UInt8>) throws(RequestError) -> Step {
        var index = 0
        while index < input.count {
            switch state {
            case .content:
                let length = Int(min(remaining, Int64(input.count - index)))
                remaining -= Int64(length)
                contentLength &+= Int64(length)
                if remaining == 0 { state = .contentReturn }
                return .content(index..<(index + length))
            case .ended:
                return .end(consumed: index)
            default:
                try takeFraming(input[index])
                index += 1
            }
        }
        return state == .ended ? .end(consumed: index) : .needsMore(consumed: index)
    }

    private mutating func takeFraming(_ byte: UInt8) throws(RequestError) {
        switch state {
        case .sizeStart, .size, .spaceBeforeExtension, .extensions:
            try takeSizeLine(byte)
        case .sizeLineFeed:
            try require(byte, ASCII.lineFeed)
            state = remaining == 0 ? .trailerStart : .content
        case .contentReturn:
            guard byte == ASCII.carriageReturn else {
                throw .badRequest("A chunk is longer than its stated size.")
            }
            state = .contentLineFeed
        case .contentLineFeed:
            try require(byte, ASCII.lineFeed)
            state = .sizeStart
        case .trailerStart, .trailerName, .trailerValue:
            try takeTrailer(byte)
        case .trailerLineFeed:
            try require(byte, ASCII.lineFeed)
            state = .trailerStart
        case .lastLineFeed:
            try require(byte, ASCII.lineFeed)
            state = .ended
        case .content, .ended:
            return
        }
    }

    private mutating func takeSizeLine(_ byte: UInt8) throws(RequestError) {
        if state == .sizeStart || state == .size {
            if let digit = ASCII.hexValue(byte) {
                try takeSizeDigit(digit)
                return
            }
            guard state == .size else { throw .badRequest("A chunk has no size.") }
        }
        switch byte {
        case ASCII.carriageReturn where state != .spaceBeforeExtension:
            state = .sizeLineFeed
            return
        case ASCII.semicolon:
            state = .extensions
        case _ where state == .extensions && ASCII.isFieldValue(byte):
            break
        case ASCII.space where state != .extensions, ASCII.tab where state != .extensions:
            state = .spaceBeforeExtension
        default:
            throw .badRequest("The size line of a chunk is malformed.")
        }
        extensionBytes += 1
        guard extensionBytes <= limits.chunkExtensions else {
            throw .badRequest("The chunk extensions are too long.")
        }
    }

    private mutating func takeSizeDigit(_ digit: UInt8) throws(RequestError) {
        guard remaining <= Int64.max >> 4 else {
            throw RequestError(.contentTooLarge, "The size of a chunk is out of range.")
        }
        remaining = remaining << 4 | Int64(digit)
        // Limits leading zeros, which could be endless.
        if remaining == 0, state == .size {
            extensionBytes += 1
            guard extensionBytes <= limits.chunkExtensions else {
                throw .badRequest("The size of a chunk has too many zeros.")
            }
        }
        state = .size
    }

    private mutating func takeTrailer(_ byte: UInt8) throws(RequestError) {
        trailerBytes += 1
        switch (state, byte) {
        case (.trailerStart, ASCII.carriageReturn):
            state = .lastLineFeed
            return
        case (.trailerValue, ASCII.carriageReturn):
            state = .trailerLineFeed
        case (.trailerName, ASCII.colon):
            state = .trailerValue
        case (.trailerValue, _) where ASCII.isFieldValue(byte):
            break
        case (.trailerStart, _) where ASCII.isToken(byte):
            state = .trailerName
        case (.trailerName, _) where ASCII.isToken(byte):
            break
        default:
            throw .badRequest("The trailer section is malformed.")
        }
        guard trailerBytes <= limits.trailers else {
            throw RequestError(.requestHeaderFieldsTooLarge, "The trailer section is too large.")
        }
    }

    private func require(_ byte: UInt8, _ expected: UInt8) throws(RequestError) {
        guard byte == expected else {
            throw .badRequest("A carriage return is not followed by a line feed.")
        }
    }
}
