// The transfer's callbacks to its flight.
import CachePolicy
import HTTP
package import Model
import Numbers
import Posix
import Reactor
import Upstream
import URISyntax

/// Why a fill ended although its transfer was not interrupted.
package enum FillEnd: Error {
    /// The origin has a different representation now.
    case representationChanged
    /// The player's request was answered with a failure.
    case refused(ProxyFailure)
    /// The budget of the player request that started the flight is spent; others may fetch the
    /// rest.
    case spent(ProxyFailure)
}

extension Flight: TransferDelegate {
    func transferDidStart(_ transfer: Transfer) {
        // Counted only now: an ahead fetch may be cancelled while it waits for a slot.
        table.counters.add(.originRequests)
    }

    func transferIsRepeated(_ transfer: Transfer) {
        machine.budget.with { $0.noteRequest(now: table.loop.now) }
    }

    func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? {
        noteAnswer(of: redirect.from.origin, transfer)
        if transfer.parent == nil,
            let failure = table.probes.refusal(ofHopTo: redirect.to, resource)
        {
            refuse(failure)
            return ""
        }
        perform(
            machine.followsRedirect(now: table.loop.now, isHeldByOrigin: longestHold != nil))
        guard phase != .ended else { return "" }
        if resource.kind == nil { table.take(redirect.setCookies, of: resource.session) }
        let cookie = table.cookieField(
            for: redirect.to, session: resource.session, isRedirected: redirect.isCrossOrigin)
        if cookie != nil, transfer.parent?.isTrusted == false { transfer.leaveParent() }
        return cookie ?? ""
    }

    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {
        guard transfer === self.transfer, let tell = terms.interim else { return }
        tell(ResponseHead(status: head.status, fields: endToEndFields(head.fields)))
    }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        guard transfer === self.transfer else { return }
        if asksWithoutParent(after: head, transfer) { return }
        noteAnswer(of: head.finalURL.origin, transfer)
        if resource.kind == nil { table.take(head.setCookies, of: resource.session) }
        response = head
        expected = ExpectedBody()
        perform(
            machine.received(
                facts(of: head),
                KnownFacts(hasObject: object != nil, compared: compared), fillFacts,
                now: table.loop.now))
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        guard transfer === self.transfer else { return .consumed }
        let intake = machine.intake
        if intake == .ignore { return .consumed }
        counters.add(.bytesFromOrigin, Int64(bytes.count))
        if machine.isAhead { counters.add(.bytesAhead, Int64(bytes.count)) }
        switch intake {
        case .ignore: break
        case .hold: hold(bytes)
        case .compare: take(compare(bytes))
        case .take: take(bytes)
        }
        return .consumed
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
        self.transfer = nil
        if machine.isRefused { return perform(machine.refusalEnded(fillFacts, ending)) }
        takeHeldHead()
        switch result {
        case .success(let timings):
            measureLine(timings)
            finish()
        case .failure(let error):
            if asksWithoutParent(after: error, transfer) { return }
            flush()
            settleWrites()
            guard phase != .ended else { return }
            let isDown =
                transfer.parent == nil
                && table.probes.failed(
                    error, at: transfer.currentURL, silentSince: transfer.silentSince)
            // Telling those who wait may have ended this one too.
            perform(machine.broke(error, isDown: isDown, fillFacts, ending))
        }
    }

    // MARK: Response heads

    private func facts(of head: TransferHead) -> ResponseFacts {
        var facts = ResponseFacts(status: head.status, contentLength: head.contentLength)
        switch head.status.rawValue {
        case 206:
            facts.range = ContentRange.parse(head.fields)
            facts.lengthText = head.fields.first(.contentLength)
            facts.isCodedAsKnown = isCodedAsKnown(head)
        case 416: facts.range = ContentRange.parse(head.fields)
        case 400...: facts.retryAfter = Self.retryAfter(head.fields, now: table.loop.wallNow)
        default: break
        }
        return facts
    }

    private func isCodedAsKnown(_ head: TransferHead) -> Bool {
        let coding = head.fields.first(.contentEncoding) ?? "identity"
        let known = knownHead?.fields.first(.contentEncoding) ?? "identity"
        return ASCII.equalIgnoringCase(coding, known)
    }

    private static func retryAfter(_ fields: Fields, now: WallTime) -> Interval? {
        guard let text = fields.first(.retryAfter) else { return nil }
        if let seconds = ExternalNumber.integer(text, in: Int64.min...Int64.max) {
            return .seconds(max(0, min(seconds, 86_400)))
        }
        return HTTPDate.parse(text).map { .seconds(max(0, $0 - now.seconds)) }
    }
}
