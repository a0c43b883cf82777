import HLS
import HTTP
import Model
import Posix
import Upstream
import URISyntax

/// What is known of the object and the fill when something is decided about them.
struct FillFacts: Equatable {
    /// Where the next byte goes.
    var offset: Int64
    /// The length of the body; nil while it is not known.
    var total: Int64?
    /// Whether the head of the object can be read.
    var hasHead = true
    var hasStrongValidator = false
}

extension FlightMachine {
    // MARK: Bytes

    /// What becomes of bytes of a body.
    enum Intake {
        /// They are of no use.
        case ignore
        /// They wait with the head of their response.
        case hold
        /// They are compared with stored ones.
        case compare
        case take
    }

    /// Asked for each piece of a body.
    @inline(__always) var intake: Intake {
        switch state {
        case .filling: .take
        case .holding: .hold
        case .comparing: .compare
        case .due, .asking, .refused, .backingOff, .waitingForOthers, .ended: .ignore
        }
    }

    /// Whether the first bytes have not told yet what the object is.
    var isSniffing: Bool {
        if case .filling(let filling) = state, case .open = filling.sniffing { return true }
        return false
    }

    /// What the first bytes have told.
    enum Sniffed: Equatable {
        case undecided
        /// A playlist came where none was expected.
        case newPlaylist
        case asExpected
        case media
        /// No playlist came where one was expected.
        case noPlaylist(what: String)
    }

    /// Looks at the first bytes.
    mutating func sniff(_ bytes: some Sequence<UInt8>, isAtEnd: Bool) -> Sniffed {
        guard case .filling(var filling) = state, case .open(var prefix) = filling.sniffing else {
            return .undecided
        }
        prefix.append(
            contentsOf: bytes.prefix(max(0, PlaylistDetector.prefixLength - prefix.count)))
        let found = PlaylistDetector.inspect(prefix)
        let isOpen =
            found == .undecided && !isAtEnd && prefix.count < PlaylistDetector.prefixLength
        filling.sniffing = isOpen ? .open(prefix: prefix) : .settled
        enter(.filling(filling))
        if isOpen { return .undecided }
        switch (found, isPlaylist) {
        case (.playlist, true): return .asExpected
        case (.playlist, false):
            isPlaylist = true
            return .newPlaylist
        case (.markup, true): return .noPlaylist(what: "an HTML or XML page")
        case (_, true): return .noPlaylist(what: "something else")
        case (_, false): return .media
        }
    }

    /// What follows from the first bytes.
    mutating func sniffed(_ sniffed: Sniffed, now: Monotonic) -> [Action] {
        switch sniffed {
        case .undecided, .asExpected, .newPlaylist: return []
        case .media: return [.publish] + deliver(now: now)
        case .noPlaylist(let what):
            return [.discardObject]
                + refuse(
                    ProxyFailure(
                        .origin, .badGateway,
                        "\(job.subject): expected a playlist, but the origin sent \(what)",
                        originStatus: .ok))
        }
    }

    /// Tells the budget what has come since it was told last.
    ///
    /// - Returns: false where more of it had come before than the budget allows; `outspent` follows.
    mutating func accounts(to end: Int64, now: Monotonic) -> Bool {
        guard case .filling(let filling) = state, end > filling.accountedEnd else { return true }
        let bytes = filling.accountedEnd..<end
        change { $0.accountedEnd = end }
        return budget.with { $0.receive(bytes, of: job.resource.key, now: now) }
    }

    /// More was received again than one player request may cost: somebody else who waits has to pay.
    mutating func outspent() -> [Action] {
        guard !hasEnded else { return [] }
        var actions: [Action] = []
        return borrows(&actions) ? actions : actions + failSpent()
    }

    /// Whether the transfer ends where it has come to stored bytes: at so many of them a new request
    /// for what comes behind them costs less than fetching them twice.
    ///
    /// An origin that ignores ranges would send them again in answer to that request.
    func endsAtStored(_ count: Int64, from offset: Int64, total: Int64) -> Bool {
        guard isFilling, waiters.isEmpty else { return false }
        if offset + count >= total { return true }
        return count >= job.limits.joinDistance && !ranges.contains(.ignored)
    }

    /// What is to be done about a body that is not kept.
    enum Loss {
        case known
        /// The loss is to be counted.
        case new
    }

    /// The object has no name, or has lost it.
    ///
    /// - Parameter isAnswered: whether the answer said that the object is not kept.
    /// - Returns: whether the loss is a new one.
    mutating func noteLoss(isAnswered: Bool) -> Loss {
        guard !isAnswered else { return .known }
        switch keeping {
        case .lost, .impossibleAndLost: return .known
        case .possible: keeping = .lost
        case .impossible: keeping = .impossibleAndLost
        }
        return .new
    }

    /// Storing the very first bytes failed.
    ///
    /// - Returns: whether the body may be passed on without being kept: nobody was told of the object,
    ///   and somebody waits for it.
    mutating func keepsNothing() -> Bool {
        guard !isAhead, !waiters.isEmpty else { return false }
        switch keeping {
        case .possible: keeping = .impossible
        case .lost: keeping = .impossibleAndLost
        case .impossible, .impossibleAndLost: return false
        }
        return true
    }

    /// Whether an object may still be stored as far as this flight goes.
    var mayKeep: Bool { keeping == .possible || keeping == .lost }

    // MARK: Flow

    /// Holds the origin back.
    ///
    /// - Returns: false where it may not be: somebody waits for the body, or it is held already.
    mutating func hold(at now: Monotonic) -> Bool {
        guard case .filling(let filling) = state, filling.flow == .open, waiters.isEmpty else {
            return false
        }
        change { $0.flow = .held(since: now) }
        return true
    }

    /// Goes on.
    ///
    /// - Returns: false where the origin is not held back.
    mutating func release() -> Bool {
        guard heldSince != nil else { return false }
        change { $0.flow = .open }
        return true
    }

    // MARK: The end of a body

    /// The end of where this transfer's bytes should go, as far as known; else 0.
    private func promisedEnd(_ fill: FillFacts) -> Int64 {
        if case .span(_, let end?) = wanted { return end }
        return fill.total ?? 0
    }

    /// The transfer has ended in order, and everything that came is in the file.
    ///
    /// - Parameters:
    ///   - fill: the fill; nil where no response began one.
    ///   - ending: how the flight may go on.
    /// - Returns: what is to be done.
    mutating func bodyEnded(_ fill: FillFacts?, _ ending: Ending) -> [Action] {
        guard !hasEnded else { return [] }
        guard let fill else { return refuseOrigin("no usable answer") }
        guard case .filling(let filling) = state else {
            // A response that was to go on with the body ended before it brought anything new.
            let error = UpstreamError(.truncated, host: job.resource.url.host)
            return broke(error, isDown: false, fill, ending)
        }
        if let actions = asksForWhole(filling, fill, ending) { return actions }
        if job.isDelivery, isPlaylist {
            change { $0.stage = .readingLists }
            return [.readLists]
        }
        return endBody(isProven: filling.provesItsEnd, isAsked: false, fill, ending)
    }

    /// A list that came before its time, and when to ask for it again.
    struct EarlyList: Equatable {
        let pause: Interval
        /// How long after the first request it is worth asking.
        let lastRepeat: Interval
    }

    /// The lists that the end of a blocking reload is decided by have been read.
    ///
    /// - Parameters:
    ///   - early: nil for a list that has what was asked for. An origin that does not know the
    ///     directives answers at once, and must not be asked in a loop.
    ///   - fill: the fill.
    ///   - ending: how the flight may go on.
    /// - Returns: what is to be done.
    mutating func listsRead(_ early: EarlyList?, _ fill: FillFacts, _ ending: Ending) -> [Action] {
        guard case .filling(let filling) = state, filling.stage == .readingLists else { return [] }
        if let early, ending.now - job.begunAt < early.lastRepeat {
            budget.with { $0.excuse(job.resource.key) }
            return [.count(.reloadsRepeated)] + resume(.afresh, after: early.pause)
        }
        return endBody(isProven: filling.provesItsEnd, isAsked: false, fill, ending)
    }

    /// The origin's answer to the question whether the body goes on: there is nothing more, or the
    /// question is not understood.
    mutating func endAnswered(isProven: Bool, _ fill: FillFacts?, now: Monotonic) -> [Action] {
        guard let fill else { return refuseOrigin("no usable answer") }
        let ending = Ending(isWanted: true, jitter: 0, now: now)
        return [.drop] + endBody(isProven: isProven, isAsked: true, fill, ending)
    }

    private mutating func endBody(
        isProven: Bool, isAsked: Bool, _ facts: FillFacts, _ ending: Ending
    ) -> [Action] {
        if facts.offset < promisedEnd(facts) {
            // Framed as whole, but shorter than it said elsewhere: broken like any other.
            let error = UpstreamError(.truncated, host: job.resource.url.host)
            return broke(error, isDown: false, facts, ending)
        }
        var actions: [Action] = []
        if facts.total == nil, !job.resource.isGrowing, case .span(_, nil) = wanted {
            if !isProven, !isAsked, !isOpaque, !isPlaylist, mayAskForEnd(facts) {
                wanted = .span(start: facts.offset, end: nil)
                return [.count(.originResumes)] + becomeDue(.end)
            }
            actions.append(.markEnd)
            // The player gets what there was; but what may have been cut is not kept, unless HTTP's
            // rules lead: they take a connection that ended in order for the end of the body (RFC
            // 9112 section 8).
            if !isProven, !isPlaylist, !job.followsHTTP { actions.append(.discardObject) }
        }
        enter(.ended)
        return actions + [.complete(.atEnd)] + deliverComplete(now: ending.now)
    }

    /// Whether the origin can be asked if the body goes on after its last byte.
    private func mayAskForEnd(_ facts: FillFacts) -> Bool {
        facts.offset > 0 && (!job.resource.decodesContent || isHandedOut)
            && facts.hasStrongValidator
    }

    /// Asks for all of a text of which a part has come: it can be read and rewritten whole only.
    ///
    /// - Returns: nil where the text is whole, or is none.
    private mutating func asksForWhole(
        _ filling: Filling, _ fill: FillFacts, _ ending: Ending
    ) -> [Action]? {
        guard isPlaylist || job.resource.role == .json, job.resource.live.growth == nil else {
            return nil
        }
        var isPart = fill.total.map { fill.offset < $0 } ?? false
        var isBounded = false
        if case .span(_, .some) = wanted { isBounded = true }
        if isBounded, fill.total == nil { isPart = true }
        let hasAskedForPart = filling.attempt.askedRange != nil
        guard isPart, !isHandedOut, isBounded || hasAskedForPart else { return nil }
        // The beginning was asked for, to learn what it is.
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

    /// Every byte that was wanted has come, however the transfer ends.
    mutating func wasWhole(now: Monotonic) -> [Action] {
        guard !hasEnded, fill != nil else { return [] }
        let isKnown = !isSniffing
        enter(.ended)
        return [.complete(.atLength(isKnown: isKnown))] + deliverComplete(now: now)
    }
}
