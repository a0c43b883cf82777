// The effect of a response: an object is filled, renewed or found unchanged.
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Retention
import Routing
import Store
import Upstream
import URISyntax

extension Flight {
    // MARK: Beginnings

    /// Begins or continues to fill an object with the current response.
    func begin(_ placement: Placement) {
        guard let head = response else { return }
        let start = placement.start
        let form = form
        var stored = form.stored(head, placement.layout)
        let onlyHere = stored.removePrivateFields()
        let former = object
        stored.wasLive = wasLive(former)
        if hasFill, let former, !table.isOfOneNetwork(former, stored) {
            let reason = "the rest of the body came from another kind of host, public or private"
            return perform(machine.refuseOrigin(reason))
        }
        if resource.live.growth == nil, isMerged, !fillsFromShared {
            services.keys.watch(resource, stored, total: placement.total, former: former)
        }
        guard let destination = destination(of: stored, head.status, placement) else { return }
        if placement.isProvenRest, let former, machine.omitted.contains(.rangeCondition) {
            table.mixedTags[former.generation] = true
        }
        noteStored(former)
        let mustSniff = form.isSniffed(stored, from: start) && !holdsMedia
        let writerBefore = body.takeWriter()
        guard enter(destination, stored, head.status, placement, sniffs: mustSniff) else { return }
        guard let object else { return }
        leavesName = object.former != nil
        let written = object === former ? nil : body.forgetWritten(with: object)
        body.begin(
            FillWriter(object, from: written ?? start, to: placement.last),
            ExpectedBody(
                end: placement.last ?? object.total, receivedEnd: placement.receivedEnd,
                ahead: compared == nil ? .unchecked : .checked, isAwaited: !machine.isAhead))
        if machine.extent == .endless {
            goOnEndless(head)
        } else {
            watchForEnd(head, placement)
        }
        if outdated != nil {
            outdated?.writer = writerBefore
        } else {
            // Ended only now, so that readers woken by it find the fill that continues.
            writerBefore?.end(failure: former === object ? nil : FillEnd.representationChanged)
        }
        if outcome == nil || former !== object {
            outcome = FetchOutcome(
                isCollapsed: false, status: head.status,
                notStored: destination.reasonNotToStore(object)
                    ?? reasonToLose(object, stored, placement, head),
                onlyHere: onlyHere, isProvenRest: placement.isProvenRest,
                bringsCookies: cookies.areNew)
        }
        perform(
            machine.began(
                FlightMachine.Beginning(
                    placement: placement, status: head.status,
                    // An object without bytes may be left from a kill before its first bytes told
                    // its type.
                    goesOn: former === object && object.presentBytes > 0,
                    sniffs: mustSniff, isStorable: object.isStorable, unkept: unkept,
                    takesRanges: head.status == .partialContent
                        || ResponseForm.acceptsRanges(head.fields),
                    provesItsEnd: head.provesItsEnd), now: table.loop.now))
    }

    /// Returns why an object will be discarded at the end of its body; nil if it may be kept.
    private func reasonToLose(
        _ object: StoredObject, _ stored: StoredHead, _ placement: Placement, _ head: TransferHead
    ) -> Storability.NoStoreReason? {
        guard object.total == nil, placement.end == nil,
            machine.losesBody(
                provesItsEnd: head.provesItsEnd,
                hasStrongValidator: stored.strongValidator != nil, status: head.status)
        else { return nil }
        return .noLength
    }

    /// The object that a response fills.
    private struct Destination {
        /// The object with the same version; nil if one is created.
        let fitting: StoredObject?
        /// A body that the response may belong to, without proof.
        let rival: StoredObject?
        /// Why the response must not be stored; nil if it may.
        let noStore: Storability.NoStoreReason?
        /// True if what is created leaves the name to what is stored.
        let leavesPlace: Bool

        /// True if the response might be of the same version as bytes that it is kept apart from.
        var isUnproven: Bool { leavesPlace || rival != nil }

        /// Returns why the object that is filled is not stored; nil if it is.
        func reasonNotToStore(_ object: StoredObject) -> Storability.NoStoreReason? {
            noStore ?? (object.isStorable ? nil : isUnproven ? .unproven : .noRoom)
        }
    }

    /// Decides which object a response fills.
    ///
    /// - Returns: nil if the flight waits for others, or refuses the response.
    private func destination(
        of stored: StoredHead, _ status: HTTPStatus, _ placement: Placement
    ) -> Destination? {
        let noStore = noStoreReason(stored, length: placement.total)
        // Under HTTP's rules the fields of a response that must not be stored are its client's
        // alone, even if a stored response has the same validator.
        let mayJoin = noStore == nil || !resource.followsHTTP
        let fitting = table.object(for: self, matching: stored, placement, mayJoin: mayJoin)
        let rivals = FlightRivals(of: self)
        let rival =
            fitting == nil && !machine.isPlaylist
            ? rivals.first(matching: stored, total: placement.total) : nil
        if let rival, rivals.isWorthAsking(for: rival) {
            object = rival
            perform(machine.waitForOthers())
            return nil
        }
        if fitting == nil, rival == nil, rivals.mustBeLeft(to: stored, placement) {
            perform(machine.refuseUnproven())
            return nil
        }
        let endsUse = noStore.map { Storability.endsUseOfStored(status, $0) } ?? false
        return Destination(
            fitting: fitting, rival: rival, noStore: noStore,
            leavesPlace: fitting == nil && !endsUse
                && (rivals.leavesPlace(stored, placement) || rivals.mustBeKept(beside: placement)))
    }

    /// Notes what is stored of it, which decides whether a page may be its new version.
    func noteStored(_ known: StoredObject?) {
        guard let known, known.presentBytes > 0, let facts = ObjectFacts.of(known) else { return }
        if !facts.head.isPlaylist, !facts.isDocument { machine.replacesFile = true }
    }

    /// True if the held bytes of a short body show that it is media of a playlist: its object is
    /// then created complete, in one write.
    private var holdsMedia: Bool {
        resource.role?.isMediaOfPlaylist == true
            && PageDetector.inspect(Array(body.heldBeginning)) == .other
    }

    /// Makes the destination of a response the object of this flight.
    ///
    /// - Returns: false if it cannot be created.
    private func enter(
        _ destination: Destination, _ stored: StoredHead, _ status: HTTPStatus,
        _ placement: Placement, sniffs: Bool
    ) -> Bool {
        let total = placement.total
        settleOutdated(isReplaced: false)
        if let fitting = destination.fitting {
            object = fitting
            if let total { _ = fitting.learnTotal(total) }
            return true
        }
        let former = object
        let noStore = destination.noStore
        // Which of the two versions is newer is unknown; the one being received is kept.
        if let former, !machine.isConditional, !destination.leavesPlace,
            former !== destination.rival, replaces(status, noStore)
        {
            if sniffs, canBeJoined(former) {
                outdated = (former, nil)
            } else {
                former.discard()
            }
        }
        let isStorable = noStore == nil && machine.mayKeep && !destination.isUnproven
        if let former, let noStore { forget(former, since: status, noStore) }
        let isWhole = placement.start == 0 && placement.end == nil
        guard
            create(
                stored, total: total, isWhole: isWhole, isStorable: isStorable, sniffs: sniffs)
        else { return false }
        // The former object may itself be one that has left the name, and will not be whole. Where
        // it is about to be discarded, the name is left to none but that one.
        if let former, let named = former.former ?? (outdated == nil ? former : nil) {
            leaveName(to: named)
        }
        // The store has no room, or pauses after a failure; ahead of players it is not passed on.
        if isStorable, object?.isStorable == false, !machine.isAhead {
            services.counters.add(.notStored)
        }
        return true
    }

    /// True if a later response can be recognised as the rest of an object.
    private func canBeJoined(_ known: StoredObject) -> Bool {
        let validator = ObjectFacts.of(known)?.head.strongValidator
        return machine.job.canBeJoined(
            FillFacts(offset: 0, total: known.total, hasStrongValidator: validator != nil))
    }

    /// Leaves the name of the new object to one that is stored whole, until the new one is whole
    /// too: the network may drop before that (RFC 9111 section 4.2.4).
    ///
    /// Not for a long body, except in a refresh, which fetches it whole: readers may fetch it in
    /// pieces, between which nothing would hold the new object, and both versions would crowd out
    /// others. What belongs to an earlier epoch of its name is of no use.
    private func leaveName(to former: StoredObject) {
        guard let object, object.isStorable, !machine.isPlaylist, resource.live.growth == nil,
            let total = object.total, total > 0,
            terms.refreshes || total <= min(services.settings.readAhead, services.store.budget / 8),
            former.key == object.key, former.isCurrent, former.isComplete,
            let facts = ObjectFacts.of(former),
            !services.live.isOfFormerEpoch(facts, resource)
        else { return }
        object.leaveName(to: former)
    }

    /// True if a response takes the place of what is stored of another version: an error under
    /// HTTP's rules is its client's alone (RFC 9111 section 4.3.3), while a success shows that
    /// there is another version, whether or not it is stored.
    private func replaces(_ status: HTTPStatus, _ reason: Storability.NoStoreReason?) -> Bool {
        guard machine.job.followsHTTP, !(200..<300).contains(status.rawValue), let reason else {
            return true
        }
        return Storability.endsUseOfStored(status, reason)
    }

    /// True if the resource was a live playlist before this response, or one that names such.
    func wasLive(_ former: StoredObject?) -> Bool {
        let head = former.flatMap { ObjectFacts.of($0) }?.head
        return head?.wasLive == true
            || (machine.isPlaylist || head?.isPlaylist == true)
                && services.live.wasLive(resource.listKey)
    }

    /// Removes the revalidated object if the response that is not stored ends its use.
    private func forget(
        _ former: StoredObject, since status: HTTPStatus, _ reason: Storability.NoStoreReason
    ) {
        // For playback, what is stored is kept although a token expired or a CDN removed it.
        guard machine.isConditional, machine.job.followsHTTP, resource.policy == .rfc,
            Storability.endsUseOfStored(status, reason)
        else { return }
        services.store.remove(former)
    }

    /// The failure of an ahead fetch if its response is not stored; nil for any other.
    private var unkept: ProxyFailure? {
        guard machine.isAhead, let object else { return nil }
        // Without a reason, it was removed before the response came, or there is no room.
        return .unkept(object, outcome?.notStored ?? .noRoom, machine.job.subject)
    }

    /// Discards a body that turned out to be empty, and may not be kept for that.
    func discardUnkeptEmpty(_ object: StoredObject) {
        guard let head = ObjectFacts.of(object)?.head, noStoreReason(head, length: 0) == .empty
        else { return }
        outcome?.notStored = .empty
        object.discard()
    }

    private func noStoreReason(
        _ head: StoredHead, length: Int64? = nil
    ) -> Storability.NoStoreReason? {
        guard resource.mayStore else { return .notKept }
        if machine.isOutdated { return .method }
        let isMountedList =
            !resource.followsHTTP && resource.isMounted && services.settings.mountKind.isShared
        var question = Storability.Question(
            policy: resource.policy, requestFields: resource.forwardedFields, status: head.status,
            responseFields: head.fields,
            kind: head.kind ?? (services.isShared || isMountedList ? .shared : .private),
            length: terms.keepsEmpty ? nil : length)
        question.hasOneForm = isMountedList
        if case .streamOnly(let reason) = Storability.decide(question) {
            services.keys.note(reason, head.status, resource)
            return reason
        }
        return nil
    }

    /// The form in which the current response is stored.
    var form: ResponseForm {
        ResponseForm(
            resource: resource, isPlaylist: machine.isPlaylist,
            source: fillsFromShared ? .sharedStore : isOfParent ? .parent : .origin,
            requestTime: requestTime,
            responseTime: sharing?.race.head?.responseTime ?? table.loop.wallNow,
            isHeld: longestHold != nil,
            hasViewerCookie: cookies.mayIdentifyViewer,
            user: services.keys.credentials(of: resource))
    }

    /// When the current response was requested and received.
    private var presentTimes: SteadyTimes? {
        // The times of an object of the second level are of another node's clock.
        if fillsFromShared { return nil }
        return SteadyTimes(requested: requestedAt, received: table.loop.now)
    }

    // MARK: Objects

    func create(
        _ head: StoredHead, total: Int64?, isWhole: Bool, isStorable: Bool, sniffs: Bool
    ) -> Bool {
        let selected =
            resource.followsHTTP
            ? resource.cacheKey(selectedBy: SelectingFields(head.fields)) : resource.cacheKey
        let isOwn = selected == resource.cacheKey
        let text = isOwn ? resource.keyText : selected.text
        var description = ObjectDescription(
            key: isOwn ? resource.key : ObjectKey(sha256Of: text), url: text,
            role: (resource.role ?? .media).letter,
            head: head.encoded, total: total, created: head.responseTime,
            isStorable: isStorable, expectsWholeBody: isWhole,
            // A page of a mount is not a title; a playlist there is, and so is a file that is
            // played.
            title: resource.isMounted && !head.isPlaylist ? 0 : resource.session.id.number,
            kind: retentionKind(head), isRead: !machine.isAhead)
        if isWhole, isStorable, !sniffs { description.body = body.held(total) }
        do throws(SystemError) {
            let made = try services.store.create(description)
            // Readers need the head immediately and should not decode it again.
            _ = made.attach(
                ObjectFacts(head: head, generation: made.generation, times: presentTimes))
            object = made
            return true
        } catch {
            fail(
                ProxyFailure(
                    .us, .serviceUnavailable,
                    "the daemon has no room to pass the response on: \(error)"),
                cause: error)
            return false
        }
    }

    /// Returns the retention kind; an entry that turns out not to be a playlist is a media file.
    private func retentionKind(_ head: StoredHead) -> RetentionKind {
        if head.isPlaylist { return .structure }
        let kind = RetentionKind(of: resource.role ?? (resource.isMounted ? nil : .media))
        // Segments kept for time shift are worth as much as a film; they are removed when they
        // leave the window.
        guard kind == .media, !resource.session.isShifted,
            services.live.isInWindow(resource.nameKey)
        else { return kind }
        return .live
    }

    /// Publishes a media object, so that lookups find it; one that has left its name to a former
    /// object once it is whole.
    ///
    /// Playlists wait for their end: half a list is useless.
    func publishIfMedia() {
        guard let object, object.isStorable, !object.isCurrent, !machine.isPlaylist,
            !machine.isSniffing, machine.extent == .bounded,
            !object.isDiscarded
        else { return }
        publish(object)
    }

    /// Publishes the object under its key.
    ///
    /// If the disk refuses, readers continue with the open descriptor.
    func publish(_ object: StoredObject) {
        do throws(SystemError) {
            try services.store.publish(object)
        } catch {
            services.counters.add(.notStored)
        }
        noteVariant(object)
    }

    /// Adds a published variant to the index under the URL's primary key.
    ///
    /// One that was removed while it was received is not published again at its end.
    func noteVariant(_ object: StoredObject) {
        guard resource.followsHTTP, object.isCurrent,
            object.url != resource.cacheKey.primary.text,
            let head = ObjectFacts.of(object)?.head
        else { return }
        services.store.note(object, head, of: resource, by: SelectingFields(head.fields))
    }

    // MARK: Responses without a body

    /// Updates the revalidated object from a 304, or the variant that its tag selects (RFC 9111
    /// section 4.3.4).
    func renew() {
        guard let head = response else { return }
        if resource.followsHTTP, object == nil {
            let tag = head.fields.first(.etag)
            let named = variants.first { $0.tag == tag }
            let only = tag == nil && variants.count == 1 ? variants[0] : nil
            object = (named ?? only)?.object
        }
        guard let object, var stored = ObjectFacts.of(object)?.head,
            stored.isValidated(by: head.fields)
        else { return askUnconditionally() }
        let varied = stored.fields.combined(.vary)
        stored.update(from: head.fields, requestTime: requestTime, responseTime: table.loop.wallNow)
        _ = stored.removePrivateFields()
        stored.wasLive = wasLive(object)
        object.replaceHead(stored.encoded)
        _ = object.attach(
            ObjectFacts(head: stored, generation: object.generation, times: presentTimes))
        // The origin may say now that the response is private, that it must not be stored, or that
        // it is for other requests: it is sent to those who wait for it, and to nobody after them.
        let isForOthers =
            stored.fields.combined(.vary) != varied && !resource.selects(stored, in: object)
        if resource.followsHTTP, isForOthers || noStoreReason(stored) != nil {
            services.store.remove(object)
        }
        perform(machine.end(with: .renewed))
    }

    /// Asks once more, without conditions, where a 304 validates nothing that is stored: it must
    /// update none of it (RFC 9111 section 4.3.4).
    ///
    /// Such origins are common: nginx marks the tag of a compressed response as weak, and that of
    /// its 304 not.
    private func askUnconditionally() {
        guard let actions = machine.again(without: .conditions, now: table.loop.now) else {
            return perform(
                machine.refuseOrigin("the origin sent a 304 for something that is not stored"))
        }
        perform(actions)
    }

    /// Handles the response to HEAD: renews the stored object if it is the same representation, and
    /// removes it if it is another one (RFC 9111 section 4.3.5).
    ///
    /// A response with neither a validator nor a length shows neither.
    func compareHead() {
        guard let head = response else { return }
        guard let object, let stored = ObjectFacts.of(object)?.head, head.status == .ok else {
            return perform(machine.end(with: .head))
        }
        var agreements: [Bool] = []
        for name: FieldName in [.etag, .lastModified] {
            guard let new = head.fields.first(name) else { continue }
            agreements.append(new == stored.fields.first(name))
        }
        if let length = head.contentLength, let total = object.total {
            agreements.append(length == total)
        }
        if agreements.contains(false) {
            services.store.remove(object)
        } else if !agreements.isEmpty {
            return renew()
        }
        perform(machine.end(with: .head))
    }

    /// Sets the length of a body once the origin responds that nothing follows the stored bytes.
    ///
    /// Discards a body whose length remains unknown, since every later reader would have to ask
    /// again; but not one that grows, whose list may name a range before the origin has it.
    func learnEnd(_ total: Int64?) {
        if let growth = resource.live.growth, growth.stage == .growing {
            return noteEnd(total, growth)
        }
        guard let object, object.total == nil, case .span(let start, _) = machine.wanted,
            object.spans.contiguousEnd(from: 0) == start, start > 0
        else { return }
        if let total, total == start {
            _ = object.learnTotal(total)
        } else if resource.live.growth == nil {
            object.discard()
        }
    }

    private func noteEnd(_ total: Int64?, _ growth: LiveReading.Container) {
        guard let object, case .span(let start, _) = machine.wanted else { return }
        object.note(
            ProbedEnd(
                refusing: start, total: total, listedEnd: growth.end, at: table.loop.now))
    }
}
