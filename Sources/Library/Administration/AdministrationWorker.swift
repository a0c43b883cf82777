// The thread on which blocking work on the store, so that no server loop waits for the disk.
package import HTTP
package import Logging
package import Posix
import Reactor
import Synchronization
package import URISyntax

/// Answers requests one after the other, off the loops.
package final class AdministrationWorker: Sendable {
    /// More requests than this are turned away, so that nobody can pile them up.
    private static let mostWaiting = 32

    private let administration: StoreAdministration
    private let thread: LoopThread
    private let waiting = Atomic<Int>(0)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - catalogue: the titles of the store that is administered.
    ///   - log: told what a purge of an earlier run had left to do.
    ///   - origin: the origin's URL that a text means.
    /// - Throws: what `pthread_create(3)` fails with.
    package init(
        _ catalogue: TitleCatalogue, log: Logger,
        origin: @escaping @Sendable (String) -> AbsoluteURL?
    ) throws(SystemError) {
        administration = StoreAdministration(catalogue: catalogue, origin: origin)
        // Before the listeners are there: what was purged is not found from here on.
        administration.purging.resume(log)
        thread = try LoopThread(name: "titles") { _ in }
    }

    /// Ends a purge where it is, finishes what else was begun and ends the thread; blocks.
    package func stop() {
        administration.stop()
        thread.stopAndJoin()
    }

    /// Answers a request; `done` is called on the worker's thread.
    package func answer(
        _ method: HTTPMethod, _ target: String,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        guard waiting.add(1, ordering: .relaxed).newValue <= Self.mostWaiting else {
            waiting.subtract(1, ordering: .relaxed)
            return done(.failure(.serviceUnavailable, "too many requests wait; ask again later"))
        }
        let isTaken = thread.handle.enqueue { [self] _ in
            let answer = administration.answer(method, target)
            waiting.subtract(1, ordering: .relaxed)
            done(answer)
        }
        if !isTaken { done(.failure(.serviceUnavailable, "the daemon is stopping")) }
    }
}
