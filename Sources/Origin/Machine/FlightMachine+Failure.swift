import HTTP
import Model
import Posix
import URISyntax
import Upstream

extension FlightMachine {
    /// The circumstances at the end of a transfer.
    struct Ending {
        /// True if what the flight fetches is still needed.
        let isWanted: Bool
        /// The random part of a delay, from 0 to 1.
        let jitter: Double
        let now: Monotonic
        /// True if the flight waits for the return of the origin that failed.
        var awaitsReturn = false
        /// The origin that the request was redirected to; nil if it was not.
        var redirectedOrigin: Origin?
    }

    // MARK: Retry

    /// Handles a failed transfer: retries, or resumes with a range request if bytes have arrived.
    ///
    /// - Parameters:
    ///   - error: why it failed.
    ///   - isDown: true if the origin is down: only a body interrupted in the middle, or what waits
    ///     for its return, is retried then.
    ///   - fill: the fill; nil if there is none.
    ///   - ending: how the flight may continue.
    /// - Returns: the actions.
    mutating func broke(
        _ error: UpstreamError, isDown: Bool, _ fill: FillFacts?, _ ending: Ending
    ) -> [Action] {
        guard !hasEnded else { return [] }
        if case .cancelled = error.kind {
            // The daemon is stopping: not counted as a failure.
            let failure = ProxyFailure(error, subject: job.subject)
            return close(cause: error) + [.answer(waiters.takeAll(), .failure(failure))]
        }
        if let fill, isWhole(fill) { return wasWhole(now: ending.now) }
        noteEndOfDelivery(now: ending.now)
        if isEarlyEnd(error) {
            guard ending.isWanted else { return abandon() }
            firstTry = .hung
            return [.count(.originFailures)] + resume(.again, after: nil)
        }
        var failure = ProxyFailure(error, subject: job.subject)
        failure.redirectedOrigin = ending.redirectedOrigin
        guard error.isRetryable, !isDown || fill != nil || ending.awaitsReturn,
            let resumption = resumption(fill)
        else { return fail(failure, cause: error) }
        if case .preempted = error.kind { return resume(resumption, after: .zero) }
        // A stale response is available, and is served immediately unless the new one has begun.
        if job.revalidates, fill == nil || !wasObjectGiven { return fail(failure, cause: error) }
        // Requests would only time out one after another; the probes tell when one is worthwhile.
        if resumption != .afresh, ending.awaitsReturn {
            guard ending.isWanted else { return abandon() }
            _ = budget.with { $0.fail() }
            return [.count(.originFailures)]
                + resume(resumption, after: OriginProbes.returnLook)
        }
        var actions: [Action] = []
        guard let delay = nextDelay(hasBody: fill != nil, fill, ending, &actions) else {
            return actions + giveUp(failure, cause: error)
        }
        guard ending.isWanted else { return actions + abandon() }
        let keepsSlot = !isDown && isWorthItsSlot(now: ending.now)
        return actions + [.count(.originFailures)]
            + resume(resumption, after: keepsSlot ? nil : delay)
    }

    /// How long a body arrives before it is resumed without a pause when it breaks.
    private static let provenTime = Interval.seconds(1 as Int64)

    /// True if a player's body that has arrived for a while is resumed without a pause: in the
    /// pause, a request that came later could take the slot and keep it for a whole body.
    ///
    /// Only the first time without new bytes, so that at most one request in a second is sent so.
    private func isWorthItsSlot(now: Monotonic) -> Bool {
        guard !isAhead, extent == .bounded, let filling else { return false }
        return now - filling.since >= Self.provenTime && budget.with { $0.failuresInARow } == 1
    }

    /// Handles the end of a transfer whose head was useless, such as a 503.
    mutating func refusalEnded(_ fill: FillFacts?, _ ending: Ending) -> [Action] {
        guard case .refused(let refusal, _) = state else { return [] }
        let pause = refusal.retryAfter ?? .zero
        var actions: [Action] = []
        guard mayComeBack, let resumption = resumption(fill),
            let delay = nextDelay(hasBody: true, fill, ending, &actions),
            job.limits.mayPause(for: pause, waited: ending.now - lastProgress)
        else { return actions + giveUp(refusal) }
        actions = note(refusal) + actions
        guard ending.isWanted else { return actions + abandon() }
        return actions + [.count(.originFailures)]
            + resume(resumption, after: max(delay, pause))
    }

    /// True if a temporary error may be followed by another request.
    ///
    /// The origin itself limits how long a reload is held: players repeat it themselves.
    var mayComeBack: Bool { !job.revalidates && !job.hasDirectives }

    /// Fails because of a temporary error.
    mutating func giveUp(_ refusal: Refusal) -> [Action] {
        var failure = ProxyFailure(originStatus: refusal.status, subject: job.subject)
        failure.retryAfter = refusal.retryAfter.map { $0.nanoseconds / 1_000_000_000 }
        return note(refusal) + giveUp(failure, cause: FillEnd.refused(failure))
    }

    /// Has the pause noted that the origin asks for, if it does.
    private func note(_ refusal: Refusal) -> [Action] {
        guard let pause = refusal.retryAfter, pause > .zero else { return [] }
        return [.noteRefusal(refusal.status, retryAfter: pause)]
    }

    /// True if every requested byte has arrived although the transfer failed.
    private func isWhole(_ fill: FillFacts) -> Bool {
        if case .span(_, let end?) = wanted { return fill.offset >= end }
        return fill.total.map { fill.offset >= $0 } ?? false
    }

    /// Returns how the transfer can be resumed; nil if it cannot.
    private func resumption(_ fill: FillFacts?) -> Resumption? {
        guard let fill else { return .again }
        if extent == .endless { return .anew }
        return Resumption(
            fill, of: wanted, isOpaque: isOpaque, wasObjectGiven: wasObjectGiven,
            isOpenText: isPlaylist || isSniffing && job.resource.role.isOpen, job)
    }

    /// Returns the time until the next attempt; nil if there must not be one.
    private mutating func nextDelay(
        hasBody: Bool, _ fill: FillFacts?, _ ending: Ending, _ actions: inout [Action]
    ) -> Interval? {
        if !budget.mayAsk { _ = borrows(&actions) }
        let failures = budget.with { $0.fail() }
        guard job.mayRepeat || hasAdvanced(fill), budget.mayAsk else { return nil }
        return job.limits.delay(
            afterFailures: failures, hasBody: hasBody, waited: ending.now - lastProgress,
            jitter: ending.jitter)
    }

    /// True if this flight has received bytes, so that earlier failures say nothing of it.
    private func hasAdvanced(_ facts: FillFacts?) -> Bool {
        guard let facts, let fill else { return false }
        return facts.offset > fill.firstOffset
    }

    /// Schedules the next request.
    ///
    /// - Parameters:
    ///   - resumption: what it fetches.
    ///   - delay: the time until it is sent; nil sends it immediately, so that it takes the slot
    ///     that the failed transfer gives back in this round.
    /// - Returns: the actions.
    mutating func resume(_ resumption: Resumption, after delay: Interval?) -> [Action] {
        switch resumption {
        case .again:
            return [.count(.originRetries)] + ask(presentQuestion, after: delay)
        case .from(let offset, let end):
            wanted = .span(start: offset, end: end)
            return [.count(.originResumes)] + ask(presentQuestion, after: delay)
        case .anew:
            wanted = .whole
            return [.count(.originResumes)] + ask(presentQuestion, after: delay)
        case .afresh:
            fill = nil
            wanted = .whole
            return [.count(.originRetries), .startOver] + ask(.content, after: delay)
        }
    }

    private mutating func ask(_ question: Question, after delay: Interval?) -> [Action] {
        guard let delay else { return becomeDue(question) }
        return backOff(question, for: delay)
    }

    /// The question of the transfer that has ended.
    private var presentQuestion: Question {
        switch state {
        case .asking(let attempt), .holding(let attempt, _), .comparing(let attempt, _):
            attempt.question
        case .refused(_, let question), .due(let question), .backingOff(let question): question
        case .filling, .waitingForOthers, .ended: .content
        }
    }

    // MARK: Giving up

    /// Fails after all attempts; a repetition of the request soon after gets a single attempt.
    mutating func giveUp(_ failure: ProxyFailure, cause: any Error) -> [Action] {
        let isSpent = !budget.mayAsk
        let note: [Action] = job.revalidates || isAhead ? [] : [.noteGivenUp(isSpent: isSpent)]
        return note + fail(failure, cause: isSpent ? FillEnd.spent(failure) : cause)
    }

    /// Fails because the requests or bytes that one player request may cost are used up.
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

    /// Fails if players have waited longer for a response than any of them would; bytes that
    /// trickle in are not a response yet.
    ///
    /// - Parameters:
    ///   - now: the time.
    ///   - isHeldByOrigin: whether the origin may hold the request.
    /// - Returns: nil while there is time.
    mutating func failOverdue(
        now: Monotonic, isHeldByOrigin: @autoclosure () -> Bool
    ) -> [Action]? {
        let limit = job.limits.answer
        guard !wasObjectGiven, now - job.begunAt > limit, !waiters.isEmpty, !isAhead,
            !job.beganAhead, lane <= .playback, !hasEnded, !isHeldByOrigin()
        else { return nil }
        // The time in the queue for a slot is not the origin's fault.
        guard let time = budget.with({ $0.timeAtOrigins(now: now) }), time > limit else {
            return nil
        }
        var failure = ProxyFailure(
            .origin, .gatewayTimeout,
            "\(job.subject): the origin did not deliver enough for an answer within "
                + "\(limit.nanoseconds / 1_000_000_000) s",
            allowsStale: true)
        failure.proxyError = .httpResponseTimeout
        return giveUp(failure, cause: FillEnd.refused(failure))
    }

    // MARK: Ends

    /// Ends the flight with a failure that all waiters get.
    mutating func fail(_ failure: ProxyFailure, cause: any Error) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [
            .count(.originFailures), .close(cause: cause, cancels: false),
            .answer(waiters.takeAll(), .failure(failure)),
        ]
    }

    /// Ends the flight because the origin's response is of no use.
    mutating func refuse(_ failure: ProxyFailure) -> [Action] {
        fail(failure, cause: FillEnd.refused(failure))
    }

    mutating func refuseOrigin(_ what: String, _ status: HTTPStatus? = nil) -> [Action] {
        refuse(
            ProxyFailure(.origin, .badGateway, "\(job.subject): \(what)", originStatus: status))
    }

    /// Ends the flight because it is not needed; what was received stays stored.
    mutating func abandon() -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [.count(.flightsAbandoned), .close(cause: nil, cancels: true)]
    }

    /// Ends the flight without an object of its own.
    mutating func end(with answer: Answer) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        var cancels = false
        if case .filledByOthers = answer { cancels = true }
        return [.close(cause: nil, cancels: cancels), .answer(waiters.takeAll(), answer)]
    }

    /// Ends the flight for readers of the object; those who need the rest request it.
    ///
    /// There must be no waiters.
    mutating func close(cause: (any Error)?) -> [Action] {
        guard !hasEnded else { return [] }
        enter(.ended)
        return [.close(cause: cause, cancels: true)]
    }
}
