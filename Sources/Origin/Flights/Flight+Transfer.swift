// The transfer's callbacks to its flight.
import CachePolicy
import HLS
import HTTP
package import Model
import Posix
import Reactor
import Upstream
import URISyntax

/// Why a fill ended although its transfer was not interrupted.
package enum FillEnd: Error {
    /// A live stream is not received any more.
    case streamEnded
    /// The origin has a different representation now.
    case representationChanged
    /// The player's request was answered with a failure.
    case refused(ProxyFailure)
    /// The budget of the player request that started the flight is spent; others may fetch the
    /// rest.
    case spent(ProxyFailure)
}

extension FillEnd: CustomStringConvertible {
    /// The reason as logs show it.
    package var description: String {
        switch self {
        case .streamEnded: "the live stream is not received any more"
        case .representationChanged: "the origin has another version of the resource now"
        case .refused(let failure), .spent(let failure): failure.message
        }
    }
}

extension Flight: TransferDelegate {
    func transferDidStart(_ transfer: Transfer) {
        // Counted only now: an ahead fetch may be cancelled while it waits for a slot.
        services.counters.add(.originRequests)
        guard transfer === self.transfer, machine.attempt != nil else { return }
        machine.wasSent(now: table.loop.now)
        // The time in the queue for a slot does not make the response older.
        requestTime = table.loop.wallNow
        requestedAt = table.loop.now
    }

    func transferIsRepeated(_ transfer: Transfer) {
        machine.budget.with { $0.noteRequest(now: table.loop.now) }
    }

    func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? {
        noteAnswer(of: redirect.from.origin, transfer)
        if terms.isForPage, services.settings.mayBePrivate(redirect.to.asciiHost) {
            refuse(.hiddenFromPages)
            return ""
        }
        if transfer.parent == nil { redirectedTo = redirect.to }
        if transfer.parent == nil,
            let failure = table.probes.refusal(
                ofHopTo: redirect.to, resource,
                hasWaited: machine.fill != nil || machine.job.awaitsReturn)
        {
            if !keepsBack(failure) {
                refuse(failure)
            } else if transfer === self.transfer {
                dropTransfer()
            }
            return ""
        }
        perform(
            machine.followsRedirect(now: table.loop.now, isHeldByOrigin: longestHold != nil))
        guard phase != .ended else { return "" }
        services.counters.add(.originRequests)
        take(redirect.setCookies)
        if resource.leavesCookiesToClient { return nil }
        let cookie = table.cookies.field(
            for: redirect.to, session: resource.session, isRedirected: redirect.hasLeftOrigin)
        cookies.noteSent(cookie)
        if cookie != nil, transfer.parent?.isTrusted == false { transfer.leaveParent() }
        return cookie ?? ""
    }

    /// Stores the cookies that a hop set for a session.
    ///
    /// Of a mount's playlist that a client requested with cookies of its own, only those that
    /// identify nobody: the clients share the session, whose segments may need them.
    private func take(_ received: [ReceivedCookie]) {
        guard !resource.followsHTTP else { return }
        let latest = Array(received.suffix(FlightCookies.mostReceived))
        let received =
            resource.leavesCookiesToClient
            ? latest.filter { !ViewerCookie.identifies($0.value) } : latest
        guard !received.isEmpty else { return }
        cookies.noteReceived(
            received, areNew: table.cookies.take(received, of: resource.session),
            now: table.loop.wallNow)
    }

    /// True if interim responses reach a client; later ones belong to requests of the flight's own.
    var passesInterimsOn: Bool { response == nil && terms.interim != nil }

    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {
        guard transfer === self.transfer, passesInterimsOn, let report = terms.interim else {
            return
        }
        report(ResponseHead(status: head.status, fields: endToEndFields(head.fields)))
    }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        guard transfer === self.transfer else { return }
        if sharing != nil, keepsBack(head) { return }
        if asksWithoutParent(after: head, transfer) { return }
        answeringParent = transfer.parent
        noteAnswer(of: head.finalURL.origin, transfer)
        take(head.setCookies)
        endTrial(with: head.status, of: transfer)
        if asksAlone(after: head, transfer) { return }
        if asksUndecoded(after: head) { return }
        response = head
        if machine.omitted.contains(.decoding) { response?.fields.remove(.contentEncoding) }
        handle(head)
    }

    /// Handles the head of a response, which `response` has been set to.
    func handle(_ head: TransferHead) {
        body.beginResponse()
        perform(machine.received(facts(of: head), known, fillFacts, now: table.loop.now))
    }

    func transfer(_ transfer: Transfer, didDiscard count: Int) {
        services.counters.add(.bytesFromOrigin, Int64(count))
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {
        services.counters.add(.bytesFromOrigin, Int64(bytes.count))
        guard transfer === self.transfer else { return }
        let intake = machine.intake
        if intake == .ignore { return }
        if machine.isAhead { services.counters.add(.bytesAhead, Int64(bytes.count)) }
        take(bytes, as: intake)
    }

    /// Handles bytes of the body that did not come from an origin.
    func take(arrived bytes: UnsafeRawBufferPointer) { take(bytes, as: machine.intake) }

    @inline(__always)
    private func take(_ bytes: UnsafeRawBufferPointer, as intake: FlightMachine.Intake) {
        switch intake {
        case .ignore: break
        case .hold: hold(bytes)
        case .compare: takeCompared(bytes)
        case .take: take(bytes)
        }
    }

    func transferRoundDidEnd(_ transfer: Transfer) {
        guard transfer === self.transfer else { return }
        if let overdue = machine.failOverdue(
            now: table.loop.now, isHeldByOrigin: longestHold != nil)
        {
            return perform(overdue)
        }
        takeHeldHead()
        flush()
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        guard transfer === self.transfer, phase != .ended else { return }
        if sharing != nil, keepsBack(result) { return }
        self.transfer = nil
        if machine.isRefused { return perform(machine.refusalEnded(fillFacts, ending)) }
        takeHeldHead()
        switch result {
        case .success(let timings):
            if endless == nil { measureLine(timings) }
            finish()
        case .failure(let error):
            if asksWithoutParent(after: error, transfer) { return }
            flush()
            drainWrites()
            // A failure to write ends it, or makes it start over.
            guard phase == .asking || phase == .filling else { return }
            let isDown =
                transfer.parent == nil && !machine.isEarlyEnd(error)
                && table.probes.failed(
                    error, at: transfer.currentURL, silentSince: transfer.silentSince)
            // Telling those who wait may have ended this one too.
            perform(machine.broke(error, isDown: isDown, fillFacts, ending))
        }
    }

    /// Measures the line's speed from a body that was fetched for a player and never paused.
    func measureLine(_ timings: TransferTimings) {
        guard services.settings.pace == .line, !machine.job.beganAhead,
            resource.role?.isExpress != true,
            timings.bytes <= services.settings.readAhead
        else { return }
        let body = timings.total.nanoseconds - timings.firstByte.nanoseconds
        services.origins.lines.note(
            timings.bytes, within: Interval(nanoseconds: body), from: resource.url.host)
    }

    // MARK: Response heads

    /// Asks once more for a text whose content coding libcurl does not know, at whose first byte it
    /// would fail: what names such a coding is usually not coded.
    ///
    /// Object stores keep `aws-chunked`, the coding of an upload, and some servers name a charset.
    private func asksUndecoded(after head: TransferHead) -> Bool {
        guard let coding = head.decodedCoding, StatedCoding.isNone(coding),
            let actions = machine.again(without: .decoding, now: table.loop.now)
        else { return false }
        perform(actions)
        return true
    }

    func facts(of head: TransferHead) -> ResponseFacts {
        ResponseFacts(
            of: head, followsHTTP: machine.job.followsHTTP, known: knownHead,
            condition: rangeCondition, now: table.loop.wallNow)
    }
}
