// The content of a request in HTTP/2 that has come and that nobody has taken yet: pure.
import Posix
import Reactor

/// What DATA frames brought (RFC 9113 section 6.1).
///
/// The client may send only as much as its windows allow, and these grow as content is taken: memory
/// is bounded by the connection's window, which no stream takes more of than the others together.
struct RequestContent {
    private var held: [UInt8] = []
    private var start = 0
    /// Whether all of it has come.
    private(set) var isEnded = false
    /// Bytes that came in all.
    private(set) var total = 0
    /// Whether the client waits to be told to go on (RFC 9110 section 10.1.1).
    var owesContinue = false
    /// Until when content that is waited for has to have come; nil while nobody waits.
    private(set) var deadline: Monotonic?
    /// What was left of that time when content last came; nil where a new step begins.
    private var timeLeft: Interval?
    private var stepBytes = 0
    private var isWanted = false

    /// Bytes that are held.
    var count: Int { held.count - start }

    /// Whether somebody waits for what there is now.
    var hasNews: Bool { isWanted && (count > 0 || isEnded) }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        owesContinue = false
        total += bytes.count
        stepBytes += bytes.count
        held.append(contentsOf: bytes)
    }

    mutating func end() { isEnded = true }

    /// Takes at most `limit` bytes out.
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

    /// Somebody waits for more.
    mutating func want(now: Monotonic, limits: ServerLimits) {
        isWanted = true
        deadline = now + (timeLeft ?? limits.bodyTimeout)
    }

    /// Nothing of it is wanted any more.
    mutating func stop() {
        isWanted = false
        deadline = nil
    }

    /// Nobody waits any more; drops of content do not begin a new step.
    mutating func settle(now: Monotonic) {
        isWanted = false
        timeLeft = deadline.map { $0 - now }
        deadline = nil
        guard stepBytes >= ConnectionState.contentStep else { return }
        stepBytes = 0
        timeLeft = nil
    }
}
