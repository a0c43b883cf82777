// Turns the bytes of a connection into request heads and their content: pure, no socket.
import HTTP

/// Reads one request after the other, keeping only bytes that nobody has asked for yet.
///
/// After a head with content `hasOpenContent` is true: from then on `add` and `content` hand the
/// content over piece by piece, or `take` and `next` throw the rest of it away and go on with the
/// head behind it.
struct RequestReader {
    /// What the bytes so far come to.
    enum Outcome {
        /// Nothing whole; more bytes are needed.
        case needsMore
        /// A head; `hasOpenContent` says whether content follows.
        case request(RequestHead)
        /// The connection is of no more use after the answer.
        case failed(RequestError)
    }

    /// A part of the content.
    enum Piece: Equatable {
        /// At least one byte.
        case bytes([UInt8])
        case needsMore
        /// The content is whole.
        case end
    }

    /// Where the next byte belongs.
    enum Place {
        case betweenRequests, head, body
    }

    /// Content on its way; apart from the reader, so that idle connections carry only a reference.
    private final class OpenContent {
        var decoder: ChunkedDecoder?
        /// Bytes to come of content with a length.
        var remaining: Int64
        var owesContinue: Bool
        var discarded = 0

        init(decoder: ChunkedDecoder?, remaining: Int64, owesContinue: Bool) {
            self.decoder = decoder
            self.remaining = remaining
            self.owesContinue = owesContinue
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
    ///   - limits: Those of heads and of the framing of content.
    ///   - bodyBytes: The most content of one request.
    ///   - discardBytes: The most content of one request that is thrown away.
    init(limits: RequestLimits, bodyBytes: Int, discardBytes: Int) {
        self.limits = limits
        self.bodyBytes = bodyBytes
        self.discardBytes = discardBytes
        parser = RequestParser(limits: limits)
    }

    var place: Place {
        if open != nil { return .body }
        return parser.isMidHead ? .head : .betweenRequests
    }

    /// Whether the next byte begins a head, with nothing kept from before.
    var isAtStart: Bool { open == nil && heldCount == 0 && !parser.isMidHead }

    /// Bytes that are kept for a later request, or for the rest of this one.
    var heldCount: Int { held.count - heldStart }

    /// The bytes that are kept.
    var heldBytes: [UInt8] { Array(held[heldStart...]) }

    /// Looks at bytes that have arrived; call `next` until it needs more.
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

    /// Looks at the bytes that were kept.
    mutating func next() -> Outcome {
        withHeld { reader, bytes, consumed in reader.read(bytes, &consumed) }
    }

    /// Keeps bytes for `content` and `next`.
    mutating func add(_ bytes: Span<UInt8>) {
        if bytes.isEmpty { return }
        if heldStart > 0 {
            held.removeFirst(heldStart)
            heldStart = 0
        }
        held.reserveCapacity(held.count + bytes.count)
        for index in bytes.indices { held.append(bytes[index]) }
    }

    /// Reads out of the bytes that were kept, and lets go of those consumed.
    private mutating func withHeld<Result>(
        _ body: (inout RequestReader, Span<UInt8>, inout Int) -> Result
    ) -> Result {
        // Taken out while it is read, so that reading may change everything else.
        var bytes: [UInt8] = []
        swap(&bytes, &held)
        var consumed = 0
        let result = body(&self, bytes.span.extracting(heldStart...), &consumed)
        heldStart += consumed
        if heldStart == bytes.count {
            heldStart = 0
        } else {
            swap(&bytes, &held)
        }
        return result
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

    /// The content to wait for, nil for none.
    private func content(of head: RequestHead, hasMore: Bool) throws(RequestError) -> OpenContent? {
        switch head.bodyFraming {
        case .none, .length(0):
            return nil
        case .length(let length):
            guard length <= Int64(bodyBytes) else { throw tooLarge }
            return OpenContent(
                decoder: nil, remaining: length, owesContinue: !hasMore && head.expectsContinue)
        case .chunked:
            return OpenContent(
                decoder: ChunkedDecoder(limits: limits), remaining: 0,
                owesContinue: !hasMore && head.expectsContinue)
        }
    }

    private var tooLarge: RequestError {
        RequestError(.contentTooLarge, "The request body is too large.")
    }
}

// MARK: - Content

extension RequestReader {
    /// Whether a request's content is not at its end yet.
    var hasOpenContent: Bool { open != nil }

    /// Bytes of open content that are still to be handed over; nil where only its end will tell.
    var remainingContent: Int64? { open?.decoder == nil ? open?.remaining ?? 0 : nil }

    /// Whether the client still waits to be told to go on (RFC 9110 section 10.1.1).
    var owesContinue: Bool { open?.owesContinue ?? false }

    /// Notes that the client was told, or sent content without waiting for it.
    mutating func settleContinue() { open?.owesContinue = false }

    /// The next content out of the bytes that were kept, at most `limit` bytes.
    mutating func content(limit: Int) throws(RequestError) -> Piece {
        let result = withHeld { reader, bytes, consumed -> Result<Piece, RequestError> in
            do throws(RequestError) {
                return .success(try reader.piece(of: bytes, limit: limit, &consumed))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
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

    /// Throws content away.
    ///
    /// - Returns: Whether its end was seen.
    private mutating func discard(
        _ input: Span<UInt8>, _ consumed: inout Int
    ) throws(RequestError) -> Bool {
        var count = 0
        let isWhole = try decode(input, limit: .max, &consumed) { count += $0.count }
        open?.discarded += count
        if isWhole {
            open = nil
        } else if let open, open.discarded > discardBytes {
            throw tooLarge
        }
        return isWhole
    }

    /// Finds content in `input`, at most `limit` bytes.
    ///
    /// - Returns: Whether all content has been found.
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
                guard open.decoder?.contentLength ?? 0 <= Int64(bodyBytes) else { throw tooLarge }
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
