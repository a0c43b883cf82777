// The threads that run blocking store administration, so that no server loop waits for the disk.
package import HTTP
package import Model
package import Posix
import Reactor
import Synchronization

/// Processes administration requests off the server loops: listings one at a time, and all others
/// one at a time.
package final class AdministrationWorker: Sendable {
    private let administration: StoreAdministration
    private let changes: RequestThread
    /// A thread of its own: a listing takes seconds, and pins and purges must not wait for it.
    private let listings: RequestThread
    /// True once requests that wait are rejected: a listing of a large store takes seconds, and its
    /// client is gone.
    let isStopping = Atomic<Bool>(false)
    private let unused = Mutex(UnusedTurns())

    /// Continues an interrupted purge, and starts the threads.
    ///
    /// - Parameter administration: carries out the requests.
    /// - Throws: the error of `pthread_create(3)`.
    package init(_ administration: StoreAdministration) throws(SystemError) {
        self.administration = administration
        // Before the listeners start: from here on purged objects are not found.
        administration.purging.resume()
        changes = try RequestThread(name: "titles")
        listings = try RequestThread(name: "listings")
    }

    /// Stops a running purge and check, finishes the current requests, rejects those that wait and
    /// ends the threads; blocks.
    package func stop() {
        isStopping.store(true, ordering: .releasing)
        administration.stop()
        changes.stopAndJoin()
        listings.stopAndJoin()
    }

    /// Responds to a request.
    ///
    /// - Parameters:
    ///   - method: its method.
    ///   - target: its path and query.
    ///   - accepted: called first if it is accepted, with each query by which other nodes make the
    ///     same change; on a thread of the worker.
    ///   - done: called on a thread of the worker, or immediately if the request is rejected.
    package func answer(
        _ method: HTTPMethod, _ target: String,
        accepted: (@Sendable (_ queryForNodes: String) -> Void)? = nil,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        perform(
            on: StoreAdministration.lists(method, target) ? listings : changes,
            { administration in
                guard let accepted else { return administration.answer(method, target) }
                let request = RequestHead(method: method, target: target)
                let queries = request.query.map {
                    administration.queriesForNodes(request.path, $0)
                }
                let answer = administration.answer(method, target)
                if case .value = answer { for query in queries ?? [] { accepted(query) } }
                return answer
            }, done)
    }

    /// Repeats purges of other nodes.
    ///
    /// - Parameters:
    ///   - purges: their queries, and when they were given.
    ///   - done: called on a thread of the worker, or immediately if too much waits.
    package func purge(
        _ purges: [(query: String, given: WallTime)],
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        perform(on: changes, { $0.purge(purges) }, done)
    }

    /// Removes what nobody has used for a time, now and once an hour, until the next call.
    ///
    /// - Parameters:
    ///   - limit: this time; nil removes nothing any more.
    ///   - counters: count what is removed.
    package func removeUnused(for limit: Interval?, counters: Counters) {
        let setting = unused.withLock { $0.follow(limit) }
        changes.handle.enqueue { [weak self] loop in
            self?.removeUnused(by: setting, counters, on: loop)
        }
    }

    private func removeUnused(by setting: Int, _ counters: Counters, on loop: EventLoop) {
        let (now, wall) = (loop.now, loop.wallNow)
        guard !isStopping.load(ordering: .acquiring),
            let turn = unused.withLock({ $0.next(of: setting, now: now, wall: wall) })
        else { return }
        if let since = turn.since { administration.removeUnused(since: since, counters) }
        loop.schedule(after: turn.pause) { [weak self] loop in
            self?.removeUnused(by: setting, counters, on: loop)
        }
    }

    private func perform(
        on thread: RequestThread,
        _ work: @escaping @Sendable (StoreAdministration) -> AdministrationAnswer,
        _ done: @escaping @Sendable (AdministrationAnswer) -> Void
    ) {
        thread.answer(
            { [self] in
                isStopping.load(ordering: .acquiring) ? Self.refusal : work(administration)
            },
            refusing: { refusal -> AdministrationAnswer in
                switch refusal {
                case .tooManyWait:
                    .failure(.serviceUnavailable, "too many requests wait; ask again later")
                case .hasEnded: Self.refusal
                }
            }, done)
    }

    private static let refusal = AdministrationAnswer.failure(
        .serviceUnavailable, "the daemon is stopping")
}
