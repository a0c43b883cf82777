import HTTP
import Model
import Posix
import Upstream

/// What is stored of the resource when a head arrives.
struct KnownFacts {
    /// True if the flight has an object, to fetch the rest of it or to revalidate it.
    var hasObject = false
    /// The length of the object's body, if known.
    var total: Int64?
    /// The stored body that the response must be compared with; nil if a strong validator suffices
    /// or nothing has to be compared.
    var compared: StoredBody?
}

/// Where the bytes of a response are written in the object.
struct Placement: Equatable {
    /// The offset of the first byte that is written.
    var start: Int64
    /// The end of the bytes that the response states; nil for the end of the body.
    var end: Int64?
    /// The length of the body, if the response states it.
    var total: Int64?
    /// The end of the response's bytes, if it states it.
    var receivedEnd: Int64?
    var layout = FlightMachine.Layout.inPlace
    /// True if the response was verified to continue stored bytes.
    var isProvenRest = false

    /// The end of the bytes, if the response states it.
    var last: Int64? { end ?? total }
}

extension FlightMachine {
    /// Handles the head of a response.
    ///
    /// - Parameters:
    ///   - head: the facts of the head.
    ///   - known: what is stored of the resource.
    ///   - fill: the fill that the response was to continue; nil for none.
    ///   - now: the time.
    /// - Returns: the actions.
    mutating func received(
        _ head: ResponseFacts, _ known: KnownFacts, _ fill: FillFacts?, now: Monotonic
    ) -> [Action] {
        guard case .asking(let attempt) = state else { return [] }
        isOfOtherVersion = head.isOtherVersion
        if attempt.question == .end, head.status == .ok || head.status.rawValue == 416 {
            return endAnswered(isProven: head.status != .ok, fill, now: now)
        }
        if let fill, endsBody(head, fill, attempt) {
            return endAnswered(isProven: true, fill, now: now)
        }
        if job.followsHTTP { return receivedUnderRules(head, known, attempt) }
        if extent == .endless, let fill { return receivedMore(head, fill, attempt) }
        switch head.status.rawValue {
        case 200, 203: return receivedWhole(head, known, attempt)
        case 206: return receivedPart(head, known, attempt)
        case 304 where isConditional: return [.renew]
        case 416: return receivedUnsatisfiable(head, known, attempt)
        case 408, 425, 429, 500, 502, 503, 504: return comeBackLater(head, attempt)
        case 508 where head.isLoop:
            // As a 502, each proxy on the way would try it again.
            return refuse(
                ProxyFailure(
                    .origin, .loopDetected,
                    "\(job.subject): the request came back to a proxy that had sent it (508)",
                    originStatus: head.status, allowsStale: true))
        default:
            var failure = ProxyFailure(originStatus: head.status, subject: job.subject)
            failure.challenge = head.challenge
            failure.refusedURL = job.resource.url
            return refuse(failure)
        }
    }

    /// The time in which an origin notices that other transfers have ended.
    private static let noticeOfEnd = Interval.milliseconds(200)

    /// True if a response may mean that the origin allows one transfer at a time, and a player
    /// waits for another one: that is tried once.
    ///
    /// With Retry-After the origin tells itself what to do.
    func mayBeOneTooMany(_ head: ResponseFacts) -> Bool {
        guard case .asking = state, UpstreamClient.mayRefuseSecond(head.status),
            head.retryAfter == nil, !isAhead, lane <= .playback
        else { return false }
        return job.method == .get && job.mayRepeat && !job.followsHTTP && !job.hasDirectives
            && omitted.isDisjoint(with: .company) && budget.mayAsk
    }

    /// Sends the request once more, after the other transfers to its host were ended.
    mutating func askAlone() -> [Action] {
        guard case .asking(let attempt) = state, omitted.isDisjoint(with: .company) else {
            return []
        }
        omit(.company)
        return [.drop, .count(.originRetries)]
            + backOff(attempt.question, for: Self.noticeOfEnd)
    }

    /// Handles a head under a mount, where every final status is a response for the client.
    private mutating func receivedUnderRules(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        if job.revalidates, job.staleServes, (500...599).contains(head.status.rawValue) {
            // Handled as if the origin had not responded (RFC 9111 section 4.3.3).
            return comeBackLater(head, attempt)
        }
        if job.method == .head {
            // The 304 may answer a condition that Sluice added and the client did not send.
            return head.status == .notModified && job.revalidates ? [.renew] : [.compareHead]
        }
        if asksForRest, let actions = receivedInsteadOfRest(head, attempt) { return actions }
        switch head.status.rawValue {
        case 206 where isPartOfText(head, known): return askForWhole()
        case 206 where !head.isCodedAsKnown && (fill != nil || known.hasObject):
            return receivedOtherCoding(known)
        case 206 where fits(head): return receivedPart(head, known, attempt)
        case 206: return receivedOpaquePart(head, known)
        case 304 where isConditional: return [.renew]
        case 304 where job.hasConditions: return end(with: .head)
        // The request had no condition, so a 304 is not a response to it.
        case 304: return refuse(ProxyFailure(originStatus: head.status, subject: job.subject))
        case 416 where wanted != .whole && !job.hasConditions:
            return receivedUnsatisfiable(head, known, attempt)
        default: return receivedWhole(head, known, attempt)
        }
    }

    /// True if a client has requested a part of what only now turns out to be a playlist: it is
    /// rewritten, so that all of it is needed.
    private func isPartOfText(_ head: ResponseFacts, _ known: KnownFacts) -> Bool {
        head.namesPlaylist && wanted != .whole && mayAskAgain && !asksForRest && !known.hasObject
            && job.resource.role.isOpen && !job.resource.isVerbatim
    }

    /// Handles a status that came in place of the rest of a body, and says nothing of what is
    /// stored of it (RFC 9111 section 4.3.3): its readers are its only clients.
    ///
    /// - Returns: nil for a status that belongs to the body.
    private mutating func receivedInsteadOfRest(
        _ head: ResponseFacts, _ attempt: Attempt
    ) -> [Action]? {
        switch head.status.rawValue {
        case 200..<300, 416: return nil
        case 408, 425, 429, 500...599: return comeBackLater(head, attempt)
        default: return refuse(ProxyFailure(originStatus: head.status, subject: job.subject))
        }
    }

    /// True if a request is for the rest of a body that a client has begun to receive.
    private var asksForRest: Bool {
        guard case .span(let start, _) = wanted else { return false }
        return job.wantsRest || fill.map { start > $0.firstOffset } ?? false
    }

    /// True if a request asks whether what is stored is current: one that continues a new body asks
    /// for its rest, although the flight began to revalidate another one.
    var isConditional: Bool { job.revalidates && fill == nil }

    /// Handles a temporary error: the next request is sent once the body has ended, so that it can
    /// use the connection.
    mutating func comeBackLater(_ head: ResponseFacts, _ attempt: Attempt) -> [Action] {
        let retryAfter = job.followsHTTP ? nil : head.retryAfter
        let refusal = Refusal(status: head.status, retryAfter: retryAfter)
        // No other request follows, and the stored response may be served at once.
        guard mayComeBack else { return giveUp(refusal) }
        enter(.refused(refusal, attempt.question))
        return [.dismiss]
    }

    private mutating func receivedWhole(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        let length = head.contentLength
        // Nothing is known of the length that the body will have in the end.
        if job.resource.isGrowing { return [.begin(Placement(start: 0, end: length))] }
        // What is decoded would have two forms with one entity tag: a coding is decoded only in a
        // response to a request for the whole.
        if head.isCoded, job.resource.decodesContent, attempt.askedRange != nil, mayAskAgain {
            return askForWhole()
        }
        if head.isOtherVersion, isFarFromStart, omitted.isDisjoint(with: .rangeCondition) {
            return askForAnyVersion()
        }
        let placement = Placement(start: 0, total: length, receivedEnd: length)
        if compares(placement, known, attempt) { return [] }
        if let length, mayComeAtOnce(head, length, known) {
            enter(.holding(attempt, placement))
            return []
        }
        let isEmpty = head.status == .noContent || head.status == .resetContent
        guard isEmpty else { return [.begin(placement)] }
        return [.begin(Placement(start: 0, total: 0, receivedEnd: length))]
    }

    private mutating func receivedPart(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        guard case .satisfied(let first, let last, let total)? = head.range else {
            return refuseOrigin("the origin sent a 206 without a readable Content-Range")
        }
        // The response would not end where it should, and its position and length cannot be
        // trusted.
        if let length = head.contentLength, length > last - first + 1 {
            return refuseOrigin("a 206 that is longer than its Content-Range")
        }
        if case .span(let start, _) = wanted, first != start - attempt.before {
            return refuseOrigin("the origin sent another range than asked for")
        }
        guard head.isCodedAsKnown else { return receivedOtherCoding(known) }
        guard !job.resource.isGrowing else {
            let end = last >= Wanted.openEnd ? nil : last + 1
            return [.begin(Placement(start: first, end: end))]
        }
        var end = last + 1
        if attempt.behind > 0, case .span(_, let wantedEnd?) = wanted { end = min(end, wantedEnd) }
        let placement = Placement(start: first, end: end, total: total, receivedEnd: last + 1)
        if compares(placement, known, attempt) { return [] }
        return [.begin(placement)]
    }

    /// Passes a part on unchanged: the client may understand it, the store does not.
    private mutating func receivedOpaquePart(
        _ head: ResponseFacts, _ known: KnownFacts
    ) -> [Action] {
        guard fill == nil, !known.hasObject else {
            return refuseOrigin("the origin sent another range than asked for", head.status)
        }
        // Its length is what it states itself, however it ends: no other part of the body can be
        // matched to its end.
        var length = head.contentLength
        if length == nil, case .satisfied(let first, let last, _)? = head.range {
            length = last - first + 1
        }
        return [.begin(Placement(start: 0, total: length, layout: .opaque))]
    }

    private mutating func receivedUnsatisfiable(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        var total: Int64?
        if case .unsatisfied(let length)? = head.range { total = length }
        // A range from the first byte on is unsatisfiable only for an empty body, and the client
        // may not have requested one. The last bytes of an empty body are all of it.
        switch wanted {
        case .span(0, _?) where !known.hasObject: return askForWhole()
        case .suffix(1...) where !known.hasObject && total == 0: return askForWhole()
        default: break
        }
        // Not every origin heeds If-Range: its file has become shorter.
        if let total, known.total.map({ total != $0 }) ?? (attempt.before > 0) {
            return foundOtherVersion()
        }
        guard attempt.before == 0 else { return receivedNoOverlap() }
        return [.learnEnd(total)]
            + refuse(
                ProxyFailure(
                    .client, .rangeNotSatisfiable,
                    "\(job.subject): the range lies beyond the end", originStatus: head.status,
                    total: total))
    }

    /// Handles a 416 to a range that begins with stored bytes, which states no length that differs
    /// from theirs.
    ///
    /// It means another version, or a captive portal or proxy; the response to a request for the
    /// whole shows which.
    private mutating func receivedNoOverlap() -> [Action] {
        guard fill == nil, !waiters.isEmpty, !job.wantsRest else {
            return refuseOrigin("the origin refuses a range that begins with stored bytes (416)")
        }
        return askForWhole()
    }

    /// Handles a part in another content coding than the bytes that it was to join, or in any where
    /// none are known: its positions count the bytes of another representation, whatever its
    /// validator states (RFC 9110 sections 8.8.3.3 and 14.1).
    ///
    /// The whole is requested instead, once. What is stored is discarded: the origin would answer
    /// each request for the rest in the same way.
    private mutating func receivedOtherCoding(_ known: KnownFacts) -> [Action] {
        guard wanted != .whole else {
            return refuseOrigin("the origin was asked for the whole and sent an encoded part of it")
        }
        guard fill != nil || known.hasObject || job.wantsRest else { return askForWhole() }
        let actions = foundOtherVersion()
        if !hasEnded { wanted = .whole }
        return actions
    }

    /// True if the wanted bytes are further from the first byte of the body than a reader waits.
    private var isFarFromStart: Bool {
        switch wanted {
        case .suffix: true
        case .span(let start, _): start > job.limits.joinDistance
        }
    }

    /// Requests the wanted part once more, without If-Range: the whole body of another version
    /// would have to be received up to that part.
    ///
    /// It may come from another server of the origin, which has a validator of its own for the same
    /// bytes. The part is joined to what is stored if its validator is the stored one after all, or
    /// if the stored bytes before it are the same. A flight does this once, whichever server
    /// answers.
    private mutating func askForAnyVersion() -> [Action] {
        omit(.rangeCondition)
        return [.drop, .count(.originRetries)] + becomeDue()
    }

    /// Sends another request, for the whole body instead of a part.
    private mutating func askForWhole() -> [Action] {
        wanted = .whole
        return [.drop, .count(.originRetries)] + becomeDue()
    }

    /// True if a part is the requested one, with consistent Content-Range and Content-Length (RFC
    /// 9110 section 15.3.7).
    private func fits(_ head: ResponseFacts) -> Bool {
        guard case .satisfied(let first, let last, let total)? = head.range else { return false }
        let length = last - first + 1
        if let told = head.lengthText, told != String(length) { return false }
        guard head.isCodedAsKnown else { return false }
        switch wanted {
        case .suffix(let wanted):
            guard let total else { return false }
            return last == total - 1 && length == min(wanted, total)
        case .span(let start, let end):
            return first == start && end.map { last < $0 } ?? true
        }
    }

    /// True if the body of a response from its first byte on is short enough to wait for: its
    /// object is then created complete, in one write.
    private func mayComeAtOnce(_ head: ResponseFacts, _ length: Int64, _ known: KnownFacts) -> Bool
    {
        !known.hasObject && fill == nil && !isPlaylist && head.status == .ok
            && (1...job.limits.shortBody).contains(length) && job.resource.live.growth == nil
    }

    /// Begins with a held head: its body has arrived, or the round is over.
    func releaseHeldHead() -> [Action] {
        guard case .holding(_, let placement) = state else { return [] }
        return [.begin(placement)]
    }

    // MARK: Filling

    /// True if a response with this status brings the whole body where a range was requested.
    ///
    /// The whole of another version than If-Range named is no sign that the origin ignores ranges.
    func ignoresRange(_ status: HTTPStatus) -> Bool {
        status == .ok && wanted != .whole && !isOfOtherVersion
    }

    /// The result of a `begin`.
    struct Beginning {
        var placement: Placement
        /// The origin's status.
        var status: HTTPStatus
        /// True if the response continues the object that the flight had.
        var goesOn = false
        /// True if the first bytes decide the object's type.
        var sniffs = false
        var isStorable = true
        /// The failure of an ahead fetch if the object is not stored.
        var unkept: ProxyFailure?
        var takesRanges = false
        var provesItsEnd = true
    }

    /// True if an unproven response waits until another flight has filled the object that it may
    /// belong to: no player waits for it, so it need not be passed on.
    var waitsForRivals: Bool { isAhead && mayAskAgain }

    /// True if nothing of a response has been passed on.
    var mayAskAgain: Bool { fill == nil }

    /// True if the current response was requested without stored bytes to compare it with.
    var asksWithoutProof: Bool {
        switch state {
        case .asking(let attempt), .holding(let attempt, _):
            attempt.before == 0 && attempt.behind == 0
        default: false
        }
    }

    /// Waits, and sends another request once the other flights are done or have reached the
    /// beginning of this one.
    mutating func waitForOthers() -> [Action] {
        enter(.waitingForOthers)
        return [.drop, .count(.originRetries), .watchOthers]
    }

    /// The state of the other flights.
    enum Others: Equatable {
        /// Their object was discarded.
        case discarded
        /// The first wanted byte is stored.
        case filled
        case busy
        /// No flight fills the object, and there are bytes to compare with now, or none before the
        /// wanted ones.
        case done
        /// No flight fills the object, and there are bytes before the wanted ones, but none to
        /// compare with.
        case gone
    }

    mutating func othersLooked(_ others: Others, isWanted: Bool) -> [Action] {
        guard case .waitingForOthers = state else { return [] }
        guard isWanted else { return abandon() }
        switch others {
        case .filled: return end(with: .filledByOthers)
        case .busy where isAhead: return [.watchOthers]
        case .discarded: return [.forgetObject] + backOff(for: .zero)
        case .gone where isAhead: return refuseUnproven()
        case .busy, .done, .gone: return backOff(for: .zero)
        }
    }

    /// Handles an ahead fetch whose response nothing proves to belong to the stored bytes: to begin
    /// a new object would replace them by a part that no player has requested.
    mutating func refuseUnproven() -> [Action] {
        var failure = ProxyFailure(
            .origin, .badGateway,
            "\(job.subject): the bytes before this range are not stored, and without them or "
                + "a validator it cannot be joined to what is stored")
        failure.isUnproven = true
        return refuse(failure)
    }

    /// Continues once the object exists and the response fills it.
    mutating func began(_ beginning: Beginning, now: Monotonic) -> [Action] {
        let placement = beginning.placement
        let attempt: Attempt
        switch state {
        case .asking(let asked), .holding(let asked, _), .comparing(let asked, _): attempt = asked
        default: return []
        }
        ranges.remove(.taken)
        if beginning.takesRanges { ranges.insert(.taken) }
        if ignoresRange(beginning.status) { ranges.insert(.ignored) }
        wanted = .span(start: placement.start, end: placement.end)
        fill = Fill(
            firstOffset: fill?.firstOffset ?? placement.start, layout: placement.layout)
        var sendsMore = false
        if extent == .bounded, case .span(_, let askedEnd?)? = attempt.askedRange {
            sendsMore = (placement.last ?? .max) > askedEnd
        }
        let isOpen = !beginning.goesOn && beginning.sniffs
        enter(
            .filling(
                Filling(
                    attempt: attempt, since: now, provesItsEnd: beginning.provesItsEnd,
                    sendsMore: sendsMore, sniffing: isOpen ? .open(prefix: []) : .settled,
                    accountedEnd: placement.start)))
        // Useless for a player that has not requested it yet.
        if isAhead, !isPlaylist, !beginning.isStorable {
            return refuse(beginning.unkept ?? .noRoom)
        }
        return (isOpen ? [] : [.publish]) + deliver(now: now)
    }
}
