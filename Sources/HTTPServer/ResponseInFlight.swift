// What is left to send of one response.
import HTTP

/// One response on its way, without the bytes that wait in the connection's output.
struct ResponseInFlight {
    let status: HTTPStatus
    let framing: ResponsePlan.Framing
    /// Whether the connection ends with the response.
    let closes: Bool
    /// Content at hand that was too long to be joined to the head.
    let bytes: [UInt8]
    /// Where content comes from; nil when there is none, or once it has ended.
    var source: (any BodySource)?
    /// Bytes of content handed to the kernel, or joined to the head.
    var bodySent: Int64 = 0
    /// How many of them were joined to the head.
    var joined = 0
    /// Bytes that the head of the current chunk has promised.
    var chunkRemaining = 0

    /// The most that one chunk promises: what has been promised cannot be taken back.
    static let largestChunk = 1 << 18
    /// Content up to this size goes out in one piece with the head.
    static let joinLimit = 1 << 14

    /// Whether content of a told length is all out.
    var isWhole: Bool {
        if case .length(let length) = framing { return bodySent >= length }
        return false
    }

    /// How much to ask a source for, out of what this turn allows.
    func limit(budget: Int) -> Int {
        switch framing {
        case .length(let length):
            Int(min(Int64(budget), length - bodySent))
        case .chunked:
            min(budget, chunkRemaining > 0 ? chunkRemaining : Self.largestChunk)
        case .none, .untilClose:
            budget
        }
    }

    /// Whether a source may end here without the client being short of anything.
    var mayEnd: Bool {
        switch framing {
        case .length: isWhole
        case .chunked: chunkRemaining == 0
        case .none, .untilClose: true
        }
    }

    /// Notes sent content.
    ///
    /// - Returns: Whether a chunk ended with it.
    mutating func noteSent(_ count: Int) -> Bool {
        bodySent += Int64(count)
        guard framing == .chunked else { return false }
        chunkRemaining -= count
        return chunkRemaining == 0
    }
}
