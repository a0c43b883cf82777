// The thread on which blocking work on the store, so that no server loop waits for the disk.
import Model
import HLS
import HTTP
package import Posix
import Reactor
import Routing
import Store
import Synchronization
import URISyntax

/// Answers requests one after the other, off the loops.
package final class AdministrationWorker: Sendable {
    /// More requests than this are turned away, so that nobody can pile them up.
    private static let mostWaiting = 32

    private let administration: StoreAdministration
    private let thread: LoopThread
    private let waiting = Atomic<Int>(0)

    /// Starts the thread.
    package init(core: ProxyCore) throws(SystemError) {
        let catalogue = TitleCatalogue(
            store: core.store, sessions: core.sessions, keys: core.keys,
            limits: core.settings.playlistLimits)
        administration = StoreAdministration(catalogue: catalogue) { core.originURL($0) }
        // Before the listeners are there: what was purged is not found from here on.
        administration.purging.resume(core.log)
        thread = try LoopThread(name: "titles") { _ in }
    }

    /// Ends a purge where it is, finishes what else was begun and ends the thread; blocks.
    package func stop() {
        administration.stop()
        thread.stopAndJoin()
    }

    /// Answers a request; `done` is called on the worker's thread.
    func answer(
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

extension ProxyCore {
    /// The origin's URL that a text means: as it is, or behind a URL of ours; nil for neither.
    func originURL(_ text: String) -> AbsoluteURL? {
        guard let url = try? AbsoluteURL(text) else { return nil }
        guard isOwn(url) else { return url }
        let head = RequestHead(method: .get, target: url.pathAndQuery)
        switch router.route(head) {
        case .entry(let entry): return entry.url
        case .mount(_, let target): return target
        case .rewritten(let link):
            return try? target(of: link, isChecked: false).url
        default: return nil
        }
    }
}
