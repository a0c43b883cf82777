// A thread for requests that block on the disk.
import Posix
import Reactor
import Synchronization

/// Carries out requests one at a time, in their order.
///
/// The number of those that wait is limited, so that it cannot grow with the requests of clients.
final class RequestThread: Sendable {
    /// Why a request is not carried out.
    enum Refusal {
        case tooManyWait
        case hasEnded
    }

    /// The most requests that wait; further ones are refused.
    private static let mostWaiting = 32

    private let thread: LoopThread
    private let waiting = Atomic<Int>(0)

    /// The handle of the thread's loop, for other work than requests.
    var handle: LoopHandle { thread.handle }

    /// Starts the thread.
    init(name: String) throws(SystemError) { thread = try LoopThread(name: name) { _ in } }

    /// Makes an answer on the thread, or refuses to at once.
    func answer<Answer: Sendable>(
        _ make: @escaping @Sendable () -> Answer, refusing refuse: (Refusal) -> Answer,
        _ done: @escaping @Sendable (Answer) -> Void
    ) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.mostWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return done(refuse(.tooManyWait))
        }
        let isTaken = thread.handle.enqueue { [self] _ in
            let answer = make()
            waiting.subtract(1, ordering: .relaxed)
            done(answer)
        }
        if !isTaken {
            waiting.subtract(1, ordering: .relaxed)
            done(refuse(.hasEnded))
        }
    }

    /// Ends the thread after the requests that wait; blocks.
    func stopAndJoin() { thread.stopAndJoin() }
}
