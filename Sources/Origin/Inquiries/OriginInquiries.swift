// Checks whether origins, or the parents that are asked in their place, answer before a list is
// served that refers to them: a player cannot be told later that part of a title is missing.
//
// The result of an inquiry is recorded in `OriginHealth` like any other answer or failure.
// Inquiries that arrive while one is under way share it.
import Model
import Posix
import Reactor
import Upstream
import URISyntax

/// Inquiries of origins, or of parents, under way; lives on the upstream loop.
final class OriginInquiries {
    /// The time to wait for an origin that is up and answered `lately`: it has hardly gone away
    /// since, and a slow origin must not delay a player's start.
    private static let shortWait = Interval.milliseconds(50)
    private static let lately = Interval.seconds(10 as Int64)
    /// The time after a refusal until a second one must have confirmed it.
    private static let confirmationWait = Interval.milliseconds(500)
    /// A wait that ends later than this after its time says nothing of the origin.
    private static let lateness = Interval.milliseconds(5)
    /// The most inquiries under way, over all origins; further ones are answered as if the origins
    /// were up.
    private static let most = 64

    /// The inquiry of one origin.
    private final class Inquiry {
        let root: AbsoluteURL
        var asking: OriginProbes.Asking?
        var timer: TimerID?
        /// When its refusal must have been confirmed; nil until it is refused.
        var confirmedBy: Monotonic?
        var waiting: [Waiter] = []

        init(_ root: AbsoluteURL) { self.root = root }
    }

    /// A caller that waits for some origins.
    private final class Waiter {
        var wait: InquiryWait
        var timer: TimerID?
        /// The end of the wait that the timer was set to; nil before.
        var end: Monotonic?
        private var reply: (@Sendable () -> Void)?

        init(_ wait: InquiryWait, _ reply: @escaping @Sendable () -> Void) {
            self.wait = wait
            self.reply = reply
        }

        var hasReplied: Bool { reply == nil }

        /// Replies, unless it has replied already.
        func finish(_ loop: EventLoop) {
            if let timer { loop.cancel(timer) }
            timer = nil
            let call = reply
            reply = nil
            call?()
        }
    }

    private unowned let table: FlightTable
    private let probes: OriginProbes
    private let connectTimeout: Interval
    private var inquiries: [Origin: Inquiry] = [:]

    /// Makes inquiries of those that `probes` watches, which take the results.
    init(_ probes: OriginProbes, connectTimeout: Interval, table: FlightTable) {
        self.probes = probes
        self.connectTimeout = connectTimeout
        self.table = table
    }

    private var loop: EventLoop { table.loop }
    private var health: OriginHealth { probes.health }

    /// Contacts the origins of some URLs concurrently.
    ///
    /// - Parameters:
    ///   - urls: one for each origin.
    ///   - needsOne: true if one answer is enough, whoever gives it.
    ///   - reply: called once, when all have answered or failed, or the time limit has passed.
    func ask(
        _ urls: [AbsoluteURL], needsOne: Bool = false, reply: @escaping @Sendable () -> Void
    ) {
        let unsure = urls.filter { health.state(of: $0.origin) < .down }
        guard !unsure.isEmpty, inquiries.count + unsure.count <= Self.most else { return reply() }
        let there = unsure.count { url in
            let sinceAnswer = health.lastAnswer(of: url.origin).map { loop.now - $0 }
            return Self.isThere(health.state(of: url.origin), sinceAnswer: sinceAnswer)
        }
        // 200 ms longer than the transfer's own timeout, so that the latter expires first.
        let longWait = Interval(nanoseconds: connectTimeout.nanoseconds + 200_000_000)
        let isShort = Self.waitsShortly(for: unsure.count, there: there, needsOne: needsOne)
        let wait = InquiryWait(
            for: unsure.count, until: loop.now + (isShort ? Self.shortWait : longWait),
            needsOne: needsOne)
        let waiter = Waiter(wait, reply)
        for url in unsure { join(url, waiter) }
        update(waiter)
    }

    /// True if the short wait is enough for some origins, of which so many are there.
    static func waitsShortly(for count: Int, there: Int, needsOne: Bool) -> Bool {
        needsOne ? there > 0 : there == count
    }

    /// True if an origin has hardly gone away: it answered lately, and has not failed since.
    ///
    /// The refusal that shows whether a suspected origin is down takes a round trip, which may be
    /// longer than the short wait.
    static func isThere(_ state: OriginHealth.State, sinceAnswer: Interval?) -> Bool {
        guard state == .up, let sinceAnswer else { return false }
        return sinceAnswer <= lately
    }

    /// Cancels all inquiries without replies.
    func shutdown() {
        for inquiry in inquiries.values {
            if let timer = inquiry.timer { loop.cancel(timer) }
            inquiry.asking?.transfer?.cancel()
            for waiter in inquiry.waiting { waiter.timer.map(loop.cancel) }
        }
        inquiries = [:]
    }

    /// Ends a caller's wait, now or by a timer, after something has changed.
    private func update(_ waiter: Waiter) {
        guard !waiter.hasReplied else { return }
        if waiter.wait.isOver { return waiter.finish(loop) }
        let end = waiter.wait.end
        guard end != waiter.end else { return }
        waiter.end = end
        limit(waiter, to: max(.zero, end - loop.now))
    }

    /// Ends a wait after a time, unless the loop was late.
    ///
    /// On a busy machine the loop may have begun to connect only now, or not have read yet what
    /// arrived in time: one short wait more shows that.
    private func limit(_ waiter: Waiter, to wait: Interval, isExtended: Bool = false) {
        if let timer = waiter.timer { loop.cancel(timer) }
        let due = loop.now + wait
        waiter.timer = loop.schedule(after: wait) { [weak self, weak waiter] loop in
            guard let waiter else { return }
            waiter.timer = nil
            if let self, !isExtended, loop.now - due > Self.lateness {
                return self.limit(waiter, to: Self.shortWait, isExtended: true)
            }
            // Transfers report their ends after the timers of a round.
            loop.atRoundEnd { [weak waiter] loop in
                guard let waiter, waiter.timer == nil else { return }
                waiter.finish(loop)
            }
        }
    }

    private func join(_ url: AbsoluteURL, _ waiter: Waiter) {
        let origin = url.origin
        if let known = inquiries[origin] {
            known.waiting.append(waiter)
            if let time = known.confirmedBy { waiter.wait.wasRefused(confirmedBy: time) }
            return
        }
        guard let root = OriginProbes.root(of: url) else {
            return waiter.wait.ended(wasRefused: false, isAnswer: false)
        }
        let inquiry = Inquiry(root)
        inquiry.waiting = [waiter]
        inquiries[origin] = inquiry
        ask(inquiry)
    }

    private func ask(_ inquiry: Inquiry) {
        table.services.counters.add(.originProbes)
        var request = OriginProbes.question(to: inquiry.root, lane: .express)
        request.timeouts.connect = connectTimeout
        let asking = OriginProbes.Asking(now: loop.now) { [weak self, weak inquiry] head, error in
            guard let self, let inquiry else { return }
            receiveResult(inquiry, isAnswer: head.map(probes.isAnswer) ?? false, error)
        }
        inquiry.asking = asking
        asking.transfer = table.client.start(request, delegate: asking)
    }

    private func receiveResult(_ inquiry: Inquiry, isAnswer: Bool, _ error: UpstreamError?) {
        let startedAt = inquiry.asking?.startedAt ?? loop.now
        inquiry.asking = nil
        let origin = inquiry.root.origin
        guard inquiries[origin] === inquiry else { return }
        if isAnswer {
            probes.answered(origin)
        } else if let error {
            let isDown = probes.failed(
                error, at: inquiry.root, silentSince: startedAt, isProbe: true)
            let isSuspected = health.state(of: origin) == .suspected
            if !isDown, isSuspected, inquiry.confirmedBy == nil { return confirm(inquiry) }
        }
        inquiries[origin] = nil
        for waiter in inquiry.waiting {
            waiter.wait.ended(wasRefused: inquiry.confirmedBy != nil, isAnswer: isAnswer)
            update(waiter)
        }
    }

    /// Sends another request, once a second refusal counts.
    private func confirm(_ inquiry: Inquiry) {
        let end = loop.now + Self.confirmationWait
        inquiry.confirmedBy = end
        for waiter in inquiry.waiting {
            waiter.wait.wasRefused(confirmedBy: end)
            update(waiter)
        }
        let pause = OriginHealth.confirmation.nanoseconds + 5_000_000
        inquiry.timer = loop.schedule(after: Interval(nanoseconds: pause)) {
            [weak self, weak inquiry] loop in
            guard let self, let inquiry else { return }
            inquiry.timer = nil
            // From now on, since this may run late: the answer, and not the end of the wait, comes
            // first.
            let rest = Interval(nanoseconds: Self.confirmationWait.nanoseconds - pause)
            let end = loop.now + rest
            inquiry.confirmedBy = end
            for waiter in inquiry.waiting {
                waiter.wait.confirmation(by: end)
                update(waiter)
            }
            ask(inquiry)
        }
    }
}
