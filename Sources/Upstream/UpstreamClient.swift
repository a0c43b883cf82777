// The upstream loop's libcurl: admission, connections, and the life cycle of every transfer.
import CCurl
import HTTP
import Posix
package import Reactor
import URISyntax

/// Starts transfers and ends each with exactly one `didFinish`.
///
/// Used on its loop only.
///
/// Each route to origins has two sets of connections: one for everything, and one for express
/// transfers to a host whose HTTP/2 connection is busy with bodies, since a playlist that shares a
/// connection with segments arrives after them. Where transfers yield, background has a third, and
/// `ConnectionChoice` keeps playlists apart from bounded segments too.
package final class UpstreamClient {
    package let loop: EventLoop
    package let configuration: UpstreamConfiguration

    var queue: AdmissionQueue
    let ledger: TransferLedger
    let sessions: TLSSessions
    /// TLS sessions that outlive the daemon; nil if none are kept.
    package var keptSessions: KeptSessions?
    /// Measurements of ahead transfers, for the controller of concurrency.
    var meter = AheadMeter()
    var connections = RouteConnections()
    // Without a check of exclusivity, here and below: what each transfer passes through several
    // times, changed by calls that do not re-enter. A check costs a hundred instructions.
    @exclusivity(unchecked) var live: [UInt64: Transfer] = [:]
    var attached: [UnsafeMutableRawPointer: Transfer] = [:]
    var idleHandles: [CurlEasy] = []
    /// Bodies being received over HTTP/2, by origin.
    var multiplexed = Tally<Origin>()
    var versions = OriginVersions()
    @exclusivity(unchecked) var firstConnections = FirstConnections()
    /// The timers that end connections on which libcurl may not have sent the reset of a stream.
    var abandoned: [Connection: TimerID] = [:]
    /// The number of transfers on each connection.
    var users = Tally<Connection>()
    var sockets = KnownSockets()
    /// Bounds the receive windows; nil if transfers never yield.
    private(set) var yields: YieldingReads?
    var early = EarlyConnections()
    let names: NameRefresh
    private var nextID: UInt64 = 0
    var isShutDown = false

    // Deferred work: until libcurl returns, and until the end of the round.
    @exclusivity(unchecked) var depth = 0
    var failing: [Transfer] = []
    @exclusivity(unchecked) var resuming: [Transfer] = []
    @exclusivity(unchecked) var dirty: [Transfer] = []
    @exclusivity(unchecked) private var ended: [(Transfer, TransferResult)] = []
    @exclusivity(unchecked) private var isRoundEndScheduled = false
    /// Fires when a player may have waited too long for a slot.
    var waitTimer: TimerID?

    /// Called at the end of each round that leaves a player's transfer without a slot, after free
    /// slots were given away: whatever may end should end now.
    package var playbackWaits: (() -> Void)?

    /// Makes a client, which shares figures and TLS sessions with `other`, one on the same loop;
    /// opens no connection yet.
    ///
    /// - Throws: `UpstreamError` when libcurl cannot start.
    package init(
        loop: EventLoop, configuration: UpstreamConfiguration,
        sharing other: UpstreamClient? = nil
    ) throws(UpstreamError) {
        self.loop = loop
        ledger = other?.ledger ?? TransferLedger()
        sessions = other?.sessions ?? TLSSessions()
        keptSessions = other?.keptSessions
        self.configuration = configuration.normalised
        names = NameRefresh(loop: loop, configuration: self.configuration)
        queue = AdmissionQueue(
            limits: AdmissionQueue.Limits(
                slots: self.configuration.slots, expressCap: self.configuration.expressCap,
                perHost: self.configuration.perHostLimit, waiting: self.configuration.queueLimit))
        // Another client's transfers are not ordered by lanes. The first connections depend on it.
        if other == nil, configuration.yields != .off {
            yields = YieldingReads(always: configuration.yields == .always, client: self)
        }
        guard connectionSets(of: .plain) != nil else {
            throw UpstreamError(.other(code: 2), host: "libcurl", detail: "it cannot start")
        }
    }

    /// Queues a transfer; never blocks and calls no delegate before it returns.
    ///
    /// The delegate is held until its `didFinish` has returned.
    package func start(
        _ request: TransferRequest, delegate: any TransferDelegate
    ) -> Transfer {
        let transfer = Transfer(request, id: takeID(), client: self, delegate: delegate)
        live[transfer.id] = transfer
        if isShutDown {
            end(transfer, .failure(UpstreamError(.cancelled, host: transfer.host)))
        } else if !request.isOfParentAlone,
            let refusal = configuration.onlyOrigins.current.refusal(of: request.url.origin)
        {
            end(transfer, .failure(refusal))
        } else if !queue.enqueue(entry(for: transfer)) {
            end(transfer, .failure(UpstreamError(.queueFull, host: transfer.host)))
        }
        scheduleRoundEnd()
        return transfer
    }

    func takeID() -> UInt64 {
        nextID += 1
        return nextID
    }

    /// The number of transfers that libcurl is working on.
    package var transfersInFlight: Int { attached.count }

    /// The costs of requests since the start, including other clients with the same ledger.
    package var figures: TransferFigures { ledger.figures }

    /// Returns the current counters and gauges.
    package func statistics() -> UpstreamStatistics {
        var now = UpstreamStatistics()
        now.early = early.counts
        now.yield = yields?.counts ?? YieldCounts()
        now.slotsInUse = queue.slotsInUse
        now.slotLimit = queue.limits.slots
        now.peakSlotsInUse = queue.peakSlotsInUse
        now.expressInUse = queue.expressInUse
        now.heldInUse = queue.heldInUse
        now.waiting = Lane.allCases.map { queue.waiting(in: $0) }
        now.openHandles = attached.count
        return now
    }

    /// Cancels all transfers, informs their delegates at the end of the round, closes all
    /// connections and refuses later transfers.
    ///
    /// Must not be called from inside a delegate call.
    package func shutdown() {
        precondition(depth == 0, "the client is shut down from inside a transfer's callback")
        guard !isShutDown else { return }
        isShutDown = true
        names.stop()
        for transfer in live.values.sorted(by: { $0.id < $1.id }) { transfer.cancel() }
        idleHandles = []
        keptSessions?.flush()
        connections = RouteConnections()
    }

    func entry(for transfer: Transfer) -> AdmissionQueue.Entry {
        let isLongPoll = transfer.request.isLongPoll
        var entry = AdmissionQueue.Entry(
            id: transfer.id, lane: isLongPoll ? .express : transfer.lane,
            session: transfer.request.session, host: transfer.host)
        entry.firstHost = transfer.firstHost
        entry.hostLimit = transfer.hostLimit
        entry.firstHostLimit = transfer.firstHostLimit
        entry.isLongPoll = isLongPoll
        entry.goesFirst = transfer.goesFirst
        entry.fillsWindow = transfer.fillsWindow
        entry.isReturning = transfer.request.isReturning || transfer.hasStarted
        return entry
    }
}

// MARK: - Events of libcurl

extension UpstreamClient {
    /// Notes that libcurl is about to run callbacks.
    func curlWillRun() { depth += 1 }

    /// Handles the hops that have ended, outside libcurl; called after each run.
    func curlDidRun(ended results: [CurlMulti.Ended]) {
        depth -= 1
        guard depth == 0 else { return }
        // All are looked up before the first is handled: that may end other transfers, and start a
        // hop with the handle of one of them.
        let hops = results.compactMap { result in
            attached[result.handle].map { (transfer: $0, easy: $0.easy, code: result.code) }
        }
        for hop in hops where hop.transfer.easy === hop.easy {
            hopEnded(hop.transfer, hop.code)
        }
        while !failing.isEmpty {
            let batch = failing
            failing = []
            for transfer in batch {
                if let error = transfer.failure { end(transfer, .failure(error)) }
            }
        }
    }

    /// Returns the received bytes of a body whose transfer does not share its connection, once
    /// there are enough that the next ones can wait, unlike a head; otherwise nil.
    func bulkBytes(of handle: UnsafeMutableRawPointer) -> Int64? {
        // Transfers on a shared connection cannot be distinguished before reading.
        guard let transfer = attached[handle], !transfer.isMultiplexed,
            transfer.bytesReceived >= configuration.bulkBytes
        else { return nil }
        return transfer.bytesReceived
    }

    /// Passes on the bodies that were read at the end of a round.
    func curlDidTakeBulk() {
        // Not only at the end of the next round: players wait for the bytes just read.
        if isRoundEndScheduled { finishRound() }
    }

    /// Fails a transfer one of whose sockets cannot be watched, so that libcurl would never act on
    /// it; called inside libcurl.
    func curlCannotWatch(_ handle: UnsafeMutableRawPointer, _ error: SystemError) {
        guard let transfer = attached[handle] else { return }
        fail(transfer, UpstreamError(shortage: error.code, host: transfer.host))
    }

    // MARK: Ends

    private func hopEnded(_ transfer: Transfer, _ code: CURLcode) {
        transfer.hopState.isWhole = code == CURLE_OK
        if let error = transfer.failure {
            end(transfer, .failure(error))
        } else if transfer.request.connectsOnly {
            end(transfer, transfer.resultOfConnecting(code))
        } else if case .rest = transfer.hopState.phase, code != CURLE_OK {
            end(transfer, .failure(UpstreamError(.cancelled, host: transfer.host)))
        } else if transfer.isConnectionSpoilt {
            // Nothing was sent yet.
            transfer.isConnectionSpoilt = false
            transfer.avoidsKeptConnections = true
            detach(transfer)
            send(transfer)
        } else if case .redirect = transfer.hopState.phase, let redirect = transfer.redirect {
            follow(redirect, transfer)
        } else if transfer.mayBeRepeated(after: code) {
            transfer.hasBeenRepeated = true
            // Others kept since the same time may have ended too. Of HTTP/2 there is one, which is
            // gone, and all its transfers share the next.
            if !versions.isMultiplexing(transfer.origin) { transfer.avoidsKeptConnections = true }
            transfer.delegate?.transferIsRepeated(transfer)
            detach(transfer)
            send(transfer)
        } else if code == CURLE_OK, case .head = transfer.hopState.phase {
            // libcurl treats a connection that ends inside the head as an empty response.
            end(transfer, .failure(UpstreamError(.reset, host: transfer.host)))
        } else if code == CURLE_OK {
            end(transfer, .success(transfer.timings(at: loop.now)))
        } else {
            end(transfer, .failure(transfer.error(for: code)))
        }
    }

    /// Gives the slot of a running transfer back.
    func exempt(_ transfer: Transfer) {
        guard let slot = transfer.slot else { return }
        queue.exempt(slot)
        scheduleRoundEnd()
    }

    /// The only way to `finished`: frees handle and slot, and schedules the delegate's `didFinish`.
    func end(_ transfer: Transfer, _ result: TransferResult) {
        guard transfer.state != .finished else { return }
        transfer.state = .finished
        ledger.noteEnd(of: transfer, result)
        if transfer.request.connectsOnly {
            early.note(EarlyConnectionResult(result), at: transfer.origin, now: loop.now)
        }
        if transfer.lane >= .prefetch, transfer.hopState.phase != .rest {
            meter.add(result, from: transfer.host)
        }
        if case .success = result, !transfer.isMultiplexed, let connection = transfer.connection,
            connection.localPort != 0
        {
            sockets.acknowledge(localPort: connection.localPort)
        }
        detach(transfer)
        noteEnd(of: transfer)
        if let slot = transfer.slot {
            transfer.slot = nil
            queue.release(slot)
        } else {
            _ = queue.cancel(transfer.id)
        }
        live[transfer.id] = nil
        ended.append((transfer, result.counting(transfer.bytesReceived)))
        scheduleRoundEnd()
    }
}

// MARK: - The end of a round

extension UpstreamClient {
    /// Schedules the deferred work for the end of this round, including `playbackWaits`.
    package func scheduleRoundEnd() {
        guard !isRoundEndScheduled else { return }
        isRoundEndScheduled = true
        loop.atRoundEnd { [weak self] _ in self?.finishRound() }
    }

    /// Does the deferred work, delegates first, so that they see this round's bytes before its
    /// ended transfers.
    private func finishRound() {
        isRoundEndScheduled = false
        let resumed = resuming
        resuming = []
        for transfer in resumed where transfer.isReceivePaused && !transfer.isPaused {
            transfer.isReceivePaused = false
            transfer.unpause()
        }
        let touched = dirty
        dirty = []
        for transfer in touched {
            transfer.isDirty = false
            measureBytes(transfer)
            transfer.delegate?.transferRoundDidEnd(transfer)
        }
        let finished = ended
        ended = []
        for (transfer, result) in finished {
            let delegate = transfer.delegate
            transfer.delegate = nil
            delegate?.transfer(transfer, didFinish: result)
        }
        if firstConnections.hasReleased { sendFollowers() }
        admit()
        if queue.hasPlayersWaiting {
            watchWaiting(after: configuration.slotWait)
            playbackWaits?()
        }
    }

    /// Returns the first of several running transfers whose end lets a player's waiting one start.
    ///
    /// If the player's waits for two hosts, of which only one has such a transfer, a prefetch or
    /// background transfer at the other is preempted.
    ///
    /// - Parameter transfers: the transfers, those that are to be ended first before others.
    /// - Returns: those that must all end, at most two; empty if there is none.
    package func obstacles(among transfers: [Transfer]) -> [Transfer] {
        let found = queue.obstacles(among: transfers.map(\.id)).compactMap { live[$0] }
        let given = found.filter { obstacle in transfers.contains { $0 === obstacle } }
        for other in found where !given.contains(where: { $0 === other }) {
            fail(other, .preempted)
        }
        return given
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
                fail(transfer, .preempted)
            }
        }
    }

    func begin(_ transfer: Transfer) {
        if !transfer.hasStarted {
            transfer.hasStarted = true
            transfer.grantedAt = loop.now
            transfer.delegate?.transferDidStart(transfer)
            guard transfer.state == .running else { return }
        }
        send(transfer)
    }
}
