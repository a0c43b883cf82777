import HLS
import HTTP
import Model
import Posix
import Upstream
import URISyntax

/// The state of the object and the fill on which decisions depend.
struct FillFacts: Equatable {
    /// The offset of the next byte.
    var offset: Int64
    /// The length of the body; nil while it is not known.
    var total: Int64?
    /// True if the head of the object can be decoded.
    var hasHead = true
    var hasStrongValidator = false
    /// True if the body is a playlist that did not prove its end and was cut.
    var isCutList = false
}

extension FlightMachine {
    // MARK: Bytes

    /// How received bytes of a body are handled.
    enum Intake {
        /// Dropped.
        case ignore
        /// Held with the head of their response.
        case hold
        /// Compared with stored bytes.
        case compare
        case take
    }

    /// How bytes of the body are handled now; read for each piece of a body.
    @inline(__always) var intake: Intake {
        switch state {
        case .filling: .take
        case .holding: .hold
        case .comparing: .compare
        case .due, .asking, .refused, .backingOff, .waitingForOthers, .ended: .ignore
        }
    }

    /// True until the first bytes have decided the object's type.
    var isSniffing: Bool {
        if case .filling(let filling) = state, case .open = filling.sniffing { return true }
        return false
    }

    enum Sniffed: Equatable {
        case undecided
        /// A playlist came where none was expected.
        case newPlaylist
        case asExpected
        case media
        /// Something else came where a playlist or media was expected; `isPage` is true for an HTML
        /// page.
        case wrong(String, isPage: Bool = false)
    }

    mutating func sniff(_ bytes: some Sequence<UInt8>, isAtEnd: Bool) -> Sniffed {
        guard case .filling(var filling) = state, case .open(var prefix) = filling.sniffing else {
            return .undecided
        }
        prefix.append(
            contentsOf: bytes.prefix(max(0, PlaylistDetector.prefixLength - prefix.count)))
        let isLast = isAtEnd || prefix.count >= PlaylistDetector.prefixLength
        let found = classify(prefix, isLast: isLast)
        filling.sniffing = found == .undecided ? .open(prefix: prefix) : .settled
        enter(.filling(filling))
        if found == .newPlaylist { isPlaylist = true }
        return found
    }

    /// Classifies a body by its first bytes; with `isLast`, it decides even if they leave the type
    /// open.
    private func classify(_ prefix: [UInt8], isLast: Bool) -> Sniffed {
        if let role = job.resource.role, role.isMediaOfPlaylist {
            switch PageDetector.inspect(prefix) {
            case .undecided where !isLast: return .undecided
            case .page: return .wrong(Self.pageForMedia, isPage: true)
            // A key may be a licence, and a licence may be JSON. The first bytes of an encrypted
            // segment may look like an object, all of them do not.
            case .object where role != .key:
                return isLast ? .wrong("expected media, but the origin sent JSON") : .undecided
            case .object, .other, .undecided: return .media
            }
        }
        switch (PlaylistDetector.inspect(prefix), isPlaylist) {
        case (.undecided, _) where !isLast: return .undecided
        case (.playlist, true): return .asExpected
        case (.playlist, false): return .newPlaylist
        case (.markup, true):
            let page = PageDetector.inspect(prefix)
            // The first read may end within the first tag.
            if page == .undecided, !isLast { return .undecided }
            return .wrong(
                "expected a playlist, but the origin sent an HTML or XML page",
                isPage: page == .page)
        case (_, true): return .wrong(Self.noPlaylist)
        case (.markup, false) where isNeverPage:
            switch PageDetector.inspect(prefix) {
            case .undecided where !isLast: return .undecided
            case .page: return .wrong(Self.pageForMedia, isPage: true)
            case .object, .other, .undecided: return .media
            }
        case (_, false): return .media
        }
    }

    /// True if an HTML page in place of the resource is an error: of media of a playlist, of a
    /// resource whose file extension is one of media, and of a file that is stored in part.
    var isNeverPage: Bool {
        guard !job.followsHTTP, !job.resource.isVerbatim else { return false }
        let role = job.resource.role
        guard role.isOpen else { return role?.isMediaOfPlaylist == true }
        let url = job.resource.url
        return replacesFile
            || ResourceRole.media.accepts(extensionOf: url.bytes[url.lastPathSegmentRange])
    }

    mutating func sniffed(_ sniffed: Sniffed, now: Monotonic) -> [Action] {
        switch sniffed {
        case .undecided, .asExpected, .newPlaylist: return []
        case .media: return [.publish] + deliver(now: now)
        case .wrong(let what, let isPage):
            // Captive portals answer like this: what is stored is worth more.
            return [.discardObject] + refuse(wrongContent(what, isPage: isPage))
        }
    }

    /// Ends the flight because a response that was compared with stored bytes is an HTML page,
    /// which says nothing about the version of these.
    mutating func refusePage() -> [Action] {
        refuse(wrongContent(Self.pageForMedia, isPage: true))
    }

    /// True if the body that is being received is known not to be a playlist.
    var isKnownAsMedia: Bool {
        guard case .filling(let filling) = state else { return false }
        return filling.sniffing == .settled && !isPlaylist
    }

    static let noPlaylist = "expected a playlist, but the origin sent something else"
    private static let pageForMedia = "expected media, but the origin sent an HTML page"

    /// The failure of a request whose resource is not what it must be.
    func wrongContent(_ what: String, isPage: Bool = false) -> ProxyFailure {
        var failure = ProxyFailure(
            .origin, .badGateway, "\(job.subject): \(what)", originStatus: .ok, allowsStale: true)
        failure.isPage = isPage
        return failure
    }

    /// Counts the bytes received since the last call against the budget; where more were received
    /// again than that allows, continues on the budget of another waiter, or fails.
    ///
    /// - Returns: nil if the budget allows them.
    mutating func account(to end: Int64, now: Monotonic) -> [Action]? {
        guard case .filling(let filling) = state, end > filling.accountedEnd else { return nil }
        let bytes = filling.accountedEnd..<end
        change { $0.accountedEnd = end }
        if budget.with({ $0.receive(bytes, of: job.resource.key, now: now) }) { return nil }
        var actions: [Action] = []
        return borrows(&actions) ? actions : actions + failSpent()
    }

    /// True if the transfer ends where it reaches stored bytes: past this many of them, a new
    /// request for what follows costs less than fetching them twice.
    ///
    /// An origin that ignores ranges would send them again in response to that request.
    func endsAtStored(_ count: Int64, from offset: Int64, total: Int64) -> Bool {
        guard isFilling, waiters.isEmpty else { return false }
        if offset + count >= total { return true }
        return count >= job.limits.joinDistance && !ranges.contains(.ignored)
    }

    /// Notes that the object has no name, or has lost it; returns true once, unless the reply said
    /// that the object is not stored (`isAnswered`): the loss must be counted then.
    mutating func countsLoss(isAnswered: Bool) -> Bool {
        guard !isAnswered, !hasCountedLoss else { return false }
        hasCountedLoss = true
        return true
    }

    /// Decides after writing the very first bytes failed.
    ///
    /// - Returns: whether the body may be passed on without being stored: no waiter has the object
    ///   yet, and a player waits for it.
    mutating func keepsNothing() -> Bool {
        guard mayKeep, !isAhead, !waiters.isEmpty else { return false }
        mayKeep = false
        return true
    }

    /// Starts over without storing, after writing failed in the middle of a text: its waiters get
    /// nothing before its end.
    ///
    /// - Returns: nil if bytes were handed out, no player waits, or storing has failed before.
    mutating func startsUnstored() -> [Action]? {
        let isUnseen =
            isPlaylist || !wasObjectGiven && waiters.all.allSatisfy { $0.repliesAt == .completion }
        guard isFilling, !isOpaque, isUnseen, keepsNothing() else { return nil }
        return [.drop] + resume(.afresh, after: .zero)
    }

    /// Starts over without the parents, one of which has sent an HTML page in place of the
    /// resource.
    ///
    /// - Returns: nil if bytes were handed out, or the page is the origin's.
    mutating func startsPastParents() -> [Action]? {
        guard isFilling, !wasObjectGiven, !omitted.contains(.parents) else { return nil }
        omit(.parents)
        return [.drop] + resume(.afresh, after: .zero)
    }

    // MARK: Flow control

    /// Pauses the transfer.
    ///
    /// - Returns: false if it must not be: a waiter needs the body, or it is paused already.
    mutating func pauseTransfer(at now: Monotonic) -> Bool {
        guard case .filling(let filling) = state, filling.flow == .open, waiters.isEmpty else {
            return false
        }
        change { $0.flow = .paused(since: now) }
        return true
    }

    /// Resumes the transfer.
    ///
    /// - Returns: false if it is not paused.
    mutating func resumeTransfer() -> Bool {
        guard pausedSince != nil else { return false }
        change { $0.flow = .open }
        return true
    }

    // MARK: The end of a body

    /// Returns the end of the bytes that this transfer should deliver, or 0 if unknown.
    private func promisedEnd(_ fill: FillFacts) -> Int64 {
        if case .span(_, let end?) = wanted { return end }
        return fill.total ?? 0
    }

    /// Whether the body is a playlist that may have been cut.
    ///
    /// - Parameter isCoded: whether the body had a content coding: libcurl reports no error for a
    ///   coded body that ends early.
    /// - Returns: true for a playlist whose transfer has ended without showing that it is whole.
    func isListOfOpenEnd(isCoded: Bool) -> Bool {
        guard case .filling(let filling) = state else { return false }
        return isPlaylist && (isCoded || !filling.provesItsEnd)
    }

    /// Handles the regular end of the transfer; everything received is in the file.
    ///
    /// - Parameters:
    ///   - fill: the fill; nil if no response began one.
    ///   - ending: how the flight may continue.
    /// - Returns: the actions.
    mutating func bodyEnded(_ fill: FillFacts?, _ ending: Ending) -> [Action] {
        guard !hasEnded else { return [] }
        guard let fill else { return refuseOrigin("the origin sent no usable response") }
        guard case .filling(let filling) = state else {
            // A response that was to continue the body ended before any new byte.
            return endedEarly(fill, ending)
        }
        // Of a live stream, only an end that the origin states is one.
        if fill.isCutList || extent == .endless && !filling.provesItsEnd {
            return endedEarly(fill, ending)
        }
        if let actions = asksForWhole(filling, fill) { return actions }
        if job.hasDirectives, isPlaylist {
            change { $0.stage = .readingLists }
            return [.readLists]
        }
        if endsWithStored(filling, fill) { wanted = .span(start: fill.offset, end: nil) }
        return endBody(isProven: filling.provesItsEnd, isAsked: false, fill, ending)
    }

    /// Handles a regular end that is not that of the body, as if the transfer had failed.
    private mutating func endedEarly(_ fill: FillFacts, _ ending: Ending) -> [Action] {
        let error = UpstreamError(.truncated, host: job.resource.url.host)
        return broke(error, isDown: false, fill, ending)
    }

    /// A list that came too early, and when to poll again.
    struct EarlyList: Equatable {
        let pause: Interval
        /// The time since the first request until which polling is worthwhile.
        let lastRepeat: Interval
    }

    /// Handles the parsed lists that decide the end of a blocking reload.
    ///
    /// - Parameters:
    ///   - early: nil for a list that satisfies the request. An origin that ignores the directives
    ///     responds immediately and must not be polled in a loop.
    ///   - fill: the fill.
    ///   - ending: how the flight may continue.
    /// - Returns: the actions.
    mutating func listsRead(_ early: EarlyList?, _ fill: FillFacts, _ ending: Ending) -> [Action] {
        guard case .filling(let filling) = state, filling.stage == .readingLists else { return [] }
        if let early, ending.now - job.begunAt < early.lastRepeat {
            budget.with { $0.excuse(job.resource.key) }
            return [.count(.reloadsRepeated)] + resume(.afresh, after: early.pause)
        }
        return endBody(isProven: filling.provesItsEnd, isAsked: false, fill, ending)
    }

    /// Handles the origin's response to the probe for more bytes: there are none, or it does not
    /// support the probe.
    mutating func endAnswered(isProven: Bool, _ fill: FillFacts?, now: Monotonic) -> [Action] {
        guard let fill else { return refuseOrigin("the origin sent no usable response") }
        let ending = Ending(isWanted: true, jitter: 0, now: now)
        return [.drop] + endBody(isProven: isProven, isAsked: true, fill, ending)
    }

    /// True if a response to the request for the rest of a body says that there is none: the
    /// transfer broke after the last byte, and only then the length is known.
    func endsBody(_ head: ResponseFacts, _ facts: FillFacts, _ attempt: Attempt) -> Bool {
        guard head.status == .rangeNotSatisfiable, case .unsatisfied(let total)? = head.range,
            fill != nil, extent != .endless, facts.total == nil, !job.resource.isGrowing
        else { return false }
        return total > 0 && total == facts.offset && attempt.before == 0
            && attempt.wanted == .span(start: total, end: nil)
    }

    /// True if the response to a range without an end brought nothing beyond the stored bytes that
    /// it was compared with: the body ends there, even if Content-Range leaves its length open.
    private func endsWithStored(_ filling: Filling, _ facts: FillFacts) -> Bool {
        guard filling.provesItsEnd, filling.attempt.before > 0, facts.total == nil,
            facts.offset == fill?.firstOffset, case .span(_, nil)? = filling.attempt.askedRange
        else { return false }
        return true
    }

    private mutating func endBody(
        isProven: Bool, isAsked: Bool, _ facts: FillFacts, _ ending: Ending
    ) -> [Action] {
        if facts.offset < promisedEnd(facts) {
            // Framed as complete, but shorter than stated elsewhere.
            return endedEarly(facts, ending)
        }
        var actions: [Action] = []
        if facts.total == nil, !job.resource.isGrowing, case .span(_, nil) = wanted {
            if !isProven, !isAsked, !isOpaque, !isPlaylist, mayAskForEnd(facts) {
                wanted = .span(start: facts.offset, end: nil)
                return [.count(.originResumes)] + becomeDue(.end)
            }
            actions.append(.markEnd)
            // The player gets what there was; but a body that may be truncated is not stored,
            // unless HTTP's rules apply: under them a connection closed in order ends the body (RFC
            // 9112 section 8).
            if !isProven, !isPlaylist, !job.followsHTTP { actions.append(.discardObject) }
        }
        enter(.ended)
        return actions + [.complete(.atEnd)] + deliverComplete(now: ending.now)
    }

    /// True if a response without a length is passed on and not stored, since nothing will tell
    /// whether it was cut.
    ///
    /// - Parameters:
    ///   - provesItsEnd: whether its end is recognisable.
    ///   - hasStrongValidator: whether what follows can be recognised as the rest of the body.
    ///   - status: the origin's status.
    /// - Returns: false for a playlist; the first bytes may still tell that it is one.
    func losesBody(provesItsEnd: Bool, hasStrongValidator: Bool, status: HTTPStatus) -> Bool {
        let mayAsk = hasStrongValidator && !ranges.contains(.ignored) && !ignoresRange(status)
        return !provesItsEnd && !mayAsk && !isPlaylist && !job.followsHTTP
            && !job.resource.isGrowing
    }

    /// True if the origin can be asked whether the body continues after its last byte; one that
    /// ignores ranges would send all of it again.
    private func mayAskForEnd(_ facts: FillFacts) -> Bool {
        facts.offset > 0 && !ranges.contains(.ignored)
            && (!job.resource.decodesContent || wasObjectGiven) && facts.hasStrongValidator
    }

    /// Requests all of a text of which only a part was received: only a complete text can be parsed
    /// and rewritten.
    ///
    /// - Returns: nil if the text is complete, or the body is not a text.
    private mutating func asksForWhole(_ filling: Filling, _ fill: FillFacts) -> [Action]? {
        guard isPlaylist || job.resource.role == .json, job.resource.live.growth == nil else {
            return nil
        }
        var isPart = fill.total.map { fill.offset < $0 } ?? false
        var isBounded = false
        if case .span(_, .some) = wanted { isBounded = true }
        if isBounded, fill.total == nil { isPart = true }
        let hasAskedForPart = filling.attempt.askedRange != nil
        guard isPart, !wasObjectGiven, isBounded || hasAskedForPart else { return nil }
        // Only the beginning was requested, to learn the type.
        if hasAskedForPart { return resume(.afresh, after: .zero) }
        let failure = ProxyFailure(
            .origin, .badGateway,
            "\(job.subject): the origin was asked for the whole and sent a part of it (206)",
            originStatus: .partialContent, allowsStale: true)
        var actions: [Action] = []
        if !budget.mayAsk { _ = borrows(&actions) }
        guard budget.with({ $0.fail() }) <= 1, job.mayRepeat, budget.mayAsk else {
            return actions + giveUp(failure, cause: FillEnd.refused(failure))
        }
        return actions + [.count(.originFailures)] + resume(.afresh, after: .milliseconds(100))
    }

    /// Handles a body whose wanted bytes have all arrived, however the transfer ends.
    mutating func wasWhole(now: Monotonic) -> [Action] {
        guard !hasEnded, fill != nil else { return [] }
        let isKnown = !isSniffing
        enter(.ended)
        return [.complete(.atLength(isKnown: isKnown))] + deliverComplete(now: now)
    }
}
