// The received content of an HTTP/2 request that has not been taken yet: pure.

/// The content of DATA frames (RFC 9113 section 6.1).
///
/// The client may send only as much as its windows allow, and these grow as content is taken: the
/// connection's window bounds the memory of all its streams together.
struct RequestContent {
    private var held: [UInt8] = []
    private var start = 0
    /// True once all of it has arrived.
    private(set) var isEnded = false
    /// The number of bytes that have arrived.
    private(set) var total = 0
    /// True while the client waits for 100 Continue (RFC 9110 section 10.1.1).
    var mustSendContinue = false
    /// The handler's wait for it.
    var step = ContentStep()

    /// The number of bytes held.
    var count: Int { held.count - start }

    /// True if the handler waits and there is content, or its end.
    var hasNews: Bool { step.isWanted && (count > 0 || isEnded) }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        mustSendContinue = false
        total += bytes.count
        step.add(bytes.count)
        held.append(contentsOf: bytes)
    }

    mutating func end() { isEnded = true }

    /// Removes and returns at most `limit` bytes.
    mutating func take(_ limit: Int) -> [UInt8] {
        let end = min(held.count, start + limit)
        let taken = Array(held[start..<end])
        start = end
        if start == held.count {
            held = []
            start = 0
        }
        return taken
    }
}
