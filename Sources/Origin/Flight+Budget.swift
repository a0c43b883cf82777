import Model
import HTTP
import Posix
import Reactor
import Store
import URISyntax

/// What a flight spends of the budgets of those who wait for it: first that of the request that began
/// it, then those of requests that joined.
extension Flight {
    /// Takes one request out of the budget of somebody who waits; false where none may ask any more.
    func takeRequest() -> Bool {
        if budget.with({ $0.takeRequest(now: table.loop.now) }) { return true }
        return takeBudgetOfWaiter() && budget.with { $0.takeRequest(now: table.loop.now) }
    }

    /// Goes on with the budget of a request that joined, and tells those that have spent theirs.
    ///
    /// - Returns: false, and nothing changes, where nobody who waits may ask.
    @discardableResult
    func takeBudgetOfWaiter() -> Bool {
        guard let next = waiters.lazy.compactMap(\.budget).first(where: \.mayAsk) else {
            return false
        }
        let failure = spentFailure
        let spent = waiters.filter { $0.budget === budget }
        waiters.removeAll { $0.budget === budget }
        budget = next
        for waiter in spent { waiter.answer(.failure(failure), table) }
        return true
    }

    /// Fails because the origin was asked, or has sent, as much as one player request may cost.
    func failSpent() {
        let failure = spentFailure
        if !isAhead { table.noteGivenUp(resource.key, isSpent: true) }
        fail(failure, cause: FillEnd.spent(failure))
    }

    private var spentFailure: ProxyFailure {
        let requests = budget.requests
        var failure = ProxyFailure(
            .origin, .badGateway,
            "\(resource.url.redacted): the origin did not deliver this in \(requests) requests, or "
                + "sent the same bytes again and again; giving up",
            allowsStale: true)
        failure.proxyError = .httpResponseIncomplete
        return failure
    }

    /// Tells the budget what has come since it was told last.
    ///
    /// - Returns: false where too much of it had come before, and nobody who waits may receive it.
    func account() -> Bool {
        guard let end = writer?.offset, end > accountedEnd else { return true }
        let bytes = accountedEnd..<end
        accountedEnd = end
        let isWithin = budget.with { $0.receive(bytes, of: resource.key, now: table.loop.now) }
        return isWithin || takeBudgetOfWaiter()
    }
}
