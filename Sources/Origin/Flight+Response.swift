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
        let (start, end, total) = (placement.start, placement.end, placement.total)
        var stored = storedHead(head, placement.layout)
        let onlyHere = stored.removePrivateFields()
        let former = object
        if resource.live.growth == nil, isMerged {
            table.keys.watch(resource, stored, total: total, former: former)
        }
        let reason = noStoreReason(stored)
        let mustSniff = sniffs(stored, from: start)
        let fitting = table.object(for: self, matching: stored, placement)
        let rival = fitting == nil && !machine.isPlaylist ? rival(stored, total: total) : nil
        if let rival, asksAgain(for: rival) {
            object = rival
            return perform(machine.waitForOthers())
        }
        let writerBefore = writer
        writer = nil
        if let fitting {
            object = fitting
            if let total { _ = fitting.learnTotal(total) }
        } else {
            // Which of the two versions is newer is unknown; the one being received is kept.
            if let former, !machine.job.revalidates, former !== rival { former.discard() }
            let isStorable = reason == nil && machine.mayKeep && rival == nil
            guard
                create(
                    stored, total: total, isWhole: start == 0 && end == nil,
                    isStorable: isStorable, sniffs: mustSniff)
            else { return }
        }
        guard let object else { return }
        expected = ExpectedBody(
            end: placement.last ?? object.total, receivedEnd: placement.receivedEnd,
            ahead: compared == nil ? .unchecked : .checked, isAwaited: !machine.isAhead)
        writer = FillWriter(object, from: takeWritten(former) ?? start, to: placement.last)
        // Ended only now, so that readers woken by it find the fill that continues.
        writerBefore?.end(failure: former === object ? nil : FillEnd.representationChanged)
        if outcome == nil || former !== object {
            outcome = FetchOutcome(
                isCollapsed: false, status: head.status,
                notStored: reason ?? (object.isStorable ? nil : .noRoom),
                onlyHere: onlyHere, isProvenRest: placement.isProvenRest)
        }
        perform(
            machine.began(
                FlightMachine.Beginning(
                    placement: placement, status: head.status, goesOn: former === object,
                    sniffs: mustSniff, isStorable: object.isStorable, unkept: unkept,
                    takesRanges: head.status == .partialContent
                        || Self.acceptsRanges(head.fields),
                    provesItsEnd: head.provesItsEnd), now: table.loop.now))
    }

    /// The failure of an ahead fetch whose response must not be stored; nil if there is merely no
    /// room.
    private var unkept: ProxyFailure? {
        guard machine.isAhead, let reason = outcome?.notStored, reason != .noRoom else {
            return nil
        }
        return ProxyFailure(
            .origin, .badGateway,
            "\(resource.url.redacted) may not be kept: \(reason.rawValue)")
    }

    /// True if the first bytes decide the type of a new object.
    private func sniffs(_ head: StoredHead, from start: Int64) -> Bool {
        start == 0 && (resource.role == nil || machine.isPlaylist) && !resource.isVerbatim
            && head.status == .ok && !isPlainlyMedia(head)
            && (resource.kind == nil || !head.fields.contains(.contentEncoding))
    }

    /// True if file name and type agree that a resource not named by a playlist is media.
    ///
    /// The player then gets the head when it arrives, not with the first bytes, which may come much
    /// later.
    private func isPlainlyMedia(_ head: StoredHead) -> Bool {
        guard !machine.isPlaylist, resource.isNamedAsMedia,
            let value = head.fields.valueBytes(.contentType)
        else { return false }
        let type = value.prefix { $0 != ASCII.semicolon && $0 != ASCII.space }
        return (Self.equals(type.prefix(6), Self.video) || Self.equals(type.prefix(6), Self.audio))
            && !Self.equals(type.suffix(7), Self.list)
    }

    private static let video = Array("video/".utf8)
    private static let audio = Array("audio/".utf8)
    private static let list = Array("mpegurl".utf8)

    /// Compares bytes with a lower-case text, ignoring case.
    private static func equals(_ bytes: ArraySlice<UInt8>, _ text: [UInt8]) -> Bool {
        ASCII.equalIgnoringCase(bytes.span, text.span)
    }

    /// True if an origin supports range requests (RFC 9110 section 14.3).
    private static func acceptsRanges(_ fields: Fields) -> Bool {
        // The usual spelling is compared directly; only others need list parsing.
        guard let value = fields.valueBytes(.acceptRanges) else { return false }
        return value.elementsEqual(bytesUnit) || fields.listMembers(.acceptRanges).contains("bytes")
    }

    private static let bytesUnit = Array("bytes".utf8)

    private func noStoreReason(_ head: StoredHead) -> Storability.NoStoreReason? {
        guard resource.mayStore else { return .noStore }
        if machine.isOutdated { return .method }
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

    /// Returns the head of a response in its stored form.
    func storedHead(
        _ head: TransferHead, _ layout: FlightMachine.Layout
    ) -> StoredHead {
        let isOpaque = layout == .opaque
        let now = table.loop.wallNow
        var fields = StoredHead.keptFields(of: head.fields, for: resource.kind)
        if resource.kind == nil, isOfParent,
            let said = head.fields.combined(.cacheStatus), said.utf8.count <= 1_024
        {
            fields.set(.cacheStatus, said)
        }
        if resource.kind != nil {
            // The range of a part does not apply to the whole object.
            if head.status == .partialContent, !isOpaque { fields.remove(.contentRange) }
            // A recipient that forwards a response without Date adds it (RFC 9110 section 6.6.1).
            if !fields.contains(.date) { fields.append(.date, HTTPDate.format(now.seconds)) }
        }
        return StoredHead(
            status: head.status == .partialContent && !isOpaque ? .ok : head.status,
            fields: fields,
            requestTime: requestTime, responseTime: now,
            finalURL: head.finalURL.withoutUserinfo.text, isPlaylist: machine.isPlaylist,
            kind: resource.kind)
    }

    /// When the current response was requested and received.
    private var presentTimes: SteadyTimes {
        SteadyTimes(requested: requestedAt, received: table.loop.now)
    }

    // MARK: Objects

    func create(
        _ head: StoredHead, total: Int64?, isWhole: Bool, isStorable: Bool, sniffs: Bool
    ) -> Bool {
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
            // A page of a mount is not a title; a playlist there is, and so is a file that is
            // played.
            title: resource.isMounted && !head.isPlaylist ? 0 : resource.session.id.number,
            kind: retentionKind(head), isRead: !machine.isAhead)
        if isWhole, isStorable, !sniffs { description.body = heldBody(total) }
        do throws(SystemError) {
            let made = try table.store.create(description)
            // Readers need the head immediately and should not decode it again.
            _ = made.attach(
                ObjectFacts(head: head, generation: made.generation, times: presentTimes))
            object = made
            return true
        } catch {
            fail(
                ProxyFailure(.us, .serviceUnavailable, "no room to pass the response on: \(error)"),
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
            table.playlistMemory.isLive(resource.session.id)
        else { return kind }
        return .live
    }

    /// Publishes a media object, so that lookups find it.
    ///
    /// Playlists wait for their end: half a list is useless.
    func publishIfMedia() {
        guard let object, object.isStorable, !object.isCurrent, !machine.isPlaylist,
            !machine.isSniffing,
            !object.isDiscarded
        else { return }
        publish(object)
    }

    /// Publishes the object under its key.
    ///
    /// If the disk refuses, readers continue with the open descriptor.
    func publish(_ object: StoredObject) {
        do throws(SystemError) {
            try table.store.publish(object)
        } catch {
            table.counters.add(.notStored)
        }
        noteVariant(object)
    }

    /// Adds a published variant to the index under the URL's primary key.
    func noteVariant(_ object: StoredObject) {
        guard resource.kind != nil, object.isStorable,
            object.url != resource.cacheKey.primary.text,
            let head = ObjectFacts.of(object)?.head
        else { return }
        table.store.note(object, head, of: resource, by: SelectingFields(head.fields))
    }

    // MARK: Responses without a body

    /// Updates the revalidated object from a 304, or the variant that its tag selects (RFC 9111
    /// section 4.3.4).
    func renew() {
        guard let head = response else { return }
        if resource.kind != nil, object == nil, !terms.tags.isEmpty {
            let tag = head.fields.first(.etag)
            let named = terms.tags.first { $0.tag == tag }
            let only = tag == nil && terms.tags.count == 1 ? terms.tags[0] : nil
            if let mark = (named ?? only)?.mark {
                object = table.store.lookup(ObjectKey(resource.cacheKey.selected(by: mark)))
            }
        }
        guard let object, var stored = ObjectFacts.of(object)?.head else {
            return perform(machine.refuseOrigin("a 304 for something not stored"))
        }
        stored.update(from: head.fields, requestTime: requestTime, responseTime: table.loop.wallNow)
        object.replaceHead(stored.encoded)
        _ = object.attach(
            ObjectFacts(head: stored, generation: object.generation, times: presentTimes))
        perform(machine.end(with: .renewed))
    }

    /// Handles the response to HEAD: renews the stored object if it is the same representation,
    /// otherwise removes it (RFC 9111 section 4.3.5).
    func compareHead() {
        guard let head = response else { return }
        guard let object, let stored = ObjectFacts.of(object)?.head, head.status == .ok else {
            return perform(machine.end(with: .head))
        }
        let length = head.contentLength
        let isSame =
            (length == nil || object.total == nil || length == object.total)
            && [.etag, .lastModified].allSatisfy { (name: FieldName) in
                let new = head.fields.first(name)
                return new == nil || new == stored.fields.first(name)
            }
        if isSame { return renew() }
        table.store.remove(object.key)
        perform(machine.end(with: .head))
    }

    /// Sets the length of a body once the origin responds that nothing follows the stored bytes.
    ///
    /// Discards a body whose length remains unknown, since every later reader would have to ask
    /// again.
    func learnEnd(_ total: Int64?) {
        guard let object, object.total == nil, case .span(let start, _) = machine.wanted,
            object.spans.contiguousEnd(from: 0) == start, start > 0
        else { return }
        if let total, total == start, knownHead?.strongValidator != nil {
            _ = object.learnTotal(total)
        } else {
            object.discard()
        }
    }
}
