// The hops of a transfer: sending, responses, redirects, timeouts.
import CCurl
import Glibc
import HTTP
import Posix
import Reactor
import URISyntax

// MARK: - Events of transfers

extension UpstreamClient {
    /// Ends a transfer with a failure, now or when libcurl has returned.
    func fail(_ transfer: Transfer, _ error: UpstreamError) {
        guard transfer.state != .finished, !transfer.isFailing else { return }
        if depth > 0, transfer.easy != nil {
            transfer.failure = error
            failing.append(transfer)
        } else {
            end(transfer, .failure(error))
        }
    }

    /// Does the same with the usual failure of a kind.
    func fail(_ transfer: Transfer, _ kind: UpstreamError.Kind) {
        fail(transfer, UpstreamError(kind, host: transfer.host))
    }

    /// Ends a transfer whose body is not needed, after its rest if that keeps the connection.
    ///
    /// Over HTTP/2 too: libcurl 7.88 does not send the reset of a stream at once, so that an idle
    /// connection would be ended (`abandon`).
    func dismiss(_ transfer: Transfer) {
        if transfer.isOnlyHead { return }
        guard transfer.state == .running, !transfer.isFailing, transfer.easy != nil,
            transfer.hasShortRest, !mayBeOneTooMany(transfer)
        else { return fail(transfer, .cancelled) }
        transfer.hopState.phase = .rest
        watchDeadline(transfer, after: Self.discardedBody)
    }

    func resume(_ transfer: Transfer) {
        transfer.hopState.lastByteAt = loop.now
        guard transfer.isReceivePaused else { return }
        resuming.append(transfer)
        scheduleRoundEnd()
    }

    func moved(_ transfer: Transfer) {
        queue.move(transfer.id, to: transfer.lane)
        mark(transfer)
        scheduleRoundEnd()
    }

    func didReceiveBytes(_ transfer: Transfer) {
        guard !transfer.isDirty else { return }
        transfer.isDirty = true
        transfer.hopState.lastByteAt = loop.now
        dirty.append(transfer)
        scheduleRoundEnd()
    }

    private func takeCookies(_ transfer: Transfer) {
        let fields = transfer.hopState.parser.fields
        let cookies = fields.all(.setCookie)
        guard !cookies.isEmpty else { return }
        let date = fields.originTime.map { WallTime(seconds: $0) }
        for cookie in cookies {
            transfer.setCookies.append(
                ReceivedCookie(url: transfer.hop.url, value: cookie, date: date))
        }
    }

    /// Handles a complete head other than an interim one; called inside libcurl.
    func headArrived(_ transfer: Transfer) {
        transfer.hopState.lastByteAt = loop.now
        if transfer.request.connectsOnly { return answeredUnasked(transfer) }
        takeCookies(transfer)
        // A redirect of a program that is not the parent leads to that program's own pages.
        let isForeign =
            transfer.parent?.isSluice == true
            && !transfer.hopState.parser.fields.contains(.cacheStatus)
        let step =
            transfer.request.followsRedirects && transfer.request.upload == nil && !isForeign
            ? transfer.hop.step(
                after: transfer.hopState.parser.status, transfer.hopState.parser.fields,
                limit: configuration.maxRedirects)
            : .final
        switch step {
        case .follow(let url):
            if let refusal = configuration.onlyOrigins.current.refusal(
                of: url.origin, isRedirect: true)
            {
                return fail(transfer, refusal)
            }
            transfer.redirect = transfer.redirect(to: url)
            transfer.hopState.phase = .redirect
            watchDeadline(transfer, after: Self.discardedBody)
        case .fail(let kind):
            fail(transfer, kind)
        case .final where transfer.isAnswerOfProxy:
            fail(transfer, transfer.proxyRefusal(status: 407))
        case .final where transfer.hasUnreadableCoding:
            fail(transfer, .unsupportedEncoding)
        case .final:
            transfer.hopState.phase = .body
            ledger.noteHead(transfer)
            measureAnswer(transfer)
            watchDeadline(transfer, after: silence(transfer))
            countMultiplexed(transfer)
            let head = transfer.head()
            if transfer.sendsEvents, transfer.lane <= .playback, head.contentLength == nil {
                // It may be silent for hours while others wait for a slot.
                exempt(transfer)
            }
            if yields != nil { transfer.bodyLength = head.contentLength }
            if head.decodedCoding != nil { transfer.limitBody(to: configuration.maxDecodedBytes) }
            transfer.delegate?.transfer(transfer, didReceive: head)
            didReceiveBytes(transfer)
        }
    }

    /// Handles a complete interim head; called inside libcurl.
    ///
    /// A protocol switch, which was not requested, and too many interim heads fail the transfer.
    func interimArrived(_ transfer: Transfer) {
        transfer.hopState.lastByteAt = loop.now
        transfer.interims += 1
        let status = transfer.hopState.parser.status
        guard status != .switchingProtocols else { return fail(transfer, .protocolError) }
        guard transfer.interims <= 64 else {
            return fail(transfer, .onlyInterim(count: transfer.interims))
        }
        transfer.delegate?.transfer(
            transfer,
            didReceiveInterim: ResponseHead(
                status: status, fields: transfer.hopState.parser.fields))
    }

    /// Records whether the origin uses HTTP/2, and counts a body on a shared connection.
    private func countMultiplexed(_ transfer: Transfer) {
        let origin = transfer.origin
        let isMultiplexing = transfer.hopState.parser.version.major >= 2
        versions.note(origin, isMultiplexing: isMultiplexing)
        guard isMultiplexing, transfer.lane != .express,
            transfer.multi === connectionSets(of: transfer.route)?.shared
        else { return }
        transfer.isMultiplexed = true
        multiplexed.add(origin)
    }
}

// MARK: - Hops

extension UpstreamClient {
    /// With more active handles than this, each gets a smaller buffer.
    private static let few = 8

    /// How long a body that is not needed is read, to keep the connection: longer than this, a new
    /// one costs less, and an origin could trickle for ever.
    private static let discardedBody = Interval.milliseconds(500)

    /// Sends the transfer's current hop.
    func send(_ transfer: Transfer) {
        if followsScout(transfer) { return }
        transfer.route = configuration.routes.route(to: transfer.origin)
        if transfer.route.proxy != nil || transfer.parent != nil,
            !configuration.addressPolicy.permitsByName(transfer.hop.url.origin.host)
        {
            let kind = UpstreamError.Kind.addressRefused(transfer.host)
            return end(transfer, .failure(UpstreamError(kind, host: transfer.host)))
        }
        guard let easy = idleHandles.popLast() ?? CurlEasy(),
            let sets = connectionSets(of: transfer.route)
        else {
            // Nothing but memory is needed for either.
            end(transfer, .failure(UpstreamError(shortage: ENOMEM, host: transfer.host)))
            return
        }
        let isMultiplexing = versions.isMultiplexing(transfer.origin)
        let choice = ConnectionChoice(
            lane: transfer.lane, isBusy: multiplexed[transfer.origin] > 0,
            arePlayersBound: transfer.lane == .express
                && yields?.boundsPlayers(of: transfer.origin) == true,
            isMultiplexing: isMultiplexing,
            isCounted: queue.hosts.isCounted(transfer.host, own: transfer.hostLimit))
        let multi = sets[choice.kind]
        let freshAddresses =
            transfer.route.isPlain
            ? names.addresses(of: transfer.origin, over: sets.kind(of: multi)) : nil
        transfer.hopState = HopState(
            of: transfer.request, freshAddresses: freshAddresses, now: loop.now)
        easy.prepare(transfer, configuration)
        if transfer.origin.scheme == .https {
            easy.keepSessions(in: sessions.shelf(for: transfer.host))
        }
        // The buffer is held while the transfer runs, so many transfers must use smaller ones.
        let isOneOfMany = attached.count >= Self.few
        easy.setReceiveBuffer(configuration.receiveBuffer / (isOneOfMany ? 2 : 1))
        // Waiting for a connection that is being made pays only if it will be shared: on an
        // HTTP/1.1 origin, libcurl 7.88 starts the waiting transfers one by one, each when another
        // has ended.
        let waits =
            (transfer.request.connectsOnly && transfer.origin.scheme == .https)
            || (transfer.lane != .express && isMultiplexing)
        easy.set(CURLOPT_PIPEWAIT, flag: waits)
        transfer.easy = easy
        transfer.multi = multi
        attached[easy.handle] = transfer
        watchDeadline(transfer, after: min(transfer.request.timeouts.firstByte, Self.pathPatience))
        multi.add(easy)
    }

    /// Removes the hop's handle from libcurl.
    func detach(_ transfer: Transfer) {
        if let timer = transfer.deadline { loop.cancel(timer) }
        transfer.deadline = nil
        endScouting(by: transfer)
        if let connection = transfer.connection {
            users.remove(connection)
            if !transfer.hopState.isWhole { abandon(connection, transfer) }
        }
        transfer.connection = nil
        if transfer.isMultiplexed {
            transfer.isMultiplexed = false
            multiplexed.remove(transfer.origin)
        }
        guard let easy = transfer.easy, let multi = transfer.multi else { return }
        transfer.easy = nil
        transfer.multi = nil
        attached[easy.handle] = nil
        // Where others use the connection, libcurl 7.88 keeps what it holds for a paused transfer
        // with the handle, and would deliver it to the handle's next one (`multi_done`): it is
        // refused now. Where the transfer has ended by itself, the bytes cannot be refused: its
        // handle is not used again.
        let isClean =
            !transfer.isReceivePaused || multi.pause(easy, receiving: false, sending: false)
        multi.remove(easy)
        guard isClean else { return easy.freeHeldBytes() }
        // libcurl counts repetitions until the handle is reset, and ends a transfer by the sixth.
        if transfer.hopState.requests > 1 || !transfer.hopState.isWhole { easy.form = nil }
        if idleHandles.count < 16, !isShutDown { idleHandles.append(easy) }
    }

    func follow(_ redirect: Redirect, _ transfer: Transfer) {
        ledger.noteEnd(of: transfer, nil)
        detach(transfer)
        transfer.wantedAt = loop.now
        let cookie = transfer.delegate?.transfer(transfer, willFollow: redirect)
        guard transfer.state == .running else { return }
        transfer.redirect = nil
        transfer.hop.follow(redirect, cookie: cookie)
        // A connection of HTTP/2 is shared, whatever ended at the origin before.
        if versions.isMultiplexing(transfer.origin) { transfer.avoidsKeptConnections = false }
        guard let slot = transfer.slot else { preconditionFailure("a running transfer has a slot") }
        if queue.redirect(slot, to: transfer.host, hostLimit: transfer.hostLimit) {
            send(transfer)
            return
        }
        transfer.slot = nil
        queue.release(slot)
        transfer.state = .waiting
        transfer.waitsSince = loop.now
        _ = queue.enqueue(entry(for: transfer))
        scheduleRoundEnd()
    }

    /// A deadline that is noticed later than this says nothing of the origin yet.
    private static let lateness = Interval.milliseconds(50)

    /// Checks a deadline after a time, unless the loop was late.
    ///
    /// After the daemon was stopped, or on a busy machine, what arrived in time may still be
    /// unread: timers run before large bodies are read. One short wait more shows that.
    private func watchDeadline(
        _ transfer: Transfer, after delay: Interval, isExtended: Bool = false
    ) {
        if let timer = transfer.deadline { loop.cancel(timer) }
        let due = loop.now + delay
        transfer.deadline = loop.schedule(after: delay) { [weak self, weak transfer] loop in
            guard let transfer else { return }
            transfer.deadline = nil
            if let self, !isExtended, loop.now - due > Self.lateness {
                return self.watchDeadline(transfer, after: Self.lateness, isExtended: true)
            }
            self?.checkDeadline(transfer)
        }
    }

    /// Returns how long a body may pause.
    ///
    /// If only the end of the connection delimits it, the origin may have sent everything and keep
    /// the connection open for a while. A stream of events is silent while nothing happens.
    private func silence(_ transfer: Transfer) -> Interval {
        let timeouts = transfer.request.timeouts
        if let silence = transfer.endlessSilence { return max(timeouts.stall, silence) }
        if transfer.sendsEvents { return max(timeouts.stall, Self.eventSilence) }
        guard transfer.request.isTransparent else { return timeouts.stall }
        return transfer.provesItsEnd
            ? timeouts.stall : max(timeouts.stall, timeouts.firstByte)
    }

    /// The longest pause of a stream of events: the default of `--idle-timeout`.
    private static let eventSilence = Interval.seconds(75 as Int64)

    /// Fails a transfer that made no progress for too long, or checks again later; follows a
    /// redirect, or ends a dismissed transfer, whose body takes too long.
    private func checkDeadline(_ transfer: Transfer) {
        if case .redirect = transfer.hopState.phase, let redirect = transfer.redirect {
            return follow(redirect, transfer)
        }
        if case .rest = transfer.hopState.phase {
            return fail(transfer, .cancelled)
        }
        // The origin is not responsible while the transfer is paused, or waits for the request's
        // body.
        if transfer.isPaused || transfer.isReceivePaused || transfer.isUploadPaused {
            transfer.hopState.lastByteAt = loop.now
        }
        let isWaitingForHead = transfer.hasNoHead
        var due = transfer.hopState.lastByteAt + silence(transfer)
        var kind = UpstreamError.Kind.stalled
        if isWaitingForHead {
            checkPath(transfer)
            (due, kind) = transfer.hopState.headDue(
                transfer.request.timeouts, interims: transfer.interims)
        }
        if due <= loop.now {
            transfer.hasTimedOut = true
            let detail =
                kind == .firstByteTimeout && transfer.interims > 0
                ? "only interim responses (\(transfer.interims))" : ""
            fail(transfer, UpstreamError(kind, host: transfer.host, detail: detail))
        } else {
            let rest = due - loop.now
            watchDeadline(transfer, after: isWaitingForHead ? min(rest, Self.pathPatience) : rest)
        }
    }
}
