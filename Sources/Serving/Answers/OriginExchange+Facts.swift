import CachePolicy
import HLS
import HTTP
import HTTPServer
import Logging
import Model
import Origin
import Playlists
import Posix
import Reactor
import Routing
import Store
import URISyntax

/// Lookup of the facts that a plan depends on.
extension OriginExchange {
    /// Looks up a fact.
    ///
    /// - Returns: false if it arrives later; the decision then continues by itself.
    func learn(_ fact: RequestPlan.Fact, for decision: inout Decision) -> Bool {
        if case .stored = fact {
            lookUp(for: &decision)
            return true
        }
        guard fact != .name else {
            learnName(for: &decision)
            return true
        }
        guard let object = decision.object, let stored = decision.stored else {
            responder.fail(
                ProxyFailure(
                    .us, .internalServerError,
                    "a fault in the daemon: it looked up \(fact.rawValue), but nothing is stored"))
            return false
        }
        switch fact {
        case .stored, .name: break
        case .entryText: return learnEntryText(object, stored, for: &decision)
        case .owner:
            decision.facts.belongsToAnotherViewer = belongsToAnotherViewer(object, stored)
            decision.facts.isOfOneClient = resource.isOfOneClient(stored, core.settings.mountKind)
        case .playlist: return learnPlaylist(object, stored, for: &decision)
        case .offlineForm: return learnOfflineForm(object, for: &decision)
        case .originConfirmation:
            if decision.facts.playlist?.isLive == true {
                learnOriginStates(object, decision)
            } else {
                learnOriginConfirmation(object, stored, decision)
            }
            return false
        case .reading:
            decision.facts.sinceReading = core.live.sinceReading(
                of: resource, decision.facts.circumstances)
        case .epoch:
            decision.facts.isOfFormerEpoch = core.live.isOfFormerEpoch(stored, resource)
            decision.facts.isNameGivenAway = core.live.isNameReused(resource)
        case .pin: decision.facts.isPinned = core.store.isPinned(object)
        case .stream: decision.facts.isLiveSession = core.isOfLiveStream(resource)
        case .bytes: decision.facts.holdsAsked = holdsAsked(object)
        case .sharing: return learnSharing(object, stored, for: &decision)
        }
        return true
    }

    private func lookUp(for decision: inout Decision) {
        guard !resource.followsHTTP else { return select(for: &decision) }
        let known = found(resource)
        // Most requests end here.
        if let (object, facts) = known, !lacksAsked(object, in: decision) {
            resource.settleLength(of: object)
            return decision.take(object, facts)
        }
        guard let (object, facts) = foundElsewhere(known, for: &decision) else {
            decision.facts.stored = .nothing
            return
        }
        resource.settleLength(of: object)
        decision.take(object, facts)
    }

    /// Finds what is stored under other keys, if nothing or too little is stored under the
    /// resource's own.
    private func foundElsewhere(
        _ known: (StoredObject, ObjectFacts)?, for decision: inout Decision
    ) -> (StoredObject, ObjectFacts)? {
        var known = known
        if known == nil { known = foundOwnCopy(for: &decision) }
        if known == nil { known = foundCommonCopy(for: &decision) }
        if let (object, _) = known, !lacksAsked(object, in: decision) { return known }
        return foundFormer(for: &decision) ?? known
    }

    private func found(_ resource: Resource) -> (StoredObject, ObjectFacts)? {
        core.store.lookup(resource.key).flatMap { object in
            ObjectFacts.of(object).map { (object, $0) }
        }
    }

    /// Finds the session's own copy of a playlist that is no longer stored for others.
    private func foundOwnCopy(for decision: inout Decision) -> (StoredObject, ObjectFacts)? {
        guard resource.mayHaveOwnCopy, let (object, facts) = found(resource.ownCopy),
            facts.head.isPlaylist
        else { return nil }
        resource = resource.ownCopy
        decision.facts.resource = resource
        return (object, facts)
    }

    /// True if an object lacks requested bytes, and nothing may be fetched or the origin is down:
    /// a request that failed midway leaves such an object before one under a former key.
    func lacksAsked(_ object: StoredObject, in decision: borrowing Decision) -> Bool {
        // By pattern: `==` of another module's enum is a call.
        if !progress.hasFailed, case .up = decision.facts.origin {
            guard case .offline = resource.policy else { return false }
        }
        return !object.isComplete && !holdsAsked(object)
    }

    /// Finds what is stored under a key that the URL had before its rules changed.
    func foundFormer(for decision: inout Decision) -> (StoredObject, ObjectFacts)? {
        let isUp = decision.facts.origin == .up && !progress.hasFailed
        let former = resource.underFormerKey(core.keys, core.live, core.store, isOriginUp: isUp) {
            $0.isComplete || holdsAsked($0)
        }
        guard let former, let known = found(former) else { return nil }
        resource = former
        decision.facts.resource = former
        return known
    }

    /// Finds the copy of an interstitial that all players share, if its origin must not be asked.
    private func foundCommonCopy(
        for decision: inout Decision
    ) -> (StoredObject, ObjectFacts)? {
        guard case .offline = resource.policy, let common = core.names.common(resource),
            let copy = found(common), !isKeptFromPage(common, copy.1)
        else { return nil }
        resource = common
        decision.facts.resource = common
        return copy
    }

    /// The copy of an interstitial that all players share, to serve if its origin fails.
    var commonCopy: StoredObject? {
        guard let common = core.names.common(resource), let (object, facts) = found(common),
            !facts.isPerViewer || !core.isShared, !isKeptFromPage(common, facts)
        else { return nil }
        return object
    }

    /// True if a page may not have the common copy.
    ///
    /// Its plan would be to fetch a copy of its own, for which the common one would be found again.
    private func isKeptFromPage(_ common: Resource, _ facts: ObjectFacts) -> Bool {
        common.isKeptFromPage(facts, core.keys, isOfForeignPage: isOfForeignPage)
    }

    /// Finds the variant that the request selects.
    private func select(for decision: inout Decision) {
        switch core.store.select(resource) {
        case .object(let object, let facts, let selected):
            resource = selected
            decision.take(object, facts)
        case .otherVariants(let index, let selected):
            resource = selected
            decision.variants = index
            decision.facts.stored = .otherVariants
        case .nothing: decision.facts.stored = .nothing
        }
        decision.facts.resource = resource
    }

    private func learnName(for decision: inout Decision) {
        decision.successor = core.successor(of: resource)
        decision.facts.name = core.name(of: resource, movedTo: decision.successor)
    }

    private func learnEntryText(
        _ object: StoredObject, _ stored: ObjectFacts, for decision: inout Decision
    ) -> Bool {
        if resource.mustBeJudged(object, stored) {
            let next = decision
            core.texts.make(
                .judgement, of: object, for: exchange,
                { [resource] in resource.learnText(object, stored) },
                orElse: { responder.fail(.textsWait) },
                { [self] isRead in
                    var next = next
                    if isRead || passesOver(object, unreadable: &next) { decide(next) }
                })
            return false
        }
        guard let entry = resource.entryText(object, stored) else {
            return passesOver(object, unreadable: &decision)
        }
        decision.facts.entry = entry
        if case .text = entry {
            // From here on it is treated as JSON named by a playlist.
            resource = resource.changing { $0.role = .json }
            decision.facts.resource = resource
        }
        return true
    }

    private func learnPlaylist(
        _ object: StoredObject, _ stored: ObjectFacts, for decision: inout Decision
    ) -> Bool {
        let next = decision
        texts.prepare(servable(object, stored)) { [self] outcome in
            var next = next
            switch outcome {
            case .success(let playlist):
                next.playlist = playlist
                next.facts.take(
                    playlist, mayLack: core.mayLack(stored, playlist.facts, now: exchange.loop.now))
                next.facts.circumstances = circumstances
            case .failure(let failure):
                switch UnmadeText(
                    failure, next.facts.reply, hasFetchedAgain: progress.hasDiscardedText)
                {
                case .refuse: return responder.fail(failure)
                case .fetchAgain: return fetchAgain(unreadable: object)
                case .failOrigin(let removes):
                    if removes { core.store.remove(object) }
                    return decide(decisionAfter(failure))
                case .planUnreadable:
                    next.facts.text = .unreadable
                    if next.failure == nil { next.failure = failure }
                }
            }
            decide(next)
        }
        return false
    }

    /// Returns a stored text as this request may be served it.
    func servable(_ object: StoredObject, _ facts: ObjectFacts) -> ServableText {
        ServableText(
            resource: resource, object: object, facts: facts, cut: progress.offline?.cut,
            isForPage: isForPage)
    }

    private func belongsToAnotherViewer(_ object: StoredObject, _ facts: ObjectFacts) -> Bool {
        resource.belongsToAnotherViewer(
            object, facts, of: core.sessions, keys: core.keys, mountKind: core.settings.mountKind,
            isOfForeignPage: isOfForeignPage, isKnown: texts.isKnown(facts, to: resource),
            mayGetOwnCopy: !progress.takesShared && canHaveOwnCopy)
    }

    /// True if a copy for this session is stored, or the origin may send one.
    private var canHaveOwnCopy: Bool {
        originState == .up || core.store.peek(resource.ownCopy.key) != nil
    }

    /// Continues the decision as if an object that the disk cannot read were not stored.
    ///
    /// - Returns: false if the decision continues by itself.
    private func passesOver(_ object: StoredObject, unreadable decision: inout Decision) -> Bool {
        if decision.facts.reply != nil, !progress.hasDiscardedText {
            fetchAgain(unreadable: object)
            return false
        }
        guard decision.facts.reply == nil, resource.policy != .offline else {
            decision.facts.entry = .other
            return true
        }
        decision.object = nil
        decision.facts.stored = .nothing
        return true
    }

    /// Discards a text that the origin just sent or confirmed and the disk cannot read, and starts
    /// over.
    ///
    /// Only once: the disk may be unable to read the next one too.
    private func fetchAgain(unreadable object: StoredObject) {
        progress.hasDiscardedText = true
        core.store.remove(object)
        core.log.warning(
            "a stored text cannot be read, and is fetched again",
            metadata: ["url": "\(resource.url.redacted)"])
        start()
    }

    /// Finds out whether the response to another request may serve this one.
    ///
    /// If it is another variant, the request starts over: the selecting fields are known now, so
    /// that requests for one variant share a fetch.
    private func learnSharing(
        _ object: StoredObject, _ stored: ObjectFacts, for decision: inout Decision
    ) -> Bool {
        guard let outcome = decision.outcome else {
            decision.facts.mayShare = false
            return true
        }
        // Once only: an origin may name other fields in each response.
        if !progress.hasMetOtherVariant, isOtherVariant(object, stored, outcome) {
            progress.hasMetOtherVariant = true
            resource = asked
            start()
            // The fetch that brought the other variant gets no reader for this request.
            if !object.isComplete { core.flights.readerLeft(object) }
            return false
        }
        let mayShare = mayShare(object, stored, outcome)
        decision.facts.mayShare = mayShare
        if mayShare { adopt(object, outcome, for: &decision) }
        return true
    }

    /// Adopts the key that a response under HTTP's rules was stored under.
    func adopt(_ object: StoredObject, _ outcome: FetchOutcome, for decision: inout Decision) {
        if outcome.notStored == nil { resource = resource.stored(as: object) }
        decision.facts.resource = resource
        onlyHere = outcome.onlyHere
    }
}

extension RequestFacts {
    /// Takes the facts of a text in its served form.
    mutating func take(_ playlist: PreparedPlaylist, mayLack: Bool) {
        text = .readable(playlist.facts, isShifted: playlist.form.timeShift != 0)
        self.mayLack = mayLack
    }
}

extension OfflineForm {
    /// The text to serve, if it differs from the stored one.
    fileprivate var cut: OfflineText? {
        if case .cut(let text) = self { text } else { nil }
    }

    var outcome: RequestFacts.OfflineOutcome {
        switch self {
        case .whole: .whole
        case .cut: .cut
        case .nothing: .nothing
        }
    }
}

extension ProxyCore {
    /// Returns the input of decisions besides the stored response.
    func circumstances(of exchange: Exchange) -> RequestCircumstances {
        RequestCircumstances(
            fields: exchange.request.fields, now: exchange.loop.wallNow,
            steadyNow: exchange.loop.now, isShared: isShared)
    }

    /// Returns what a resource's name means now.
    func name(of resource: Resource, movedTo successor: AbsoluteURL?) -> RequestFacts.Name {
        RequestFacts.Name(
            hasSuccessor: successor != nil,
            isSuccessorStored: isStoredList(resource, movedTo: successor),
            isNameReused: live.isNameReused(resource))
    }

    /// True if a playlist may lack something whose origin was not checked recently.
    func mayLack(_ stored: ObjectFacts, _ playlist: PlaylistFacts, now: Monotonic) -> Bool {
        guard !playlist.isLive else { return false }
        let losses = store.losses
        return !stored.isKeptWhole(losses: losses)
            && !stored.haveOriginsAnswered(now: now, losses: losses)
            && origins.sharedStore?.isUp != true
    }
}

extension LiveMemory {
    /// True if the requested content is no longer available: the origin has reused its name.
    func isNameReused(_ resource: Resource) -> Bool {
        !resource.followsHTTP && resource.role != .playlist
            && resource.epoch < epoch(of: resource.nameKey)
    }

    /// Returns the time since a live playlist or a delta update of it was last read; the longest
    /// time if that is unknown, as after the clock was set back.
    func sinceReading(of resource: Resource, _ circumstances: RequestCircumstances) -> Interval {
        let unknown = Interval(nanoseconds: .max)
        guard let known = list(resource.listKey) else { return unknown }
        let now = Moment(wall: circumstances.now, steady: circumstances.steadyNow)
        return now.elapsed(since: known.received) ?? unknown
    }
}
