import HTTP
import Model
import Posix
import Upstream

extension FlightMachine {
    /// What is known besides when a transfer has ended.
    struct Ending {
        /// Whether anybody still wants what the flight brings.
        let isWanted: Bool
        /// The random part of a delay, from 0 to 1.
        let jitter: Double
        let now: Monotonic
    }

    // MARK: Retry

    /// Goes on after a transfer that failed, by a range request where bytes have come already.
    ///
    /// - Parameters:
    ///   - error: why it failed.
    ///   - isDown: true where nobody answers there: only a body that broke in the middle is tried for
    ///     again.
    ///   - fill: the fill; nil where there is none.
    ///   - ending: how the flight may go on.
    /// - Returns: what is to be done.
    mutating func broke(
        _ error: UpstreamError, isDown: Bool, _ fill: FillFacts?, _ ending: Ending
    ) -> [Action] {
        guard !hasEnded else { return [] }
        if case .cancelled = error.kind {
            // The daemon ends: this is nobody's failure, and is not counted.
            let failure = ProxyFailure(error, subject: job.subject)
            return close(cause: error) + [.answer(takeWaiters(), .failure(failure))]
        }
        if let fill, isWhole(fill) { return wasWhole(now: ending.now) }
        let failure = ProxyFailure(error, subject: job.subject)
        guard error.isRetryable, !isDown || fill != nil, let resumption = resumption(fill) else {
            return fail(failure, cause: error)
        }
        if case .preempted = error.kind { return resume(resumption, after: .zero) }
        // With something stale at hand the player is served that, at once.
        if job.revalidates { return fail(failure, cause: error) }
        var actions: [Action] = []
        guard let delay = nextDelay(hasBody: fill != nil, ending, &actions) else {
            return actions + giveUp(failure, cause: error)
        }
        guard ending.isWanted else { return actions + abandon() }
        return actions + [.count(.originFailures)] + resume(resumption, after: delay)
    }

    /// Goes on after the end of a transfer whose head was useless, such as a 503.
    mutating func refusalEnded(_ fill: FillFacts?, _ ending: Ending) -> [Action] {
        guard case .refused(let refusal, _) = state else { return [] }
        var failure = ProxyFailure(originStatus: refusal.status, subject: job.subject)
        failure.retryAfter = refusal.retryAfter.map { $0.nanoseconds / 1_000_000_000 }
        let pause = refusal.retryAfter ?? .zero
        var actions: [Action] = []
        // Held for as long as the origin would: players ask again themselves.
        guard !job.revalidates, !job.isDelivery, let resumption = resumption(fill),
            let delay = nextDelay(hasBody: true, ending, &actions), pause <= job.limits.patience
        else { return actions + giveUp(failure, cause: FillEnd.refused(failure)) }
        guard ending.isWanted else { return actions + abandon() }
        return actions + resume(resumption, after: max(delay, pause))
    }

    /// Whether every byte that was asked for has come although the transfer ended badly.
    private func isWhole(_ fill: FillFacts) -> Bool {
        if case .span(_, let end?) = wanted { return fill.offset >= end }
        return fill.total.map { fill.offset >= $0 } ?? false
    }

    /// How the transfer can be resumed; nil if it cannot be.
    private func resumption(_ fill: FillFacts?) -> Resumption? {
        guard let fill else { return .again }
        return Resumption(
            fill, of: wanted, isOpaque: isOpaque, isHandedOut: isHandedOut,
            isOpenText: isPlaylist || isSniffing, job)
    }

    /// The time until the next attempt, or nil when the player has waited long enough.
    private mutating func nextDelay(
        hasBody: Bool, _ ending: Ending, _ actions: inout [Action]
    ) -> Interval? {
        if !budget.mayAsk { _ = borrows(&actions) }
        let failures = budget.with { $0.fail() }
        guard job.mayRepeat, budget.mayAsk else { return nil }
        return job.limits.delay(
            afterFailures: failures, hasBody: hasBody, waited: ending.now - budget.lastProgress,
            jitter: ending.jitter)
    }

    /// Asks again after some time.
    mutating func resume(_ resumption: Resumption, after delay: Interval) -> [Action] {
        switch resumption {
        case .again:
            return [.count(.originRetries)] + backOff(presentQuestion, for: delay)
        case .from(let offset, let end):
            wanted = .span(start: offset, end: end)
            return [.count(.originResumes)] + backOff(presentQuestion, for: delay)
        case .afresh:
            fill = nil
            wanted = .whole
            return [.count(.originRetries), .startOver] + backOff(for: delay)
        }
    }

    /// What the transfer that has ended was to answer.
    private var presentQuestion: Question {
        switch state {
        case .asking(let attempt), .holding(let attempt, _), .comparing(let attempt, _):
            attempt.question
        case .refused(_, let question), .due(let question), .backingOff(let question): question
        case .filling, .waitingForOthers, .ended: .content
        }
    }

    // MARK: Give up

    /// Fails after all attempts: the same question asked again at once is tried once only.
    mutating func giveUp(_ failure: ProxyFailure, cause: any Error) -> [Action] {
        let isSpent = !budget.mayAsk
        let note: [Action] = job.revalidates || isAhead ? [] : [.noteGivenUp(isSpent: isSpent)]
        return note + fail(failure, cause: isSpent ? FillEnd.spent(failure) : cause)
    }

    /// Fails because the origin was asked, or has sent, as much as one player request may cost.
    mutating func failSpent() -> [Action] {
        let failure = spentFailure
        let note: [Action] = isAhead ? [] : [.noteGivenUp(isSpent: true)]
        return note + fail(failure, cause: FillEnd.spent(failure))
    }

    var spentFailure: ProxyFailure {
        let requests = budget.requests
        var failure = ProxyFailure(
            .origin, .badGateway,
            "\(job.subject): the origin did not deliver this in \(requests) requests, or "
                + "sent the same bytes again and again; giving up",
            allowsStale: true)
        failure.proxyError = .httpResponseIncomplete
        return failure
    }

    /// Fails where players have waited for an answer longer than any of them would: bytes that come
    /// one by one are no answer yet.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - isHeldByOrigin: whether the origin may hold the request back.
    /// - Returns: nil where there is time.
    mutating func failOverdue(
        now: Monotonic, isHeldByOrigin: @autoclosure () -> Bool
    ) -> [Action]? {
        let limit = job.limits.answer
        guard !isHandedOut, now - job.begunAt > limit, !waiters.isEmpty, !isAhead,
            !job.beganAhead, lane <= .playback, !hasEnded, !isHeldByOrigin()
        else { return nil }
        // The time in the queue for a slot is not the origin's.
        guard let asked = budget.with({ $0.firstAskedAt }), now - asked > limit else { return nil }
        var failure = ProxyFailure(
            .origin, .gatewayTimeout,
            "\(job.subject): the origin did not deliver enough for an answer within "
                + "\(limit.nanoseconds / 1_000_000_000) s",
            allowsStale: true)
        failure.proxyError = .httpResponseTimeout
        return giveUp(failure, cause: FillEnd.refused(failure))
    }

    // MARK: Ends

    /// Ends the flight with a failure that everybody is told.
    mutating func fail(_ failure: ProxyFailure, cause: any Error) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [
            .count(.originFailures), .close(cause: cause, cancels: true),
            .answer(takeWaiters(), .failure(failure)),
        ]
    }

    /// Ends the flight with an answer of the origin that is of no use.
    mutating func refuse(_ failure: ProxyFailure) -> [Action] {
        fail(failure, cause: FillEnd.refused(failure))
    }

    mutating func refuseOrigin(_ what: String, _ status: HTTPStatus? = nil) -> [Action] {
        refuse(
            ProxyFailure(.origin, .badGateway, "\(job.subject): \(what)", originStatus: status))
    }

    /// Ends the flight because nobody wants it; what has come is kept.
    mutating func abandon() -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [.count(.flightsAbandoned), .close(cause: nil, cancels: true)]
    }

    /// Ends the flight without an object of its own.
    ///
    /// The transfer of an answer without content is not cancelled: it ends by itself in a moment, and
    /// leaves a connection that can be used again.
    mutating func end(with answer: Answer) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        var cancels = false
        if case .filledByOthers = answer { cancels = true }
        return [.close(cause: nil, cancels: cancels), .answer(takeWaiters(), answer)]
    }

    /// Ends the flight for those who read the object; whoever wants the rest asks for it.
    ///
    /// Nobody may wait for an answer then.
    mutating func close(cause: (any Error)?) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [.close(cause: cause, cancels: true)]
    }
}
