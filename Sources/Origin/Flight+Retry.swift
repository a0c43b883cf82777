import Model
import CachePolicy
import HLS
import HTTP
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// When a broken transfer is taken up again, and when the player is told instead.
extension Flight {
    /// Goes on after a transfer that failed, by a range request where bytes have come already.
    ///
    /// With `isDown` nobody answers there: only a body that broke in the middle is tried for again.
    func retry(after error: UpstreamError, isDown: Bool) {
        if case .cancelled = error.kind { return close(cause: error) }
        if isWhole { return transferWasWholeAfterAll() }
        let failure = ProxyFailure(error, subject: resource.url.redacted)
        guard error.isRetryable, !isDown || writer != nil, let resumption = resumption() else {
            return fail(failure, cause: error)
        }
        if case .preempted = error.kind { return resume(resumption, after: .zero) }
        // With something stale at hand the player is served that, at once.
        if revalidates { return fail(failure, cause: error) }
        guard let delay = nextDelay(hasBody: writer != nil) else {
            return giveUp(failure, cause: error)
        }
        guard table.isWorthResuming(self) else { return abandon() }
        table.counters.add(.originFailures)
        resume(resumption, after: delay)
    }

    /// Goes on after an answer such as 503, which is worth asking again.
    func retryRefused() {
        guard let refusal else { return }
        var failure = ProxyFailure(originStatus: refusal.status, subject: resource.url.redacted)
        failure.retryAfter = refusal.retryAfter.map { $0.nanoseconds / 1_000_000_000 }
        // Held for as long as the origin would: players ask again themselves.
        guard !revalidates, !terms.isDelivery, let resumption = resumption(),
            let delay = nextDelay(hasBody: true),
            (refusal.retryAfter ?? .zero) <= table.settings.patience
        else { return giveUp(failure, cause: FillEnd.refused(failure)) }
        guard table.isWorthResuming(self) else { return abandon() }
        resume(resumption, after: max(delay, refusal.retryAfter ?? .zero))
    }

    enum Resumption {
        case again
        case from(Int64, to: Int64?)
        /// Nobody has seen the bytes yet: forget them and start over.
        case afresh
    }

    /// True when every byte that was asked for has come although the transfer ended badly.
    private var isWhole: Bool {
        guard let writer, let object else { return false }
        if case .span(_, let end?) = wanted { return writer.offset >= end }
        return object.total.map { writer.offset >= $0 } ?? false
    }

    func transferWasWholeAfterAll() {
        guard let object, let writer else { return }
        state = .ended
        table.remove(self)
        writer.end(failure: nil)
        self.writer = nil
        publishIfMedia()
        if isPlaylist, object.isStorable, !object.isDiscarded { publish(object) }
        table.store.finish(object)
        answer(isComplete: true)
    }

    /// How the transfer can be taken up; nil if it cannot: bytes that were handed out came from a
    /// representation that could not be told from another one.
    private func resumption() -> Resumption? {
        guard let writer, let object else { return .again }
        guard ObjectFacts.of(object) != nil, !isOpaque else { return nil }
        if !isHandedOut, isPlaylist || isSniffing || resource.decodesContent { return .afresh }
        if writer.offset == 0 { return .again }
        guard !resource.decodesContent || object.total != nil else { return nil }
        guard canBeJoined(object) else { return nil }
        if case .span(_, let end) = wanted { return .from(writer.offset, to: end) }
        return nil
    }

    /// The time until the next attempt, or nil when the player has waited long enough.
    ///
    /// Exponential from 100 ms with up to half of it added at random, so that flights that broke
    /// together do not come back together.
    private func nextDelay(hasBody: Bool) -> Interval? {
        if !budget.mayAsk { takeBudgetOfWaiter() }
        let failures = budget.with { $0.fail() }
        let limit = hasBody ? table.settings.retries : min(2, table.settings.retries)
        guard mayRepeat, failures <= limit, budget.mayAsk else { return nil }
        let base = Int64(100_000_000) << Int64(min(failures - 1, 6))
        let delay = Interval(nanoseconds: base + Int64.random(in: 0...(base / 2)))
        // A stall is noticed late; the player that sat through it must not be cut off untried.
        if hasBody, failures == 1 { return delay }
        let waited = table.loop.now - budget.lastProgress
        guard (waited.nanoseconds + delay.nanoseconds) <= table.settings.patience.nanoseconds else {
            return nil
        }
        return delay
    }

    /// Asks for all of a text of which a part has come: it can be read and rewritten whole only.
    ///
    /// - Returns: false where the text is whole, or is none.
    func asksForWhole() -> Bool {
        guard isPlaylist || resource.role == .json, let object, let writer,
            resource.live.growth == nil
        else { return false }
        var isPart = object.total.map { writer.offset < $0 } ?? false
        if case .span(_, .some) = wanted, object.total == nil { isPart = true }
        guard isPart, !isHandedOut, isUnaskedPart || askedRange != nil else { return false }
        // The beginning was asked for, to learn what it is.
        if askedRange != nil {
            resume(.afresh, after: .zero)
            return true
        }
        let failure = ProxyFailure(
            .origin, .badGateway,
            "\(resource.url.redacted): the origin was asked for the whole and sent a part of it (206)",
            originStatus: .partialContent, allowsStale: true)
        if !budget.mayAsk { takeBudgetOfWaiter() }
        guard budget.with({ $0.fail() }) <= 1, mayRepeat, budget.mayAsk else {
            giveUp(failure, cause: FillEnd.refused(failure))
            return true
        }
        table.counters.add(.originFailures)
        resume(.afresh, after: .milliseconds(100))
        return true
    }

    /// Whether a part came that nobody asked for.
    private var isUnaskedPart: Bool {
        if case .span(_, .some) = wanted { return askedRange == nil }
        return false
    }

    /// Fails after all attempts: the same question asked again at once is tried once only.
    private func giveUp(_ failure: ProxyFailure, cause: any Error) {
        let isSpent = !budget.mayAsk
        if !revalidates, !isAhead { table.noteGivenUp(resource.key, isSpent: isSpent) }
        fail(failure, cause: isSpent ? FillEnd.spent(failure) : cause)
    }

    /// Fails where players have waited for an answer longer than any of them would: bytes that come
    /// one by one are no answer yet.
    ///
    /// - Returns: false where there is time.
    func failsOverdue() -> Bool {
        let limit = table.settings.answerLimit
        guard !isHandedOut, table.loop.now - begunAt > limit, !waiters.isEmpty, !isAhead,
            !wasAhead, lane <= .playback, longestHold == nil
        else { return false }
        // The time in the queue for a slot is not the origin's.
        guard let asked = budget.with({ $0.firstAskedAt }), table.loop.now - asked > limit else {
            return false
        }
        var failure = ProxyFailure(
            .origin, .gatewayTimeout,
            "\(resource.url.redacted): the origin did not deliver enough for an answer within "
                + "\(limit.nanoseconds / 1_000_000_000) s",
            allowsStale: true)
        failure.proxyError = .httpResponseTimeout
        giveUp(failure, cause: FillEnd.refused(failure))
        return true
    }

    func resume(_ resumption: Resumption, after delay: Interval) {
        state = .backingOff
        switch resumption {
        case .again:
            table.counters.add(.originRetries)
        case .from(let offset, let end):
            table.counters.add(.originResumes)
            wanted = .span(start: offset, end: end)
        case .afresh:
            table.counters.add(.originRetries)
            object?.discard()
            writer?.end(failure: nil)
            writer = nil
            object = nil
            outcome = nil
            gathered.removeAll()
            roomInPiece = 0
            prefix = []
            wanted = .whole
        }
        askInTurn(after: delay)
    }

    /// Asks after some time, once no other request to an origin that refuses connections is in front.
    func askInTurn(after delay: Interval) {
        state = .backingOff
        table.loop.schedule(after: delay) { [weak self] _ in
            guard let self, self.state == .backingOff else { return }
            guard table.isWorthResuming(self) else { return abandon() }
            guard let pause = table.probes.pause(before: resource.url.origin) else { return ask() }
            // A body that broke in the middle waits for as long as its player does.
            let waited = table.loop.now - budget.lastProgress
            let isHopeless = writer == nil || waited >= table.settings.patience
            if isHopeless, let failure = table.probes.refusal(afterWaiting: resource.url) {
                return fail(failure, cause: FillEnd.refused(failure))
            }
            askInTurn(after: pause)
        }
    }
}
