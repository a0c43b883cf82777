import CachePolicy
import HLS
import HTTP
import Model
import Posix

/// The decision: the plan that follows from the facts.
extension RequestFacts {
    var plan: RequestPlan {
        guard let stored else { return planWithoutLookup }
        if failure != nil { return planAfterFailure(stored) }
        switch stored {
        case .nothing: return resource.followsHTTP ? ask(.nothingStored) : missing(.nothingStored)
        case .otherVariants: return ask(.otherVariants)
        case .response(let response):
            if let reply { return plan(for: response, from: reply) }
            return resource.followsHTTP ? planUnderRules(response) : plan(for: response)
        }
    }

    private var planWithoutLookup: RequestPlan {
        let isReload = !resource.followsHTTP && resource.live.directives != nil
        guard isReload, resource.policy != .offline else { return .learn(.stored) }
        guard let name else { return .learn(.name) }
        return name.hasSuccessor ? .followSuccessor : .awaitReload
    }

    // MARK: Playback

    private func plan(for response: Response) -> RequestPlan {
        if let plan = planOfCredentials(response) { return plan }
        if resource.role == nil, entry == nil { return .learn(.entryText) }
        switch use(of: response) {
        case .text: return plan(forText: response)
        case .unusable(let fault): return missing(.unusable(fault))
        case .media: return plan(forMedia: response)
        }
    }

    /// Returns the plan for a response that is not a text.
    ///
    /// A key that credentials have opened is for sessions that have them; others ask for their own
    /// while the origin answers, unless it has another key under the name by now.
    private func plan(forMedia response: Response) -> RequestPlan {
        if resource.role == .key, resource.policy != .offline, origin == .up {
            guard let belongsToAnotherViewer else { return .learn(.owner) }
            if belongsToAnotherViewer {
                guard isOfFormerEpoch != nil else { return .learn(.epoch) }
                return isNameGivenAway ? .refuse(.nameGivenAway) : .fetchOwnCopy
            }
        }
        return reuse(response)
    }

    /// Returns the plan for media that the credentials of another session have opened; nil if the
    /// request may have it.
    ///
    /// A page of another site asks for its own, so that the origin decides, and never gets that of
    /// others instead.
    private func planOfCredentials(_ response: Response) -> RequestPlan? {
        guard response.facts.isOpenedByCredentials, resource.role != .key else { return nil }
        guard let belongsToAnotherViewer else { return .learn(.owner) }
        guard belongsToAnotherViewer else { return nil }
        if failure != nil { return .refuse(.failure) }
        guard isOfFormerEpoch != nil else { return .learn(.epoch) }
        return isNameGivenAway ? .refuse(.nameGivenAway) : .fetchOwnCopy
    }

    private func use(of response: Response) -> StoredUse {
        resource.use(
            of: response.facts, isComplete: response.isComplete, total: response.total)
    }

    private func plan(forText response: Response) -> RequestPlan {
        guard response.isComplete else { return missing(.unusable(.halfText)) }
        if resource.policy != .offline || resource.isMounted {
            guard let belongsToAnotherViewer else { return .learn(.owner) }
            if isOfOneClient { return ask(.notShared) }
            if belongsToAnotherViewer, resource.policy != .offline { return .fetchOwnCopy }
        }
        if takesOfflineForm(response) { return planOffline(response) }
        if let plan = planOfForm { return plan }
        switch text {
        case nil: return .learn(.playlist)
        // It was readable when it was stored: the limits have changed, or facts of its parent list
        // were lost. A newer version replaces it, if there is one.
        case .unreadable?:
            return resource.policy == .offline ? .refuse(.unreadable) : missing(.unreadable)
        case .readable?: return reuse(response)
        }
    }

    /// True if a stored playlist must be reduced to what can be played, and was not examined yet.
    private func takesOfflineForm(_ response: Response) -> Bool {
        offline == nil && originConfirmation != .lacksNothing
            && (resource.policy == .offline || hasDown) && mayTakeOfflineForm(response)
    }

    private func mayTakeOfflineForm(_ response: Response) -> Bool {
        resource.mayTakeOfflineForm(response.facts, isWindow: isWindow)
    }

    /// True if the text is served as an extended window; nil if it was not read yet.
    private var isWindow: Bool? {
        if case .readable(_, let isShifted)? = text { isShifted } else { nil }
    }

    /// Returns the plan for a playlist while an origin is down or the policy forbids requests.
    ///
    /// A live list stays unchanged while it may be served stale: players continue to reload, and
    /// the origin may be back soon. After that it ends with what is stored, and its players do not
    /// ask again: the origins of what it lacks are checked first, as for a list that has ended.
    private func planOffline(_ response: Response) -> RequestPlan {
        if resource.policy == .offline { return .learn(.offlineForm) }
        guard let text else { return .learn(.playlist) }
        guard case .readable(let playlist, _) = text, playlist.isLive else {
            return .learn(.offlineForm)
        }
        guard origin == .down else { return planOfWhole(response) }
        if let plan = planOfStoredSuccessor { return plan }
        if let plan = planUnchanged(response, playlist) { return plan }
        return .learn(originConfirmation == nil ? .originConfirmation : .offlineForm)
    }

    /// Returns the plan for a live playlist that stays unchanged although its origin failed; nil if
    /// it is too old for that.
    ///
    /// Delta updates are not stored as lists, but show like these that the stream went on. A player
    /// that has more than the stored list gets the failure: with an end, an older list would end
    /// its playback for good.
    private func planUnchanged(_ response: Response, _ playlist: PlaylistFacts) -> RequestPlan? {
        if mayServeStale(response) { return stale(response) }
        if resource.isTextOfChild { return nil }
        guard let sinceReading else { return .learn(.reading) }
        let question = resource.question(response.facts, playlist, circumstances)
        guard sinceReading < playlist.unchangedBound || Freshness.mayServeStale(question) else {
            return nil
        }
        guard let failure else {
            return endsBeforeAsked ? planOfWhole(response) : stale(response)
        }
        if endsBeforeAsked { return .refuse(.failure) }
        // Players request the next list as soon as they have this one.
        return failure.isOfReload ? .serveLater : stale(response)
    }

    /// The plan for a playlist that needs no offline form.
    private func planOfWhole(_ response: Response) -> RequestPlan {
        var whole = self
        whole.failure = nil
        whole.offline = .whole
        return whole.reuse(response)
    }

    /// The plan for the offline form; nil if the playlist may stay unchanged, or its form was not
    /// looked up.
    private var planOfForm: RequestPlan? {
        switch (offline, text) {
        case (nil, _), (.whole?, _): nil
        case (.nothing?, _):
            .refuse(resource.policy == .offline ? .nothingKept : .nothingKeptOfSilentOrigin)
        case (.cut?, nil): .learn(.playlist)
        case (.cut?, .unreadable?): .refuse(.unreadable)
        case (.cut?, .readable?): .serve(.offline, ttl: nil)
        }
    }

    // MARK: Stored responses

    /// Returns the plan for a response that is usable for the resource.
    private func reuse(_ response: Response) -> RequestPlan {
        if text == nil, isOfFormerEpoch == nil, resource.policy != .offline {
            return .learn(.epoch)
        }
        if isNameGivenAway, !response.isComplete {
            guard let holdsAsked else { return .learn(.bytes) }
            if !holdsAsked { return .refuse(.nameGivenAway) }
        }
        if resource.role == .key, isLiveSession == nil { return .learn(.stream) }
        let freshness = resource.freshness(
            response.facts, playlist, circumstances, isOfFormerEpoch: isOfFormerEpoch ?? false,
            isNameGivenAway: isNameGivenAway, isLiveSession: isLiveSession ?? false,
            isPinned: isPinned ?? false)
        if case .stale(.ended) = freshness, isPinned == nil { return .learn(.pin) }
        let mayMove =
            switch freshness {
            case .fresh: false
            // What it names may be stored, unlike what its successor names; also if that is at
            // another origin. One that answers says itself whether the list is still at its URL.
            case .stale(.ended): !outlastsOrigin(response) && !(hasDown && offline == .whole)
            default: true
            }
        if mayMove, let plan = planOfStoredSuccessor { return plan }
        switch freshness {
        case .fresh(let ttl): return confirmingOrigins(.serve(.hit, ttl: ttl), response)
        case .staleWhileRevalidate(let ttl): return .serve(.staleWhileRevalidate, ttl: ttl)
        case .stale where resource.followsHTTP && directives.onlyIfCached:
            return .refuse(.onlyIfCached)
        case .stale(let reason):
            guard reason != .epoch, outlastsOrigin(response) else { return .revalidate(reason) }
            guard let isLacking = lacksAsked(response) else { return .learn(.bytes) }
            if isLacking { return .revalidate(reason) }
            return confirmingOrigins(stale(response), response)
        }
    }

    /// True if a part that is stored under HTTP's rules lacks requested bytes; nil if that was not
    /// looked up.
    ///
    /// Served stale, it would be a head followed by a body that breaks off.
    private func lacksAsked(_ response: Response) -> Bool? {
        guard resource.followsHTTP, !response.isComplete else { return false }
        return holdsAsked.map { !$0 }
    }

    /// True if a stale response is served without asking its origin.
    ///
    /// An origin that failed this request would keep the player waiting once more.
    private func outlastsOrigin(_ response: Response) -> Bool {
        (origin > .up || hasFailed) && mayServeStale(response)
    }

    /// The plan for a playlist that is stored at the URL that replaced its own; nil for others.
    ///
    /// The origin refuses the old URL each time, and what is stored of it only gets older.
    private var planOfStoredSuccessor: RequestPlan? {
        guard !resource.followsHTTP, resource.role == .playlist, !resource.isMounted else {
            return nil
        }
        guard let name else { return .learn(.name) }
        return name.isSuccessorStored ? .followSuccessor : nil
    }

    /// Returns the plan to serve a response although its origin could not be reached.
    private func stale(_ response: Response) -> RequestPlan {
        .serve(.staleOnError, ttl: remainingFreshness(of: response))
    }

    /// Returns the remaining freshness in seconds, negative once stale; nil without a limit.
    func remainingFreshness(of response: Response) -> Int64? {
        var question = resource.freshnessQuestion(response.facts, playlist, circumstances)
        if resource.role == .key, question.policy == .media, isLiveSession == true {
            question.policy = .rfc
        }
        return Freshness.remaining(question)
    }

    /// Returns how long the revalidation of a live playlist is waited for before the stored one is
    /// served.
    ///
    /// - Parameters:
    ///   - response: the stored one.
    ///   - isWatched: whether the player has requested the list before; asked of windows only.
    /// - Returns: nil for however long it takes.
    func reloadPatience(
        for response: Response, isWatched: @autoclosure () -> Bool
    ) -> Interval? {
        guard !resource.followsHTTP else { return nil }
        let isWatchedWindow = isWindow == true && isWatched()
        guard isWatchedWindow || mayServeStale(response) else { return nil }
        return Freshness.reloadPatience(
            resource.question(response.facts, playlist, circumstances), isWatched: isWatchedWindow)
    }

    func mayServeStale(_ response: Response) -> Bool {
        // A child asks past a former version, and would take it for the new one.
        let question = resource.question(response.facts, playlist, circumstances)
        return outlivesFailure(response) && !(resource.isVerbatim && question.isAskedPast)
    }

    /// True if a failure of the origin leaves a stored response in its place, also if it is no answer
    /// to this request.
    func outlivesFailure(_ response: Response) -> Bool {
        // The child has what was there before, and bounds for it that follow from the list.
        guard !endsBeforeAsked, !resource.isTextOfChild else { return false }
        return Freshness.mayServeStale(
            resource.question(response.facts, playlist, circumstances))
    }

    /// True if the stored list ends before the one that the player of a blocking reload has: the
    /// player requests what comes next, and may know more from delta updates, which are not stored
    /// as lists.
    ///
    /// An extended window has numbers of its own, and all that its players know.
    private var endsBeforeAsked: Bool {
        guard let wanted = resource.live.directives, let sequence = wanted.sequence,
            case .readable(let playlist, isShifted: false)? = text, playlist.isLive
        else { return false }
        return (playlist.nextSequence, playlist.nextParts) < (sequence, wanted.part ?? 0)
    }

    /// Returns a plan that serves without contacting the origin, or a check of origins first.
    ///
    /// A player that was given the whole list of a title cannot be given a shorter one later: if
    /// something may be missing, its origins are checked first. A live list was just fetched.
    private func confirmingOrigins(_ plan: RequestPlan, _ response: Response) -> RequestPlan {
        guard originConfirmation == nil, mayLack, let playlist, !playlist.isLive,
            resource.policy != .offline, mayTakeOfflineForm(response)
        else { return plan }
        return .learn(.originConfirmation)
    }

    // MARK: Resources not stored

    private func missing(_ reason: RequestPlan.FetchReason) -> RequestPlan {
        guard !resource.followsHTTP else { return ask(reason) }
        guard let name else { return .learn(.name) }
        if name.hasSuccessor { return .followSuccessor }
        if resource.policy == .offline { return .refuse(.notStored) }
        return name.isNameReused ? .refuse(.nameGivenAway) : .fetch(reason, missingPart)
    }

    // MARK: HTTP's rules

    private var directives: RequestDirectives { RequestDirectives(circumstances.fields) }

    /// Returns the plan under HTTP's rules, where the client's directives and conditions apply and
    /// the stored response may be a part (RFC 9111 sections 4 and 5.2.1).
    private func planUnderRules(_ response: Response) -> RequestPlan {
        let directives = directives
        // The operator's offline policy takes precedence over the client's directives.
        if resource.policy != .offline {
            if directives.noStore { return ask(.requestNoStore) }
            if hasConditionsOfOrigin { return ask(.clientConditions) }
        }
        let isPart = !response.isComplete
        // Only a whole playlist can be rewritten, and former versions stored parts.
        if isPart, resource.isPlaylist(by: response.facts.head) {
            return ask(.unusable(.halfText))
        }
        if isPart, directives.onlyIfCached || response.facts.head.strongValidator == nil {
            guard let holdsAsked else { return .learn(.bytes) }
            // A part without a strong validator is usable only as far as it extends.
            if !holdsAsked { return ask(.partWithoutValidator) }
        }
        return response.facts.head.isPlaylist ? plan(forText: response) : reuse(response)
    }

    /// True if the request has conditions that only an origin can evaluate (RFC 9111 section
    /// 4.3.2).
    private var hasConditionsOfOrigin: Bool {
        circumstances.fields.contains(.ifMatch) || circumstances.fields.contains(.ifUnmodifiedSince)
    }

    private func ask(_ reason: RequestPlan.FetchReason) -> RequestPlan {
        if directives.onlyIfCached { return .refuse(.onlyIfCached) }
        return resource.policy == .offline ? .refuse(.notStored) : .fetch(reason, missingPart)
    }

    // MARK: After a request to the origin

    /// Returns the plan after the origin has failed: a stored response may be served within its
    /// limits.
    private func planAfterFailure(_ stored: Stored) -> RequestPlan {
        let plan = planInItsPlace(stored)
        // The request waits only if nothing stored can be served instead.
        return plan == .refuse(.failure) && failure?.mayAwaitReturn == true ? .awaitReturn : plan
    }

    /// Returns the plan for what is served in the place of a response that could not be obtained.
    private func planInItsPlace(_ stored: Stored) -> RequestPlan {
        guard let failure else { return .refuse(.failure) }
        if failure.maySearch { return .findSuccessor }
        guard case .response(let response) = stored,
            failure.allowsStale || (failure.keepsMeaning && response.isComplete)
        else { return .refuse(.failure) }
        if let plan = planOfCredentials(response) { return plan }
        if resource.isMounted, response.facts.head.isPlaylist {
            guard belongsToAnotherViewer != nil else { return .learn(.owner) }
            if isOfOneClient { return .refuse(.failure) }
        }
        guard let isLacking = lacksAsked(response) else { return .learn(.bytes) }
        if isLacking { return .refuse(.failure) }
        if let plan = planOfForm { return plan }
        var isShifted = false
        if resource.isRewritten(response.facts) {
            guard response.isComplete else { return .refuse(.failure) }
            switch text {
            case nil: return .learn(.playlist)
            case .unreadable?: return .refuse(.failure)
            case .readable(_, let shifted)?: isShifted = shifted
            }
            // Players request the next list as soon as they have this one.
            if failure.isOfReload, isShifted || mayServeStale(response) { return .serveLater }
        }
        let takesOfflineForm = takesOfflineForm(response)
        if takesOfflineForm, origin == .down || originConfirmation == .asked {
            return planOffline(response)
        }
        // An extended window is worth watching, however long its origin is gone.
        if isShifted || mayServeStale(response) {
            return confirmingOrigins(stale(response), response)
        }
        if let plan = planOfSuspectedOrigin(response) { return plan }
        return takesOfflineForm ? planOffline(response) : .refuse(.failure)
    }

    /// Returns the plan for a live playlist that ends if its origin is down, which one refusal does
    /// not show; nil for others.
    ///
    /// Some players give up a channel at the first failure: they wait for the second refusal.
    private func planOfSuspectedOrigin(_ response: Response) -> RequestPlan? {
        guard origin == .suspected, originConfirmation == nil, offline == nil,
            let playlist, playlist.isLive, mayTakeOfflineForm(response)
        else { return nil }
        return planUnchanged(response, playlist) ?? .learn(.originConfirmation)
    }

    private func plan(for response: Response, from reply: Reply) -> RequestPlan {
        if !reply.isRevalidated {
            if let plan = planOfCredentials(response) { return plan }
            if reply.isCollapsed, resource.followsHTTP || resource.isMounted {
                guard let mayShare else { return .learn(.sharing) }
                if !mayShare { return ask(.notShared) }
            }
            if reply.isCollapsed, response.facts.head.isPlaylist || resource.role == .key {
                guard let belongsToAnotherViewer else { return .learn(.owner) }
                if isOfOneClient { return ask(.notShared) }
                if belongsToAnotherViewer { return .fetchOwnCopy }
            }
            if resource.role == nil, !resource.followsHTTP {
                guard let entry else { return .learn(.entryText) }
                if case .open = entry, range == .none, method == .get, !reply.hasAwaitedText {
                    return .fetchRest
                }
            }
        }
        let answer = RequestPlan.serve(reply.disposition, ttl: nil)
        guard resource.isRewritten(response.facts) else { return answer }
        switch text {
        case nil: return .learn(.playlist)
        case .unreadable?: return .refuse(.unreadable)
        case .readable?: return answer
        }
    }
}
