// What a flight makes of the origin's heads.
package import Model
import CachePolicy
import HLS
import HTTP
import Numbers
import Posix
import Reactor
import Retention
import Routing
import Store
import Upstream
import URISyntax

/// Why a fill ended although its transfer did not break.
package enum FillEnd: Error {
    /// The origin has another representation now.
    case representationChanged
    /// The player's request was answered with a failure.
    case refused(ProxyFailure)
    /// The budget of the player request that asked for the bytes is spent; others may ask.
    case spent(ProxyFailure)
}

extension Flight: TransferDelegate {
    func transferDidStart(_ transfer: Transfer) {
        // Not before: what is wanted ahead may be given up while it waits for a slot.
        table.counters.add(.originRequests)
    }

    func transferIsRepeated(_ transfer: Transfer) {
        budget.with { $0.noteRequest(now: table.loop.now) }
    }

    func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? {
        table.probes.answered(redirect.from.origin)
        if let failure = table.probes.refusal(ofHopTo: redirect.to, resource) {
            fail(failure, cause: FillEnd.refused(failure))
            return ""
        }
        guard !failsOverdue() else { return "" }
        guard takeRequest() else {
            failSpent()
            return ""
        }
        if resource.kind == nil { table.take(redirect.setCookies, of: resource.session) }
        return table.cookieField(
            for: redirect.to, session: resource.session, isRedirected: redirect.isCrossOrigin) ?? ""
    }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) {
        guard transfer === self.transfer else { return }
        table.probes.answered(head.finalURL.origin)
        guard resource.kind == nil else { return receiveUnderRules(head) }
        table.take(head.setCookies, of: resource.session)
        switch head.status.rawValue {
        case 200 where isVerifyingEnd: endVerification(isProven: false)
        case 200, 203: receiveWhole(head)
        case 206: receivePart(head)
        case 304 where revalidates: receiveNotModified(head)
        case 416 where isVerifyingEnd: endVerification(isProven: true)
        case 416: receiveUnsatisfiable(head)
        case 408, 425, 429, 500, 502, 503, 504:
            refusal = (head.status, Self.retryAfter(head.fields, now: table.loop.wallNow))
            transfer.cancel()
        default:
            refuse(ProxyFailure(originStatus: head.status, subject: resource.url.redacted))
        }
    }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        guard transfer === self.transfer, refusal == nil,
            writer != nil || heldHead != nil || overlap != nil
        else { return .consumed }
        counters.add(.bytesFromOrigin, Int64(bytes.count))
        if isAhead { counters.add(.bytesAhead, Int64(bytes.count)) }
        if heldHead != nil {
            hold(bytes)
        } else {
            take(overlap == nil ? bytes : compare(bytes))
        }
        return .consumed
    }

    func transferRoundDidEnd(_ transfer: Transfer) {
        guard transfer === self.transfer else { return }
        guard !failsOverdue() else { return }
        takeHeldHead()
        flush()
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        guard transfer === self.transfer, state != .ended else { return }
        self.transfer = nil
        switch result {
        case .success(let timings):
            if refusal != nil { return retryRefused() }
            takeHeldHead()
            measureLine(timings)
            finish()
        case .failure(let error):
            if refusal != nil { return retryRefused() }
            takeHeldHead()
            flush()
            settleWrites()
            guard state != .ended else { return }
            let isDown = table.probes.failed(
                error, at: transfer.currentURL, silentSince: transfer.silentSince)
            // Telling those who wait may have ended this one too.
            guard state != .ended else { return }
            retry(after: error, isDown: isDown)
        }
    }

    // MARK: Heads

    func receiveWhole(_ head: TransferHead) {
        let length =
            head.decodedCoding == nil
            ? head.contentLength : nil
        let hasNoBody = head.status == .noContent || head.status == .resetContent
        guard !resource.isGrowing else {
            // What is there now, and not what will have been there at the end.
            return begin(head, from: 0, to: length, total: nil)
        }
        receivedEnd = length
        if beginsWithOverlap(head, from: 0, to: nil, total: length) { return }
        if let length, mayComeAtOnce(head, length) {
            return heldHead = HeldHead(head: head, total: length)
        }
        begin(head, from: 0, to: nil, total: hasNoBody ? 0 : length)
    }

    func receivePart(_ head: TransferHead) {
        guard case .satisfied(let first, let last, let total)? = ContentRange.parse(head.fields)
        else {
            return refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): a 206 without a readable Content-Range"))
        }
        // It would never come to its end, and what tells its place and its length cannot be trusted.
        if let length = head.contentLength, length > last - first + 1 {
            return refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): a 206 that is longer than its Content-Range"))
        }
        switch wanted {
        case .suffix: break
        case .span(let start, _):
            guard first == start - overlapCount else {
                return refuse(
                    ProxyFailure(
                        .origin, .badGateway,
                        "\(resource.url.redacted): the origin sent another range than asked for"))
            }
        }
        guard isCodedAsKnown(head) else {
            return refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): a range of an encoded body cannot be used"))
        }
        guard !resource.isGrowing else {
            let end = last >= Wanted.openEnd ? nil : last + 1
            return begin(head, from: first, to: end, total: nil)
        }
        receivedEnd = last + 1
        var end = last + 1
        if tailCount > 0, case .span(_, let wantedEnd?) = wanted { end = min(end, wantedEnd) }
        if beginsWithOverlap(head, from: first, to: end, total: total) { return }
        begin(head, from: first, to: end, total: total)
    }

    func receiveNotModified(_ head: TransferHead) {
        guard let object, var stored = ObjectFacts.of(object)?.head else {
            return refuse(
                ProxyFailure(
                    .origin, .badGateway, "\(resource.url.redacted): a 304 for something not stored"
                ))
        }
        stored.update(from: head.fields, requestTime: requestTime, responseTime: table.loop.wallNow)
        object.replaceHead(stored.encoded)
        let waiting = waiters
        waiters = []
        close(cause: nil, cancels: false)
        for waiter in waiting { waiter.answer(.notModified(object), table) }
    }

    func receiveUnsatisfiable(_ head: TransferHead) {
        var total: Int64?
        if case .unsatisfied(let length)? = ContentRange.parse(head.fields) { total = length }
        // A range from the first byte on cannot be had of an empty body only, and may be ours.
        if object == nil, case .span(0, _?) = wanted {
            wanted = .whole
            return askAgain()
        }
        // The bytes before the wanted ones are not there any more.
        guard overlapCount == 0 else { return overlapDiffers() }
        learnEnd(total)
        refuse(
            ProxyFailure(
                .client, .rangeNotSatisfiable,
                "\(resource.url.redacted): the range lies beyond the end",
                originStatus: head.status, total: total))
    }

    func refuse(_ failure: ProxyFailure) {
        fail(failure, cause: FillEnd.refused(failure))
    }

    /// Begins, or goes on, to fill an object with this response.
    func begin(_ head: TransferHead, from start: Int64, to end: Int64?, total: Int64?) {
        var stored = storedHead(head)
        let onlyHere = stored.removePrivateFields()
        takesRanges = head.status == .partialContent || Self.acceptsRanges(head.fields)
        endIsProven = head.provesItsEnd
        isVerifyingEnd = false
        let former = object
        if resource.live.growth == nil, isMerged {
            table.keys.watch(resource, stored, total: total, former: former)
        }
        let reason = noStoreReason(stored)
        let mustSniff = sniffs(stored, from: start)
        let writerBefore = writer
        let fitting = table.object(for: self, matching: stored, from: start, total: total)
        let rival = fitting == nil && !isPlaylist ? rival(stored, total: total) : nil
        if isAhead, let rival, writer == nil { return waitForOthers(to: rival) }
        writer = nil
        if let fitting {
            object = fitting
            if let total { _ = fitting.learnTotal(total) }
        } else {
            // Which of the two is the new version cannot be told: the one on its way is kept.
            if let former, !revalidates, former !== rival { former.discard() }
            let isWhole = start == 0 && end == nil
            let isStorable = reason == nil && !keepsNothing && rival == nil
            isSniffing = mustSniff
            guard create(stored, total: total, isWhole: isWhole, isStorable: isStorable) else {
                return
            }
        }
        guard let object else { return }
        let last = end ?? total
        if head.status == .ok, wanted.rangeField != nil { ignoresRanges = true }
        wanted = .span(start: start, end: end)
        provenEnd = last ?? object.total
        comparesAhead = compared != nil
        writer = FillWriter(object, from: takeWritten(former) ?? start, to: last)
        if writerBefore == nil { firstOffset = start }
        accountedEnd = start
        if case .span(_, let askedEnd?)? = askedRange { sendsMore = (last ?? .max) > askedEnd }
        // Only now, so that a reader that is woken by it finds the fill that goes on.
        writerBefore?.end(failure: former === object ? nil : FillEnd.representationChanged)
        state = .filling
        filledSince = table.loop.now
        isExpected = !isAhead
        isSniffing = former !== object && mustSniff
        if outcome == nil || former !== object {
            outcome = FetchOutcome(
                isCollapsed: false, status: head.status,
                notStored: reason ?? (object.isStorable ? nil : .noRoom),
                onlyHere: onlyHere, isProvenRest: isProvenRest)
        }
        // Of no use to a player that has not asked yet.
        if isAhead, !isPlaylist, !object.isStorable { return failUnkept() }
        if !isSniffing { publishIfMedia() }
        answer(isComplete: false)
    }

    /// Whether the first bytes decide what a new object is.
    private func sniffs(_ head: StoredHead, from start: Int64) -> Bool {
        start == 0 && (resource.role == nil || isPlaylist)
            && head.status == .ok && !isPlainlyMedia(head)
            && (resource.kind == nil || !head.fields.contains(.contentEncoding))
    }

    /// Whether name and type say the same of what no playlist has led to: then the player has its
    /// head when it comes, and not with the first bytes, which may be a while behind it.
    private func isPlainlyMedia(_ head: StoredHead) -> Bool {
        guard !isPlaylist, resource.isNamedAsMedia,
            let value = head.fields.valueBytes(.contentType)
        else { return false }
        let type = value.prefix { $0 != HTTP.ASCII.semicolon && $0 != HTTP.ASCII.space }
        return (Self.equals(type.prefix(6), Self.video) || Self.equals(type.prefix(6), Self.audio))
            && !Self.equals(type.suffix(7), Self.list)
    }

    private static let video = Array("video/".utf8)
    private static let audio = Array("audio/".utf8)
    private static let list = Array("mpegurl".utf8)

    /// Whether bytes are a text in lower case, whatever the case of theirs.
    private static func equals(_ bytes: ArraySlice<UInt8>, _ text: [UInt8]) -> Bool {
        HTTP.ASCII.equalIgnoringCase(bytes.span, text.span)
    }

    /// Whether an origin says that it answers range requests (RFC 9110 section 14.3).
    private static func acceptsRanges(_ fields: Fields) -> Bool {
        // As nearly all say it; only other spellings take reading a list.
        guard let value = fields.valueBytes(.acceptRanges) else { return false }
        return value.elementsEqual(bytesUnit) || fields.listMembers(.acceptRanges).contains("bytes")
    }

    private static let bytesUnit = Array("bytes".utf8)

    private func failUnkept() {
        guard let reason = outcome?.notStored, reason != .noRoom else { return refuse(.noRoom) }
        refuse(
            ProxyFailure(
                .origin, .badGateway,
                "\(resource.url.redacted) may not be kept: \(reason.rawValue)"))
    }

    private func noStoreReason(_ head: StoredHead) -> Storability.NoStoreReason? {
        guard resource.mayStore else { return .noStore }
        if isOutdated { return .method }
        let question = Storability.Question(
            policy: resource.policy, requestFields: resource.forwardedFields, status: head.status,
            responseFields: head.fields,
            kind: head.kind ?? (table.isShared ? .shared : .private))
        if case .streamOnly(let reason) = Storability.decide(question) {
            table.keys.note(reason, head.status, resource)
            return reason
        }
        return nil
    }

    func create(_ head: StoredHead, total: Int64?, isWhole: Bool, isStorable: Bool) -> Bool {
        let selected =
            resource.kind == nil
            ? resource.cacheKey : resource.cacheKey(selectedBy: SelectingFields(head.fields))
        let isOwn = selected == resource.cacheKey
        let text = isOwn ? resource.keyText : selected.text
        var description = ObjectDescription(
            key: isOwn ? resource.key : ObjectKey(sha256Of: text), url: text,
            role: (resource.role ?? .media).letter,
            head: head.encoded, total: total, created: head.responseTime,
            isStorable: isStorable, expectsWholeBody: isWhole,
            // A page of a mount is no title; a playlist there is, and so is a file that is played.
            title: resource.isMounted && !head.isPlaylist ? 0 : resource.session.id.number,
            kind: retentionKind(head), isRead: !isAhead)
        if isWhole, isStorable { description.body = heldBody(total) }
        do throws(SystemError) {
            let made = try table.store.create(description)
            // Readers ask for it at once, and need not read it back from its stored form.
            _ = made.attach(ObjectFacts(head: head, generation: made.generation))
            object = made
            return true
        } catch {
            fail(
                ProxyFailure(.us, .serviceUnavailable, "no room to pass the response on: \(error)"),
                cause: error)
            return false
        }
    }

    /// An entry that turns out to be no list is a media file.
    private func retentionKind(_ head: StoredHead) -> RetentionKind {
        if head.isPlaylist { return .structure }
        let kind = RetentionKind(of: resource.role ?? (resource.isMounted ? nil : .media))
        // What is kept for time shift is worth as much as a film, and goes when it leaves the window.
        guard kind == .media, resource.session.shift == .none,
            table.playlistMemory.isLive(resource.session.id)
        else { return kind }
        return .live
    }

    /// Makes the object what lookups find.
    ///
    /// Playlists wait for their end: half a list is no list.
    func publishIfMedia() {
        guard let object, object.isStorable, !object.isCurrent, !isPlaylist, !isSniffing,
            !object.isDiscarded
        else { return }
        publish(object)
    }

    /// Gives the object its name.
    ///
    /// Where the disk refuses, readers go on with what is open.
    func publish(_ object: StoredObject) {
        do throws(SystemError) {
            try table.store.publish(object)
        } catch {
            table.counters.add(.notStored)
        }
        noteVariant(object)
    }

    static func retryAfter(_ fields: Fields, now: WallTime) -> Interval? {
        guard let text = fields.first(.retryAfter) else { return nil }
        if let seconds = OutsideNumber.integer(text, in: Int64.min...Int64.max) {
            return .seconds(max(0, min(seconds, 86_400)))
        }
        return HTTPDate.parse(text).map { .seconds(max(0, $0 - now.seconds)) }
    }
}
