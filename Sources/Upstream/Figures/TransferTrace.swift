import Synchronization

/// Records the requests that one response has cost so far, for the log; any thread may read it.
package final class TransferTrace: Sendable {
    /// The costs of the requests.
    package struct Report: Sendable, Hashable {
        /// The latest request.
        package var latest: HopTimes
        /// Requests sent, redirects, repetitions and resumed transfers included.
        package var tries: Int
    }

    private struct State {
        var latest: HopTimes?
        /// Requests of finished hops.
        var triesBefore = 0
        var isOver = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Nil before an origin's first response or the first failure.
    package var report: Report? {
        state.withLock { state in
            state.latest.map {
                Report(latest: $0, tries: state.triesBefore + (state.isOver ? 0 : $0.tries))
            }
        }
    }

    /// Records a request whose response has begun.
    func begin(_ hop: HopTimes) {
        state.withLock { state in
            state.latest = hop
            state.isOver = false
        }
    }

    /// Records a finished request.
    func end(_ hop: HopTimes) {
        state.withLock { state in
            state.latest = hop
            state.triesBefore += hop.tries
            state.isOver = true
        }
    }
}
