// Parses the bytes of a connection into request heads and their content: pure, no socket.
import HTTP

/// Reads one request after the other, keeping only bytes that have not been requested yet.
///
/// After a head with content `hasOpenContent` is true: from then on `add` and `content` return the
/// content piece by piece, or `take` and `next` discard the rest of it and continue with the next
/// head.
struct RequestReader {
    /// The result of reading bytes.
    enum Outcome {
        /// Nothing is complete; more bytes are needed.
        case needsMore
        /// A head; `hasOpenContent` is true if content follows.
        case request(RequestHead)
        /// The request is invalid; the connection must be closed after the response.
        case failed(RequestError)
    }

    /// A piece of content, or its end.
    enum Piece: Equatable {
        /// At least one byte.
        case bytes([UInt8])
        case needsMore
        /// The content is complete.
        case end
    }

    /// The position of the next byte.
    enum Place {
        case betweenRequests, head, body
    }

    /// Content being received; separate from the reader, so that idle connections carry only a
    /// reference.
    private final class OpenContent {
        var decoder: ChunkedDecoder?
        /// The remaining bytes of content with a length.
        var remaining: Int64
        var mustSendContinue: Bool
        var discarded = 0

        init(decoder: ChunkedDecoder?, remaining: Int64, mustSendContinue: Bool) {
            self.decoder = decoder
            self.remaining = remaining
            self.mustSendContinue = mustSendContinue
        }
    }

    private let limits: RequestLimits
    private let bodyBytes: Int
    private let discardBytes: Int
    private var parser: RequestParser
    private var open: OpenContent?
    /// Bytes not consumed yet, from `heldStart` on.
    private var held: [UInt8] = []
    private var heldStart = 0

    /// - Parameters:
    ///   - limits: the limits of heads and of the framing of content.
    ///   - bodyBytes: the maximum content of one request.
    ///   - discardBytes: the maximum content of one request that is discarded.
    init(limits: RequestLimits, bodyBytes: Int, discardBytes: Int) {
        self.limits = limits
        self.bodyBytes = bodyBytes
        self.discardBytes = discardBytes
        parser = RequestParser(limits: limits)
    }

    var place: Place {
        if open != nil { return .body }
        // Old clients send an extra CRLF after a body: that begins no request.
        return parser.hasBegun ? .head : .betweenRequests
    }

    /// True if the next byte begins a head, with no earlier bytes held.
    var isAtStart: Bool { open == nil && heldCount == 0 && !parser.isMidHead }

    /// The number of bytes held for a later request, or for the rest of this one.
    var heldCount: Int { held.count - heldStart }

    /// The bytes held.
    var heldBytes: [UInt8] { Array(held[heldStart...]) }

    /// Reads bytes that have arrived; call `next` until it needs more.
    mutating func take(_ fresh: Span<UInt8>) -> Outcome {
        if heldCount == 0 {
            var consumed = 0
            let outcome = read(fresh, &consumed)
            add(fresh.extracting(consumed...))
            return outcome
        }
        add(fresh)
        return next()
    }

    /// Reads the held bytes.
    mutating func next() -> Outcome {
        withHeld { reader, bytes, consumed in reader.read(bytes, &consumed) }
    }

    /// Adds bytes to those held, for `content` and `next`.
    mutating func add(_ bytes: Span<UInt8>) {
        if bytes.isEmpty { return }
        if heldStart > 0 {
            held.removeFirst(heldStart)
            heldStart = 0
        }
        held.reserveCapacity(held.count + bytes.count)
        for index in bytes.indices { held.append(bytes[index]) }
    }

    /// Reads from the held bytes, and drops those consumed.
    private mutating func withHeld<Result, Failure: Error>(
        _ body: (inout RequestReader, Span<UInt8>, inout Int) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // Moved out during the call, so that `body` may change the reader.
        var bytes: [UInt8] = []
        swap(&bytes, &held)
        var consumed = 0
        defer {
            heldStart += consumed
            if heldStart == bytes.count { heldStart = 0 } else { swap(&bytes, &held) }
        }
        return try body(&self, bytes.span.extracting(heldStart...), &consumed)
    }

    private mutating func read(_ input: Span<UInt8>, _ consumed: inout Int) -> Outcome {
        do throws(RequestError) {
            if open != nil, try !discard(input, &consumed) { return .needsMore }
            let rest = input.extracting(consumed...)
            guard case .head(let head, let length) = try parser.parse(rest) else {
                return .needsMore
            }
            consumed += length
            open = try content(of: head, hasMore: rest.count > length)
            return .request(head)
        } catch {
            return .failed(error)
        }
    }

    /// Returns the content to wait for; nil for none.
    private func content(of head: RequestHead, hasMore: Bool) throws(RequestError) -> OpenContent? {
        switch head.bodyFraming {
        case .none, .length(0):
            return nil
        case .length(let length):
            guard length <= Int64(bodyBytes) else { throw .bodyTooLarge }
            return OpenContent(
                decoder: nil, remaining: length, mustSendContinue: !hasMore && head.expectsContinue)
        case .chunked:
            return OpenContent(
                decoder: ChunkedDecoder(limits: limits), remaining: 0,
                mustSendContinue: !hasMore && head.expectsContinue)
        }
    }
}

// MARK: - Content

extension RequestReader {
    /// True while content of the request is not complete.
    var hasOpenContent: Bool { open != nil }

    /// The remaining bytes of open content; nil if only its end determines them.
    var remainingContent: Int64? { open?.decoder == nil ? open?.remaining ?? 0 : nil }

    /// True while the client waits for 100 Continue (RFC 9110 section 10.1.1).
    var mustSendContinue: Bool { open?.mustSendContinue ?? false }

    /// Records that 100 Continue was sent, or that the client sent content without waiting for it.
    mutating func noteContinueSent() { open?.mustSendContinue = false }

    /// Returns the next content from the held bytes, at most `limit` bytes.
    mutating func content(limit: Int) throws(RequestError) -> Piece {
        try withHeld { (reader, bytes, consumed) throws(RequestError) in
            try reader.piece(of: bytes, limit: limit, &consumed)
        }
    }

    private mutating func piece(
        of input: Span<UInt8>, limit: Int, _ consumed: inout Int
    ) throws(RequestError) -> Piece {
        var piece: [UInt8] = []
        let isWhole = try decode(input, limit: limit, &consumed) { bytes in
            piece.reserveCapacity(piece.count + bytes.count)
            for index in bytes.indices { piece.append(bytes[index]) }
        }
        if isWhole { open = nil }
        if !piece.isEmpty { return .bytes(piece) }
        return isWhole ? .end : .needsMore
    }

    /// Discards content.
    ///
    /// - Returns: true if its end was reached.
    private mutating func discard(
        _ input: Span<UInt8>, _ consumed: inout Int
    ) throws(RequestError) -> Bool {
        var count = 0
        let isWhole = try decode(input, limit: .max, &consumed) { count += $0.count }
        open?.discarded += count
        if isWhole {
            open = nil
        } else if let open, open.discarded > discardBytes {
            throw .bodyTooLarge
        }
        return isWhole
    }

    /// Finds content in `input`, at most `limit` bytes.
    ///
    /// - Returns: true if the end of the content was reached.
    private func decode(
        _ input: Span<UInt8>, limit: Int, _ consumed: inout Int, _ found: (Span<UInt8>) -> Void
    ) throws(RequestError) -> Bool {
        guard let open else { return true }
        guard open.decoder != nil else {
            let count = Int(min(open.remaining, Int64(min(limit, input.count))))
            found(input.extracting(0..<count))
            open.remaining -= Int64(count)
            consumed += count
            return open.remaining == 0
        }
        var position = 0
        var room = limit
        while room > 0 {
            let end = position + min(room, input.count - position)
            let rest = input.extracting(position..<end)
            switch try open.decoder?.decode(rest) {
            case .content(let range):
                found(rest.extracting(range))
                room -= range.count
                position += range.upperBound
                guard open.decoder?.contentLength ?? 0 <= Int64(bodyBytes) else {
                    throw .bodyTooLarge
                }
            case .needsMore(let count):
                position += count
                guard position < input.count else {
                    consumed += position
                    return false
                }
            case .end(let count):
                consumed += position + count
                return true
            case nil:
                return true
            }
        }
        consumed += position
        return false
    }
}
