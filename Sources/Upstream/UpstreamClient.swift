/// The upstream loop's libcurl: admission, connections, and the life of every transfer.
import CCurl
import HTTP
import Posix
package import Reactor
import URISyntax

/// Starts transfers and sees each of them to exactly one `didFinish`. Used on its loop only.
///
/// Two sets of connections are kept: one for everything, and one for express transfers to a host
/// whose HTTP/2 connection is busy with bodies, since a playlist that shares a connection with
/// segments arrives behind them.
package final class UpstreamClient {
    package let loop: EventLoop
    package let configuration: UpstreamConfiguration

    var queue: AdmissionQueue
    var counters = UpstreamStatistics()
    private var shared: CurlMulti?
    private var express: CurlMulti?
    private var live: [UInt64: Transfer] = [:]
    private var attached: [UnsafeMutableRawPointer: Transfer] = [:]
    private var idleHandles: [CurlEasy] = []
    /// Bodies in flight over HTTP/2, by origin.
    private var multiplexed: [Origin: Int] = [:]
    private var nextID: UInt64 = 0
    private var isShutDown = false

    // What is put off: to the return from libcurl, and to the end of the round.
    private var depth = 0
    private var failing: [Transfer] = []
    private var resuming: [Transfer] = []
    private var dirty: [Transfer] = []
    private var ended: [(Transfer, TransferResult)] = []
    private var willSettle = false

    /// Makes a client; opens nothing yet.
    ///
    /// - Throws: `UpstreamError` when libcurl cannot start.
    package init(
        loop: EventLoop, configuration: UpstreamConfiguration
    ) throws(UpstreamError) {
        self.loop = loop
        self.configuration = configuration.normalised
        queue = AdmissionQueue(
            limits: AdmissionQueue.Limits(
                slots: self.configuration.slots, expressCap: self.configuration.expressCap,
                perHost: self.configuration.perHostLimit, waiting: self.configuration.queueLimit))
        shared = CurlMulti(loop: loop, owner: self, configuration: self.configuration)
        express = CurlMulti(loop: loop, owner: self, configuration: self.configuration)
        guard shared != nil, express != nil else {
            throw UpstreamError(.other(code: 2), host: "libcurl", detail: "it cannot start")
        }
    }

    /// Queues a transfer; never blocks and calls no delegate before it returns.
    ///
    /// - Parameter delegate: held until its `didFinish` has returned.
    package func start(
        _ request: TransferRequest, delegate: any TransferDelegate
    ) -> Transfer {
        nextID += 1
        let transfer = Transfer(request, id: nextID, client: self, delegate: delegate)
        live[transfer.id] = transfer
        counters.started += 1
        if isShutDown {
            end(transfer, .failure(UpstreamError(.cancelled, host: transfer.host)))
        } else if !queue.enqueue(entry(for: transfer)) {
            end(transfer, .failure(UpstreamError(.queueFull, host: transfer.host)))
        }
        setNeedsSettle()
        return transfer
    }

    /// Counters and gauges of this moment.
    package func statistics() -> UpstreamStatistics {
        var now = counters
        now.slotsInUse = queue.slotsInUse
        now.peakSlotsInUse = queue.peakSlotsInUse
        now.expressInUse = queue.expressInUse
        now.waiting = Lane.allCases.map { queue.waiting(in: $0) }
        now.openHandles = attached.count
        return now
    }

    /// Cancels every transfer, tells their delegates at the end of the round, closes all
    /// connections and refuses what is started later. Not from inside a delegate call.
    package func shutdown() {
        precondition(depth == 0, "the client is shut down from inside a transfer's callback")
        guard !isShutDown else { return }
        isShutDown = true
        for transfer in live.values.sorted(by: { $0.id < $1.id }) { transfer.cancel() }
        idleHandles = []
        shared = nil
        express = nil
    }

    private func entry(for transfer: Transfer) -> AdmissionQueue.Entry {
        AdmissionQueue.Entry(
            id: transfer.id, lane: transfer.lane, session: transfer.request.session,
            host: transfer.host)
    }
}

// MARK: - Asked by transfers

extension UpstreamClient {
    /// Ends a transfer with a failure, now or when libcurl has returned.
    func fail(_ transfer: Transfer, _ error: UpstreamError) {
        guard transfer.state != .finished, transfer.failure == nil else { return }
        if depth > 0, transfer.easy != nil {
            transfer.failure = error
            failing.append(transfer)
        } else {
            end(transfer, .failure(error))
        }
    }

    func resume(_ transfer: Transfer) {
        transfer.lastByteAt = loop.now
        guard transfer.isHeld else { return }
        resuming.append(transfer)
        setNeedsSettle()
    }

    func moved(_ transfer: Transfer) {
        queue.move(transfer.id, to: transfer.lane)
        setNeedsSettle()
    }

    func didReceiveBytes(_ transfer: Transfer) {
        guard !transfer.isDirty else { return }
        transfer.isDirty = true
        dirty.append(transfer)
        setNeedsSettle()
    }

    /// A head other than an interim one is complete; inside libcurl.
    func headArrived(_ transfer: Transfer) {
        transfer.lastByteAt = loop.now
        for cookie in transfer.parser.fields.all(.setCookie) {
            transfer.setCookies.append(
                ReceivedCookie(url: transfer.hop.url.withoutUserinfo, value: cookie))
        }
        let step = transfer.request.followsRedirects
            ? transfer.hop.step(
                after: transfer.parser.status, transfer.parser.fields,
                limit: configuration.maxRedirects)
            : .final
        switch step {
        case .follow(let url):
            transfer.phase = .redirect(transfer.redirect(to: url))
        case .fail(let kind):
            fail(transfer, UpstreamError(kind, host: transfer.host))
        case .final:
            transfer.phase = .body
            watchDeadline(transfer, after: transfer.request.timeouts.stall)
            countMultiplexed(transfer)
            transfer.delegate?.transfer(transfer, didReceive: transfer.head())
        }
    }

    private func countMultiplexed(_ transfer: Transfer) {
        guard transfer.parser.version.major >= 2, transfer.lane != .express else { return }
        transfer.isMultiplexed = true
        multiplexed[transfer.hop.url.origin, default: 0] += 1
    }
}

// MARK: - Hops

extension UpstreamClient {
    /// Sends the transfer's present hop.
    private func send(_ transfer: Transfer) {
        let busy = multiplexed[transfer.hop.url.origin] != nil
        guard let easy = idleHandles.popLast() ?? CurlEasy(),
            let multi = transfer.lane == .express && busy ? express : shared
        else {
            end(transfer, .failure(UpstreamError(.other(code: 27), host: transfer.host)))
            return
        }
        transfer.parser = HeadParser()
        transfer.phase = .head
        transfer.discarded = 0
        transfer.refusedAddress = nil
        transfer.decodes = transfer.request.decodesContent
        transfer.hopStartedAt = loop.now
        transfer.lastByteAt = loop.now
        easy.prepare(transfer, configuration)
        transfer.easy = easy
        transfer.multi = multi
        attached[easy.handle] = transfer
        watchDeadline(transfer, after: transfer.request.timeouts.firstByte)
        multi.add(easy)
    }

    /// Takes the hop's handle back from libcurl.
    private func detach(_ transfer: Transfer) {
        if let timer = transfer.deadline { loop.cancel(timer) }
        transfer.deadline = nil
        if transfer.isMultiplexed {
            transfer.isMultiplexed = false
            let origin = transfer.hop.url.origin
            let left = (multiplexed[origin] ?? 1) - 1
            multiplexed[origin] = left == 0 ? nil : left
        }
        guard let easy = transfer.easy, let multi = transfer.multi else { return }
        transfer.easy = nil
        transfer.multi = nil
        attached[easy.handle] = nil
        multi.remove(easy)
        easy.reset()
        if idleHandles.count < 16, !isShutDown { idleHandles.append(easy) }
    }

    private func follow(_ redirect: Redirect, _ transfer: Transfer) {
        detach(transfer)
        let cookie = transfer.delegate?.transfer(transfer, willFollow: redirect)
        guard transfer.state == .running else { return }
        transfer.hop.follow(redirect, cookie: cookie)
        counters.redirects += 1
        guard let slot = transfer.slot else { preconditionFailure("a running transfer has a slot") }
        if queue.redirect(slot, to: transfer.host) {
            send(transfer)
            return
        }
        transfer.slot = nil
        queue.release(slot)
        transfer.state = .waiting
        _ = queue.enqueue(entry(for: transfer), isReturning: true)
        setNeedsSettle()
    }

    private func watchDeadline(_ transfer: Transfer, after delay: Interval) {
        if let timer = transfer.deadline { loop.cancel(timer) }
        transfer.deadline = loop.schedule(after: delay) { [weak self, weak transfer] _ in
            guard let transfer else { return }
            transfer.deadline = nil
            self?.checkDeadline(transfer)
        }
    }

    /// Fails a transfer that did nothing for too long, or looks again when it may have.
    private func checkDeadline(_ transfer: Transfer) {
        let timeouts = transfer.request.timeouts
        if case .head = transfer.phase {
            fail(transfer, UpstreamError(.firstByteTimeout, host: transfer.host))
            return
        }
        if transfer.isPaused || transfer.isHeld { transfer.lastByteAt = loop.now }
        let due = transfer.lastByteAt + timeouts.stall
        if due <= loop.now {
            fail(transfer, UpstreamError(.stalled, host: transfer.host))
        } else {
            watchDeadline(transfer, after: due - loop.now)
        }
    }
}

// MARK: - Ends

extension UpstreamClient: CurlMultiOwner {
    func curlWillRun() { depth += 1 }

    func curlDidRun(ended results: [CurlMulti.Ended]) {
        depth -= 1
        guard depth == 0 else { return }
        for result in results {
            if let transfer = attached[result.handle] { hopEnded(transfer, result.code) }
        }
        while !failing.isEmpty {
            let batch = failing
            failing = []
            for transfer in batch {
                if let error = transfer.failure { end(transfer, .failure(error)) }
            }
        }
    }

    private func hopEnded(_ transfer: Transfer, _ code: CURLcode) {
        if let error = transfer.failure {
            end(transfer, .failure(error))
        } else if case .redirect(let redirect) = transfer.phase {
            follow(redirect, transfer)
        } else if code == CURLE_OK, case .head = transfer.phase {
            // libcurl takes a connection that ends inside the head for an empty response.
            end(transfer, .failure(UpstreamError(.reset, host: transfer.host)))
        } else if code == CURLE_OK {
            end(transfer, .success(transfer.timings(at: loop.now)))
        } else {
            end(transfer, .failure(transfer.error(for: code)))
        }
    }

    /// The only way to `finished`: frees handle and slot, and has the delegate told.
    private func end(_ transfer: Transfer, _ result: TransferResult) {
        guard transfer.state != .finished else { return }
        transfer.state = .finished
        counters.count(result)
        detach(transfer)
        if let slot = transfer.slot {
            transfer.slot = nil
            queue.release(slot)
        } else {
            _ = queue.cancel(transfer.id)
        }
        live[transfer.id] = nil
        ended.append((transfer, result.counting(transfer.bytesReceived)))
        setNeedsSettle()
    }
}

// MARK: - The end of a round

extension UpstreamClient {
    private func setNeedsSettle() {
        guard !willSettle else { return }
        willSettle = true
        loop.atRoundEnd { [weak self] _ in self?.settle() }
    }

    /// Does what was put off, delegates first, so that they see this round's bytes before its ends.
    private func settle() {
        willSettle = false
        let resumed = resuming
        resuming = []
        for transfer in resumed where transfer.isHeld && !transfer.isPaused {
            transfer.isHeld = false
            if let easy = transfer.easy { transfer.multi?.unpause(easy) }
        }
        let touched = dirty
        dirty = []
        for transfer in touched {
            transfer.isDirty = false
            transfer.delegate?.transferRoundDidEnd(transfer)
        }
        let finished = ended
        ended = []
        for (transfer, result) in finished {
            let delegate = transfer.delegate
            transfer.delegate = nil
            delegate?.transfer(transfer, didFinish: result)
        }
        admit()
    }

    private func admit() {
        while let action = queue.next() {
            switch action {
            case .admit(let slot):
                guard let transfer = live[slot.id] else { preconditionFailure("a lost waiter") }
                transfer.slot = slot
                transfer.state = .running
                begin(transfer)
            case .preempt(let id):
                guard let transfer = live[id] else { preconditionFailure("a lost flight") }
                counters.preempted += 1
                fail(transfer, UpstreamError(.preempted, host: transfer.host))
            }
        }
    }

    private func begin(_ transfer: Transfer) {
        if !transfer.hasStarted {
            transfer.hasStarted = true
            transfer.grantedAt = loop.now
            transfer.delegate?.transferDidStart(transfer)
            guard transfer.state == .running else { return }
        }
        send(transfer)
    }
}
