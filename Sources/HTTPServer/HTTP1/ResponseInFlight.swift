// The state of a response that is being sent.
import HTTP

/// One response being sent, without the bytes that wait in the connection's output.
struct ResponseInFlight {
    let status: HTTPStatus
    let framing: ResponsePlan.Framing
    /// True if the connection closes after the response.
    let closes: Bool
    /// Content in memory that was too long to be joined to the head.
    let bytes: [UInt8]
    /// The source of the content; nil if there is none, or once it has ended.
    var source: (any BodySource)?
    /// Bytes of content passed to the kernel, or joined to the head.
    var bodySent: Int64 = 0
    /// The number of bytes joined to the head.
    var joined = 0
    /// The bytes still missing in the current chunk.
    var chunkRemaining = 0

    /// The maximum length of a chunk, since an announced length cannot be changed.
    static let largestChunk = 1 << 18
    /// Content up to this length is sent in one piece with the head.
    static let joinLimit = 1 << 14

    /// True if all content of a known length was sent.
    var isWhole: Bool {
        if case .length(let length) = framing { return bodySent >= length }
        return false
    }

    /// Returns the number of bytes to request from a source, within this turn's budget.
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

    /// True if a source may end here without leaving the content incomplete.
    var mayEnd: Bool {
        switch framing {
        case .length: isWhole
        case .chunked: chunkRemaining == 0
        case .none, .untilClose: true
        }
    }

    /// Records sent content.
    ///
    /// - Returns: true if a chunk ended with it.
    mutating func noteSent(_ count: Int) -> Bool {
        bodySent += Int64(count)
        guard framing == .chunked else { return false }
        chunkRemaining -= count
        return chunkRemaining == 0
    }
}
