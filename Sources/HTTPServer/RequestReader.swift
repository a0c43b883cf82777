/// Turns the bytes of a connection into whole requests: pure, no socket.
import HTTP

/// Reads one request after the other, keeping only bytes of a part that is not whole yet.
struct RequestReader {
    /// What the bytes so far come to.
    enum Outcome {
        /// Nothing whole; more bytes are needed.
        case needsMore
        /// The client wants to be told to go on before it sends the body.
        case wantsContinue
        case request(RequestHead, body: [UInt8])
        /// The connection is of no more use after the answer.
        case failed(RequestError)
    }

    /// Where the next byte belongs.
    enum Place {
        case betweenRequests, head, body
    }

    /// A body on its way; apart from the reader, so that idle connections carry only a reference.
    private final class PendingBody {
        let head: RequestHead
        var decoder: ChunkedDecoder?
        /// Bytes to come of a body with a length.
        var remaining: Int
        var collected: [UInt8] = []
        var owesContinue: Bool

        init(_ head: RequestHead, decoder: ChunkedDecoder?, remaining: Int, owesContinue: Bool) {
            self.head = head
            self.decoder = decoder
            self.remaining = remaining
            self.owesContinue = owesContinue
        }
    }

    private let limits: RequestLimits
    private let bodyBytes: Int
    private var parser: RequestParser
    private var pending: PendingBody?
    /// Bytes not consumed yet, from `heldStart` on.
    private var held: [UInt8] = []
    private var heldStart = 0

    init(limits: RequestLimits, bodyBytes: Int) {
        self.limits = limits
        self.bodyBytes = bodyBytes
        parser = RequestParser(limits: limits)
    }

    var place: Place {
        if pending != nil { return .body }
        return parser.isMidHead ? .head : .betweenRequests
    }

    /// Bytes that are kept for a later request, or for the rest of this one.
    var heldCount: Int { held.count - heldStart }

    /// Looks at bytes that have arrived; call `next` until it needs more.
    mutating func take(_ fresh: Span<UInt8>) -> Outcome {
        if heldCount == 0 {
            var consumed = 0
            let outcome = read(fresh, &consumed)
            keep(fresh.extracting(consumed...))
            return outcome
        }
        keep(fresh)
        return next()
    }

    /// Looks at the bytes that were kept.
    mutating func next() -> Outcome {
        // Taken out while it is read, so that reading may change everything else.
        var bytes: [UInt8] = []
        swap(&bytes, &held)
        var consumed = 0
        let outcome = read(bytes.span.extracting(heldStart...), &consumed)
        heldStart += consumed
        if heldStart == bytes.count {
            heldStart = 0
        } else {
            swap(&bytes, &held)
        }
        return outcome
    }

    private mutating func keep(_ bytes: Span<UInt8>) {
        if bytes.isEmpty { return }
        if heldStart > 0 {
            held.removeFirst(heldStart)
            heldStart = 0
        }
        held.reserveCapacity(held.count + bytes.count)
        for index in bytes.indices { held.append(bytes[index]) }
    }

    private mutating func read(_ input: Span<UInt8>, _ consumed: inout Int) -> Outcome {
        do throws(RequestError) {
            if pending == nil {
                guard case .head(let head, let length) = try parser.parse(input) else {
                    return .needsMore
                }
                consumed = length
                guard let body = try body(of: head, hasMore: input.count > length) else {
                    return .request(head, body: [])
                }
                pending = body
            }
            return try readBody(input.extracting(consumed...), &consumed)
        } catch {
            return .failed(error)
        }
    }

    /// The body to wait for, nil for none.
    private func body(of head: RequestHead, hasMore: Bool) throws(RequestError) -> PendingBody? {
        let owesContinue = !hasMore && head.expectsContinue
        switch head.bodyFraming {
        case .none, .length(0):
            return nil
        case .length(let length):
            guard length <= Int64(bodyBytes) else { throw tooLarge }
            return PendingBody(
                head, decoder: nil, remaining: Int(length), owesContinue: owesContinue)
        case .chunked:
            return PendingBody(
                head, decoder: ChunkedDecoder(limits: limits), remaining: 0,
                owesContinue: owesContinue)
        }
    }

    private var tooLarge: RequestError {
        RequestError(.contentTooLarge, "The request body is too large.")
    }

    private mutating func readBody(
        _ input: Span<UInt8>, _ consumed: inout Int
    ) throws(RequestError) -> Outcome {
        guard let body = pending else { return .needsMore }
        let isWhole: Bool
        if body.decoder == nil {
            let count = min(body.remaining, input.count)
            append(input.extracting(0..<count), to: &body.collected)
            body.remaining -= count
            consumed += count
            isWhole = body.remaining == 0
        } else {
            isWhole = try decode(input, into: body, &consumed)
        }
        if isWhole {
            pending = nil
            return .request(body.head, body: body.collected)
        }
        let asks = body.owesContinue
        body.owesContinue = false
        return asks ? .wantsContinue : .needsMore
    }

    private func decode(
        _ input: Span<UInt8>, into body: PendingBody, _ consumed: inout Int
    ) throws(RequestError) -> Bool {
        var position = 0
        while true {
            let rest = input.extracting(position...)
            switch try body.decoder?.decode(rest) {
            case .content(let range):
                guard body.collected.count + range.count <= bodyBytes else { throw tooLarge }
                append(rest.extracting(range), to: &body.collected)
                position += range.upperBound
            case .needsMore(let count):
                consumed += position + count
                return false
            case .end(let count):
                consumed += position + count
                return true
            case nil:
                return true
            }
        }
    }

    private func append(_ bytes: Span<UInt8>, to collected: inout [UInt8]) {
        for index in bytes.indices { collected.append(bytes[index]) }
    }
}
