import HTTPServer
import Model
import Posix
import Reactor

/// The wait of a request for the reply to its fetch.
///
/// It begins with each fetch, and ends with the reply or with the request's patience, whichever
/// comes first. Until then, a client that leaves cancels the fetch.
struct AwaitedFetch {
    /// Nil while there is none.
    private var id: FetchID?
    private var patience: TimerID?

    /// Begins the wait.
    ///
    /// - Parameters:
    ///   - id: the fetch.
    ///   - exchange: the request.
    ///   - cancel: called if the client leaves before the wait is over.
    mutating func begin(
        _ id: FetchID, on exchange: Exchange, onCancel cancel: @escaping () -> Void
    ) {
        self.id = id
        exchange.onCancel = cancel
    }

    /// Has `giveUp` called after a time, unless the wait has ended by then.
    mutating func limit(
        to time: Interval, on exchange: Exchange, _ giveUp: @escaping (FetchID) -> Void
    ) {
        guard let id else { return }
        patience = exchange.loop.schedule(after: time) { _ in giveUp(id) }
    }

    /// Ends the wait.
    ///
    /// - Parameters:
    ///   - id: a fetch that has been answered, or is waited for no longer.
    ///   - exchange: the request.
    /// - Returns: false, without a change, if another fetch is waited for, or none.
    mutating func end(_ id: FetchID, on exchange: Exchange) -> Bool {
        guard self.id == id else { return false }
        if let patience { exchange.loop.cancel(patience) }
        self = AwaitedFetch()
        exchange.onCancel = nil
        return true
    }
}
