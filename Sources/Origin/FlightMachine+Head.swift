import HTTP
import Model
import Posix

/// What the head of a response says, as far as a flight decides by it.
struct ResponseFacts {
    var status: HTTPStatus
    /// The length of the body, where the head tells it.
    var contentLength: Int64?
    /// The text of Content-Length.
    var lengthText: String?
    /// Content-Range, of a 206 or a 416.
    var range: ContentRange?
    /// When the origin wants to be asked again.
    var retryAfter: Interval?
    /// Whether a part is coded as the rest of the body is: a range counts bytes of the coded body
    /// (RFC 9110 section 14.1), so that parts of one coding fit together and those of two never do.
    var isCodedAsKnown = true
}

/// What is stored of the resource when a head comes.
struct KnownFacts {
    /// Whether the flight has an object, be it that its rest or its freshness is asked about.
    var hasObject = false
    /// The stored body that the response has to be compared with; nil where a strong validator
    /// tells, or nothing need be told.
    var compared: StoredBody?
}

/// Where the bytes of a response belong.
struct Placement: Equatable {
    /// Where the first byte that is taken goes.
    var start: Int64
    /// The end of what the response says it holds; nil for the end of the body.
    var end: Int64?
    /// The length of the body, as far as the response tells it.
    var total: Int64?
    /// Where the response ends, as far as it says.
    var receivedEnd: Int64?
    var layout = FlightMachine.Layout.inPlace
    /// True where the response was seen to go on behind stored bytes.
    var isProvenRest = false

    /// The end of the bytes as far as the response tells it.
    var last: Int64? { end ?? total }
}

extension FlightMachine {
    /// The head of a response has come.
    ///
    /// - Parameters:
    ///   - head: what it says.
    ///   - known: what is stored of the resource.
    ///   - fill: the fill that the response was to go on with; nil for none.
    ///   - now: the time.
    /// - Returns: what is to be done.
    mutating func received(
        _ head: ResponseFacts, _ known: KnownFacts, _ fill: FillFacts?, now: Monotonic
    ) -> [Action] {
        guard case .asking(let attempt) = state else { return [] }
        if attempt.question == .end, head.status == .ok || head.status.rawValue == 416 {
            return endAnswered(isProven: head.status != .ok, fill, now: now)
        }
        if job.followsHTTP { return receivedUnderRules(head, known, attempt) }
        switch head.status.rawValue {
        case 200, 203: return receivedWhole(head, known, attempt)
        case 206: return receivedPart(head, known, attempt)
        case 304 where job.revalidates: return [.renew]
        case 416: return receivedUnsatisfiable(head, known, attempt)
        case 408, 425, 429, 500, 502, 503, 504: return comeBackLater(head, attempt)
        default: return refuse(ProxyFailure(originStatus: head.status, subject: job.subject))
        }
    }

    /// Under a mount every final status is an answer.
    private mutating func receivedUnderRules(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        if job.method == .head {
            // The answer to a condition of ours, which the client knows nothing of.
            return head.status == .notModified && job.revalidates ? [.renew] : [.compareHead]
        }
        switch head.status.rawValue {
        case 206 where fits(head): return receivedPart(head, known, attempt)
        case 206: return receivedOpaquePart(head, known)
        case 304 where job.revalidates: return [.renew]
        case 304 where job.hasConditions: return end(with: .head)
        // Nobody has asked whether anything has changed: there is no answer in this.
        case 304: return refuse(ProxyFailure(originStatus: head.status, subject: job.subject))
        case 416 where wanted != .whole && !job.hasConditions:
            return receivedUnsatisfiable(head, known, attempt)
        case 500...599 where job.revalidates && job.staleServes:
            // As if the origin had not answered (RFC 9111 section 4.3.3).
            return comeBackLater(head, attempt)
        default: return receivedWhole(head, known, attempt)
        }
    }

    private mutating func comeBackLater(_ head: ResponseFacts, _ attempt: Attempt) -> [Action] {
        let retryAfter = job.followsHTTP ? nil : head.retryAfter
        enter(.refused(Refusal(status: head.status, retryAfter: retryAfter), attempt.question))
        return [.cancel]
    }

    private mutating func receivedWhole(
        _ head: ResponseFacts, _ known: KnownFacts, _ attempt: Attempt
    ) -> [Action] {
        let length = head.contentLength
        // What is there now, and not what will have been there at the end.
        if job.resource.isGrowing { return [.begin(Placement(start: 0, end: length))] }
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
            return refuseOrigin("a 206 without a readable Content-Range")
        }
        // It would never come to its end, and what tells its place and its length cannot be trusted.
        if let length = head.contentLength, length > last - first + 1 {
            return refuseOrigin("a 206 that is longer than its Content-Range")
        }
        if case .span(let start, _) = wanted, first != start - attempt.before {
            return refuseOrigin("the origin sent another range than asked for")
        }
        guard head.isCodedAsKnown else {
            return refusePart(known, "a range of an encoded body cannot be used")
        }
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

    /// Passes a part on as it came: whoever asked may understand it, the store does not.
    private mutating func receivedOpaquePart(
        _ head: ResponseFacts, _ known: KnownFacts
    ) -> [Action] {
        guard fill == nil, !known.hasObject else {
            return refuseOrigin("the origin sent another range than asked for", head.status)
        }
        // Its length is what it says of itself, however it ends: no other part of the body can be
        // told to follow on it.
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
        // A range from the first byte on cannot be had of an empty body only, and may be ours.
        if !known.hasObject, case .span(0, _?) = wanted { return askForWhole() }
        // The bytes before the wanted ones are not there any more.
        guard attempt.before == 0 else { return isOtherVersion() }
        return [.learnEnd(total)]
            + refuse(
                ProxyFailure(
                    .client, .rangeNotSatisfiable,
                    "\(job.subject): the range lies beyond the end", originStatus: head.status,
                    total: total))
    }

    /// Refuses a part that is of no use to those who asked for one; those who joined them and want the
    /// whole body are given that.
    private mutating func refusePart(_ known: KnownFacts, _ what: String) -> [Action] {
        guard fill == nil, !known.hasObject, waiters.contains(where: \.wantsWhole) else {
            return refuseOrigin(what)
        }
        let failure = ProxyFailure(.origin, .badGateway, "\(job.subject): \(what)")
        return [.answer(takeWaitersOfParts(), .failure(failure))] + askForWhole()
    }

    /// Asks again, for the whole body in place of a part.
    private mutating func askForWhole() -> [Action] {
        wanted = .whole
        return [.drop, .count(.originRetries)] + becomeDue()
    }

    /// Whether a part is the one asked for, and says the same of itself everywhere (RFC 9110 section
    /// 15.3.7).
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

    /// Whether a response from its first byte on is worth waiting a moment for: its object is made
    /// whole then, in one write.
    private func mayComeAtOnce(_ head: ResponseFacts, _ length: Int64, _ known: KnownFacts) -> Bool
    {
        !known.hasObject && fill == nil && !isPlaylist && head.status == .ok
            && (1...job.limits.shortBody).contains(length) && job.resource.live.growth == nil
    }

    // MARK: Comparing

    /// Compares what a response begins with, where it begins before the wanted bytes.
    ///
    /// - Returns: false where it does not, or there is nothing to compare.
    private mutating func compares(
        _ placement: Placement, _ known: KnownFacts, _ attempt: Attempt
    ) -> Bool {
        guard case .span(let wantedStart, _) = wanted, let body = known.compared,
            let proven = body.provenStart(of: placement, wanted: wantedStart)
        else { return false }
        var behind = placement
        behind.start = proven
        behind.isProvenRest = true
        enter(
            .comparing(
                attempt,
                Comparison(position: placement.start, start: proven, placement: behind)))
        return true
    }

    /// The next bytes that are to be compared; nil where none are.
    var comparison: Comparison? {
        if case .comparing(_, let comparison) = state { comparison } else { nil }
    }

    /// Bytes of the response were compared with the stored ones.
    mutating func compared(_ count: Int64, areSame: Bool) -> [Action] {
        guard case .comparing(let attempt, var comparison) = state else { return [] }
        guard areSame else { return isOtherVersion() }
        comparison.position += count
        enter(.comparing(attempt, comparison))
        guard comparison.position == comparison.start else { return [] }
        return [.begin(comparison.placement)]
    }

    /// The body of a held head is here, or the round is over.
    func releaseHeldHead() -> [Action] {
        guard case .holding(_, let placement) = state else { return [] }
        return [.begin(placement)]
    }

    /// The origin has another version: what is stored is no good any more, and whoever has got nothing
    /// of it yet gets the new one.
    mutating func isOtherVersion() -> [Action] {
        let first: [Action] = [.drop, .noteOtherVersion, .discardObject]
        guard fill == nil, !waiters.isEmpty, !job.wantsRest else {
            return first
                + fail(
                    ProxyFailure(
                        .origin, .badGateway,
                        "\(job.subject): the origin has another version now"),
                    cause: FillEnd.representationChanged)
        }
        return first + [.forgetObject, .count(.originRetries)] + becomeDue()
    }

    // MARK: Filling

    /// What became of a `begin`.
    struct Beginning {
        var placement: Placement
        /// The origin's status.
        var status: HTTPStatus
        /// Whether the response goes on with the object that the flight had.
        var goesOn = false
        /// Whether the first bytes decide what the object is.
        var sniffs = false
        var isStorable = true
        /// Why a fetch ahead is of no use where the object is not kept.
        var unkept: ProxyFailure?
        var takesRanges = false
        var provesItsEnd = true
    }

    /// Whether a response waits until another flight has filled the object that it may belong to:
    /// what nobody waits for yet need not be passed on unproven.
    var waitsForRivals: Bool { isAhead && mayAskAgain }

    /// Whether nothing of a response has been passed on.
    var mayAskAgain: Bool { fill == nil }

    /// Whether the present response was asked for without stored bytes to compare it with.
    var asksWithoutProof: Bool {
        switch state {
        case .asking(let attempt), .holding(let attempt, _):
            attempt.before == 0 && attempt.behind == 0
        default: false
        }
    }

    /// Asks again once the other flights are done, or have come to where this one begins.
    mutating func waitForOthers() -> [Action] {
        enter(.waitingForOthers)
        return [.drop, .count(.originRetries), .watchOthers]
    }

    /// What others have done meanwhile.
    enum Others: Equatable {
        /// Their object is no good any more.
        case discarded
        /// The first wanted byte is there.
        case filled
        case busy
        /// Nobody fills the object, or there are bytes to compare with now.
        case done
        /// Nobody fills the object, and there are no bytes to compare with.
        case gone
    }

    mutating func othersLooked(_ others: Others, isWanted: Bool) -> [Action] {
        guard case .waitingForOthers = state else { return [] }
        guard isWanted else { return abandon() }
        switch others {
        case .filled: return end(with: .filledByOthers)
        case .busy where isAhead: return [.watchOthers]
        case .discarded: return [.forgetObject] + backOff(for: .zero)
        case .gone where isAhead:
            // Asking again would replace what is stored by a part that no player has asked for.
            return refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(job.subject): the bytes before this range could not be fetched, and "
                        + "without them or a validator it cannot be joined to what is stored"))
        case .busy, .done, .gone: return backOff(for: .zero)
        }
    }

    /// The object is there and the response fills it.
    mutating func began(_ beginning: Beginning, now: Monotonic) -> [Action] {
        let placement = beginning.placement
        let attempt: Attempt
        switch state {
        case .asking(let asked), .holding(let asked, _), .comparing(let asked, _): attempt = asked
        default: return []
        }
        ranges.remove(.taken)
        if beginning.takesRanges { ranges.insert(.taken) }
        if beginning.status == .ok, wanted != .whole { ranges.insert(.ignored) }
        wanted = .span(start: placement.start, end: placement.end)
        fill = Fill(
            firstOffset: fill?.firstOffset ?? placement.start, layout: placement.layout)
        var sendsMore = false
        if case .span(_, let askedEnd?)? = attempt.askedRange {
            sendsMore = (placement.last ?? .max) > askedEnd
        }
        let isOpen = !beginning.goesOn && beginning.sniffs
        enter(
            .filling(
                Filling(
                    attempt: attempt, since: now, provesItsEnd: beginning.provesItsEnd,
                    sendsMore: sendsMore, sniffing: isOpen ? .open(prefix: []) : .settled,
                    accountedEnd: placement.start)))
        // Of no use to a player that has not asked yet.
        if isAhead, !isPlaylist, !beginning.isStorable {
            return refuse(beginning.unkept ?? .noRoom)
        }
        return (isOpen ? [] : [.publish]) + deliver(now: now)
    }
}
