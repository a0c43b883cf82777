// How long the handler waits for content of a request: pure.
import Posix

/// The deadline of the content that is waited for, for each `bytes` of it anew.
///
/// Its time stands still while the handler does not wait.
struct ContentStep {
    /// The bytes of content that must arrive within `bodyTimeout`, so that a trickle cannot hold a
    /// connection.
    static let bytes = 4096

    /// Set only while content is waited for.
    private(set) var deadline: Monotonic?
    /// The time left when content last came; nil if a new step begins.
    private var timeLeft: Interval?
    private var arrived = 0

    /// True while the handler waits for content.
    var isWanted: Bool { deadline != nil }

    /// Starts or resumes the step, since the handler waits.
    mutating func want(now: Monotonic, limits: ServerLimits) {
        deadline = now + (timeLeft ?? limits.bodyTimeout)
    }

    /// Records arrived content.
    mutating func add(_ count: Int) { arrived += count }

    /// Ends waiting until more is requested.
    mutating func pause(now: Monotonic) {
        timeLeft = deadline.map { $0 - now }
        deadline = nil
        guard arrived >= Self.bytes else { return }
        arrived = 0
        timeLeft = nil
    }

    /// Ends waiting: no more content is needed.
    mutating func end() { self = ContentStep() }
}
