// The received content of an HTTP/2 request that has not been taken yet: pure.
import Posix
import Reactor

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
    /// The deadline of the content that is waited for; nil while the handler does not wait.
    private(set) var deadline: Monotonic?
    /// The time left of the step when content last came; nil if a new step begins.
    private var timeLeft: Interval?
    private var stepBytes = 0
    private var isWanted = false

    /// The number of bytes held.
    var count: Int { held.count - start }

    /// True if the handler waits and there is content, or its end.
    var hasNews: Bool { isWanted && (count > 0 || isEnded) }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        mustSendContinue = false
        total += bytes.count
        stepBytes += bytes.count
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

    /// Starts or resumes the deadline of a content step, since the handler waits.
    mutating func want(now: Monotonic, limits: ServerLimits) {
        isWanted = true
        deadline = now + (timeLeft ?? limits.bodyTimeout)
    }

    /// Ends waiting: no more content is needed.
    mutating func stop() {
        isWanted = false
        deadline = nil
    }

    /// Ends waiting; a step continues until `contentStep` bytes have come.
    mutating func pause(now: Monotonic) {
        isWanted = false
        timeLeft = deadline.map { $0 - now }
        deadline = nil
        guard stepBytes >= ConnectionState.contentStep else { return }
        stepBytes = 0
        timeLeft = nil
    }
}
