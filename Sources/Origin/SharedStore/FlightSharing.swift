// A flight that asks the second level before its origin, and both after the head start.
//
// `SharedRace` decides; the flight holds the transfer, the read and the timer, turns their reports
// into events of the race, and performs its actions.
import BucketClient
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import SharedStore
import Store
import Upstream
import URISyntax

/// The second level's part of one flight.
final class FlightSharing {
    let attempt: FlightMachine.Attempt
    var race: SharedRace
    var read: SharedRead?
    /// The timer of the race's present wait; nil without one.
    var timer: TimerID?

    init(_ attempt: FlightMachine.Attempt, _ race: SharedRace) {
        self.attempt = attempt
        self.race = race
    }
}

extension FlightTable {
    /// True if the second level may have what a request wants.
    func asksSharedLevel(for request: FetchRequest) -> Bool {
        guard let shared, shared.isUp, !request.revalidates, request.continued == nil,
            request.terms.isPlain
        else { return false }
        if case .suffix = request.wanted { return false }
        return mayShare(request.resource)
    }

    /// True for what other nodes may have: resources of films that do not depend on the viewer.
    ///
    /// - Parameters:
    ///   - resource: the resource.
    ///   - isPlaylist: whether it is a playlist; nil if that is not known yet.
    /// - Returns: false for all else.
    func mayShare(_ resource: Resource, isPlaylist: Bool? = nil) -> Bool {
        guard resource.mayBeShared(withKeys: shared?.settings.sharesKeys == true),
            !isPrivate(resource)
        else { return false }
        // At the live edge no other node has a segment sooner than the origin.
        return !resource.isOnAir(
            services.live, services.playlistMemory, isPlaylist: isPlaylist)
    }
}

extension FetchRequest.Terms {
    /// True for a GET without conditions that may share its response, and need not be the origin's
    /// present version: other nodes may have a former one.
    var isPlain: Bool {
        method == .get && conditions.isEmpty && tags.isEmpty && !hasDirectives && !isAlone
            && !refreshes
    }
}

extension Flight {
    // MARK: Beginning

    /// Asks the second level for what an attempt wants.
    ///
    /// - Returns: false if the origin is to be asked instead.
    func asksSharedLevel(_ attempt: FlightMachine.Attempt) -> Bool {
        guard let level = table.shared, !machine.omitted.contains(.sharedLevel),
            attempt.question == .content,
            level.isUp, !machine.job.revalidates, !machine.job.wantsRest, terms.isPlain,
            table.mayShare(resource),
            case .span(let start, let end) = attempt.wanted
        else { return false }
        machine.omit(.sharedLevel)
        let race = SharedRace(headStart: level.settings.headStart, refusal: refusalOfOrigin)
        refusalOfOrigin = nil
        let sharing = FlightSharing(attempt, race)
        let last = end.map { $0 + attempt.behind }
        let read = SharedRead(
            resource.key, from: start - attempt.before, to: last, lane: machine.lane, level: level,
            for: self)
        sharing.read = read
        self.sharing = sharing
        perform(race.begin(), of: sharing)
        read.begin()
        table.ahead.scheduleRoundEnd(table, of: self)
        return true
    }

    /// Ends the read; to be called when the flight no longer needs it.
    func dropSharing() {
        guard let sharing else { return }
        leave(sharing)
        if let read = sharing.read, !sharing.race.hasWon {
            services.counters.add(.sharedDuplicateBytes, read.received)
        }
        sharing.read?.cancel()
    }

    // MARK: The origin, asked at the same time

    /// Notes the head of the origin's response.
    ///
    /// - Returns: true if it is kept back, since it is a failure that the second level may spare.
    func keepsBack(_ head: TransferHead) -> Bool { tellRace { $0.originAnswered(head) } }

    /// Notes the end of the origin's transfer.
    ///
    /// - Returns: true if it is kept back.
    func keepsBack(_ result: TransferResult) -> Bool { tellRace { $0.originEnded(result) } }

    /// Notes that the origin is down.
    ///
    /// - Returns: true if the flight outlives that, since the second level may have what is wanted.
    func keepsBack(_ refusal: ProxyFailure) -> Bool { tellRace { $0.originRefused(refusal) } }

    /// Tells the race of an event of the origin; returns true if it is kept back.
    private func tellRace(_ event: (inout SharedRace) -> SharedRace.Reply) -> Bool {
        guard let sharing else { return false }
        let reply = event(&sharing.race)
        perform(reply.actions, of: sharing)
        return reply.isKeptBack
    }

    // MARK: Actions

    private func perform(_ actions: [SharedRace.Action], of sharing: FlightSharing) {
        for action in actions { perform(action, of: sharing) }
    }

    private func perform(_ action: SharedRace.Action, of sharing: FlightSharing) {
        switch action {
        case .wait(let time): wait(time, for: sharing)
        case .stopWaiting: stopWaiting(for: sharing)
        case .askOrigin(let isHedge):
            guard machine.attempt == sharing.attempt else { return }
            if isHedge { services.counters.add(.sharedHedges) }
            sendToOrigin(sharing.attempt)
        case .endOrigin: endOrigin()
        case .endRead:
            table.shared?.lost()
            dropSharing()
        case .giveUpRead: giveUpRead(of: sharing)
        case .finish:
            takeHeldHead()
            finish()
        case .resume: resume(sharing)
        case .leave: leave(sharing)
        case .handle(let failure): handle(failure)
        }
    }

    private func wait(_ time: Interval, for sharing: FlightSharing) {
        stopWaiting(for: sharing)
        sharing.timer = table.loop.schedule(after: time) { [weak self, weak sharing] _ in
            guard let self, let sharing, self.sharing === sharing else { return }
            sharing.timer = nil
            perform(sharing.race.timeIsOver(), of: sharing)
        }
    }

    private func stopWaiting(for sharing: FlightSharing) {
        guard let timer = sharing.timer else { return }
        sharing.timer = nil
        table.loop.cancel(timer)
    }

    private func leave(_ sharing: FlightSharing) {
        stopWaiting(for: sharing)
        if self.sharing === sharing { self.sharing = nil }
    }

    /// Ends the origin's transfer; its bytes are counted where it sent some already.
    private func endOrigin() {
        guard let loser = transfer else { return }
        transfer = nil
        services.counters.add(.sharedDuplicateBytes, loser.bytesReceived)
        loser.cancel()
    }

    /// Ends a read that has not begun in time for the player, who waits for a known failure.
    ///
    /// A second level that had sent bytes by then has met the limits of its requests, and does not
    /// count as failed.
    private func giveUpRead(of sharing: FlightSharing) {
        guard let read = sharing.read else { return }
        sharing.read = nil
        read.cancel()
        services.counters.add(.sharedLosses)
        services.counters.add(.sharedDuplicateBytes, read.received)
        if read.received == 0 {
            table.shared?.failed("it had not answered when the origin had failed")
        }
    }

    /// Writes what was read, and has the origin send the rest, without a pause.
    private func resume(_ sharing: FlightSharing) {
        takeHeldHead()
        let goesOn = writeOut()
        leave(sharing)
        guard goesOn else { return }
        let error = UpstreamError(.preempted, host: resource.url.host)
        perform(machine.broke(error, isDown: false, fillFacts, ending))
    }

    /// Handles a failure of the origin that was kept back, now that the second level has nothing.
    private func handle(_ failure: SharedRace.OriginFailure) {
        switch failure {
        case .refused(let refusal): refuse(refusal)
        case .answered(let head, let result): replay(head, result)
        case .ended(let result): replay(nil, result)
        }
    }

    private func replay(_ head: TransferHead?, _ result: TransferResult?) {
        guard let transfer else { return }
        if let head { self.transfer(transfer, didReceive: head) }
        if let result { self.transfer(transfer, didFinish: result) }
    }
}

extension Flight {
    // MARK: Writing

    /// True once the second level has won, until the flight no longer needs it: what is received
    /// comes from there.
    var fillsFromShared: Bool { sharing?.race.hasWon == true }

    /// True while an origin, a parent or the second level sends the body.
    var hasSource: Bool { transfer != nil || sharing?.read != nil }

    /// Has a complete object written to the second level, if other nodes may have it.
    func offerToSharedLevel(_ object: StoredObject) {
        guard let writer = table.shared?.writer, object.isComplete, object.isStorable,
            !object.isDiscarded, outcome?.notStored == nil,
            ObjectFacts.of(object)?.head.mayBeCut != true,
            table.mayShare(
                resource, isPlaylist: ObjectFacts.of(object)?.head.isPlaylist),
            !table.isFromInside(object, resource)
        else { return }
        let (memory, session) = (services.playlistMemory, resource.session.id)
        writer.offer(
            SharedCandidate(
                key: object.key, generation: object.generation, url: resource.url,
                role: object.role, isKey: resource.role == .key,
                setsCookies: response?.setCookies.isEmpty == false, isFilm: false,
                isLive: { memory.isLive(session) }))
    }
}

extension Flight {
    // MARK: Reports of the read

    /// Handles the header of the object, whose first stretch is proved.
    ///
    /// - Returns: false if the object is of no use; nothing follows.
    func sharedRead(_ read: SharedRead, didBegin header: SharedHeader) -> Bool {
        guard let sharing, sharing.read === read, machine.attempt == sharing.attempt,
            let head = usableHead(header)
        else { return false }
        perform(sharing.race.readBegan(head), of: sharing)
        table.shared?.answered()
        services.counters.add(.sharedHits)
        requestTime = head.requestTime
        let answer = transferHead(head, header, sharing.attempt)
        response = answer
        handle(answer)
        return self.sharing === sharing && phase != .ended
    }

    /// The head of an object that continues what is stored here; nil if it cannot be used.
    private func usableHead(_ header: SharedHeader) -> StoredHead? {
        guard var head = StoredHead(encoded: header.head), !head.followsHTTP, head.status == .ok,
            // A stored playlist is used only where a playlist may be, and nothing else where one
            // must be.
            resource.role.isOpen || (resource.role == .playlist) == head.isPlaylist
        else { return nil }
        var facts = SharingRule.Facts()
        facts.fields = head.fields
        guard SharingRule.refusal(facts) == nil,
            table.shared?.changes.forbids(resource, receivedAt: head.responseTime) == false
        else { return nil }
        if head.finalURL == Self.ownURL { head.finalURL = resource.url.withoutUserinfo.text }
        guard (try? AbsoluteURL(head.finalURL)) != nil else { return nil }
        // As If-Range would have it (RFC 9110 section 13.1.5).
        if let known = knownHead, known.strongValidator != head.strongValidator { return nil }
        if let total = object?.total, total != header.total { return nil }
        return head
    }

    /// Stands for the requested URL, which may contain a viewer's token.
    static let ownURL = "-"

    private func transferHead(
        _ head: StoredHead, _ header: SharedHeader, _ attempt: FlightMachine.Attempt
    ) -> TransferHead {
        var fields = head.fields
        var status = HTTPStatus.ok
        var length = header.total
        if attempt.rangeField != nil, case .span(let start, let end) = attempt.wanted {
            let first = start - attempt.before
            let last = min(header.total, end.map { $0 + attempt.behind } ?? .max) - 1
            fields.set(.contentRange, "bytes \(first)-\(last)/\(header.total)")
            status = .partialContent
            length = last - first + 1
        }
        fields.set(.contentLength, "\(length)")
        let url = (try? AbsoluteURL(head.finalURL)) ?? resource.url.withoutUserinfo
        return TransferHead(status: status, kept: fields, finalURL: url)
    }

    /// Handles proved bytes, the wanted ones alone.
    func sharedRead(_ read: SharedRead, didProve bytes: UnsafeRawBufferPointer) {
        guard sharing?.read === read else { return }
        take(arrived: bytes)
    }

    func sharedReadRoundDidEnd(_ read: SharedRead) {
        guard sharing?.read === read else { return }
        takeHeldHead()
        flush()
        leaveSlow(read)
    }

    /// Has the origin send the rest of an object that the second level sends too slowly for the
    /// player who waits, unless the origin has failed.
    private func leaveSlow(_ read: SharedRead) {
        guard let sharing, sharing.read === read, sharing.race.hasWon, phase == .filling,
            machine.lane <= .playback, read.checkIsTooSlow(now: table.loop.now),
            !sharing.race.hasOriginFailed,
            asksParent || table.probes.health.state(of: resource.url.origin) == .up
        else { return }
        sharing.read = nil
        read.cancel()
        table.shared?.slowed()
        perform(sharing.race.readEnded(isComplete: false), of: sharing)
    }

    /// Handles the end of the read; called once, unless it is cancelled.
    func sharedRead(_ read: SharedRead, didEnd end: SharedRead.End) {
        guard let sharing, sharing.read === read else { return }
        sharing.read = nil
        var isComplete = false
        switch end {
        case .complete where sharing.race.hasWon:
            isComplete = true
            table.shared?.completed(read.received)
        case .complete, .missing:
            table.shared?.answered()
            services.counters.add(.sharedMisses)
        case .failed(let reason): table.shared?.failed(reason)
        }
        perform(sharing.race.readEnded(isComplete: isComplete), of: sharing)
    }
}
