import Synchronization

/// The requests that one answer has cost so far, for whoever logs it; any thread may ask.
package final class TransferTrace: Sendable {
    /// What is known of the requests.
    package struct Report: Sendable, Hashable {
        /// The latest request.
        package var latest: HopTimes
        /// Requests sent, redirects, repetitions and resumed transfers included.
        package var tries: Int
    }

    private struct State {
        var latest: HopTimes?
        /// Requests of hops that are over.
        var triesBefore = 0
        var isOver = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Nil before the first answer of an origin or the first failure.
    package var report: Report? {
        state.withLock { state in
            state.latest.map {
                Report(latest: $0, tries: state.triesBefore + (state.isOver ? 0 : $0.tries))
            }
        }
    }

    /// Takes note of a request whose answer has begun.
    func begin(_ hop: HopTimes) {
        state.withLock { state in
            state.latest = hop
            state.isOver = false
        }
    }

    /// Takes note of a request that is over.
    func end(_ hop: HopTimes) {
        state.withLock { state in
            state.latest = hop
            state.triesBefore += hop.tries
            state.isOver = true
        }
    }
}
