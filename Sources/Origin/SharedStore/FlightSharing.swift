// A flight that asks the second level before its origin, and both after the head start.
//
//     asked ──header and first stretch proved──▶ won: the origin's transfer ends, the body is filled
//       │ ──head start over──▶ the origin is asked too ──its head arrives──▶ lost: the read ends
//       └──missing, failed──▶ the origin is asked, unless it has been
//
// While the read is under way, a failure of the origin is kept back: the second level may have what
// is wanted. Unless that has begun within some seconds, the read ends, and the failure is the
// answer.
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
    var read: SharedRead?
    /// Until the origin is asked too; from when its failure is known, until that is the answer.
    var timer: TimerID?
    /// The stored head of the object, once the second level has won.
    var head: StoredHead?
    /// True once the origin was asked too.
    var hasAskedOrigin = false
    /// What the origin has sent of a failure that is kept back.
    var heldTransfer: Transfer?
    var heldHead: TransferHead?
    var heldResult: TransferResult?

    /// How long a failure of the origin is kept back, however many requests a read takes: each of
    /// these may take as long.
    static let patience = Interval.seconds(3 as Int64)

    init(_ attempt: FlightMachine.Attempt) { self.attempt = attempt }

    var hasWon: Bool { head != nil }

    /// True for an answer of the origin that is no use to a player, so that the second level did not
    /// lose to it: the origin may refuse a token, or no longer have what is stored.
    ///
    /// 416 tells how long the body is.
    static func mayBeSpared(_ status: HTTPStatus) -> Bool {
        400...599 ~= status.rawValue && status.rawValue != 416
    }
}

extension FlightTable {
    /// True if the second level may have what a request wants.
    func asksSharedLevel(for request: FetchRequest) -> Bool {
        guard let shared, shared.isUp, !request.revalidates, request.terms.isPlain else {
            return false
        }
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
        return !resource.isOnAir(live, playlistMemory, isPlaylist: isPlaylist)
    }
}

extension FetchRequest.Terms {
    /// True for a GET without conditions that may share its response.
    var isPlain: Bool {
        method == .get && conditions.isEmpty && tags.isEmpty && !hasDirectives && !isAlone
            && rest == nil
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
            level.isUp, !machine.job.revalidates, terms.isPlain, table.mayShare(resource),
            case .span(let start, let end) = attempt.wanted
        else { return false }
        machine.omit(.sharedLevel)
        let sharing = FlightSharing(attempt)
        let last = end.map { $0 + attempt.behind }
        let read = SharedRead(
            resource.key, from: start - attempt.before, to: last, lane: machine.lane, trace: trace,
            level: level, reader: self)
        sharing.read = read
        self.sharing = sharing
        if refusalOfOrigin == nil {
            sharing.timer = table.loop.schedule(after: level.settings.headStart) {
                [weak self] _ in self?.headStartEnded()
            }
        } else {
            endLater(sharing)
        }
        read.begin()
        table.ahead.scheduleRoundEnd(table)
        return true
    }

    private func headStartEnded() {
        guard let sharing, sharing.read != nil, !sharing.hasWon, !sharing.hasAskedOrigin,
            machine.attempt == sharing.attempt
        else { return }
        sharing.timer = nil
        guard refusalOfOrigin == nil else { return endLater(sharing) }
        sharing.hasAskedOrigin = true
        counters.add(.sharedHedges)
        sendToOrigin(sharing.attempt)
    }

    /// Ends the read; to be called when the flight no longer needs it.
    func dropSharing() {
        guard let sharing else { return }
        self.sharing = nil
        if let timer = sharing.timer { table.loop.cancel(timer) }
        if let read = sharing.read, !sharing.hasWon {
            counters.add(.sharedDuplicateBytes, read.received)
        }
        sharing.read?.cancel()
        sharing.heldTransfer?.cancel()
    }

    // MARK: The origin, asked at the same time

    /// Notes the head of the origin's response.
    ///
    /// - Returns: true if it is kept back, since it is a failure that the second level may spare.
    func keepsBack(_ head: TransferHead, _ transfer: Transfer) -> Bool {
        guard let sharing, sharing.read != nil, !sharing.hasWon else { return false }
        guard FlightSharing.mayBeSpared(head.status) else {
            table.shared?.lost()
            dropSharing()
            return false
        }
        sharing.heldTransfer = transfer
        sharing.heldHead = head
        endLater(sharing)
        return true
    }

    /// Notes the end of the origin's transfer.
    ///
    /// - Returns: true if it is kept back.
    func keepsBack(_ result: TransferResult, _ transfer: Transfer) -> Bool {
        guard let sharing, sharing.read != nil, !sharing.hasWon else { return false }
        sharing.heldTransfer = transfer
        sharing.heldResult = result
        endLater(sharing)
        return true
    }

    /// Notes that the origin redirects to a host that is down, and ends its transfer.
    ///
    /// - Returns: true if the refusal is kept back.
    func keepsBack(_ refusal: ProxyFailure) -> Bool {
        guard let sharing, sharing.read != nil, !sharing.hasWon else { return false }
        refusalOfOrigin = refusal
        dropTransfer()
        endLater(sharing)
        return true
    }

    /// Has the read end in time for the player, who waits for a failure that is known, unless the
    /// second level begins.
    ///
    /// A second level that had answered by then has kept the limits of its requests: others ask it
    /// as before.
    func endLater(_ sharing: FlightSharing) {
        guard sharing.timer == nil else { return }
        sharing.timer = table.loop.schedule(after: FlightSharing.patience) {
            [weak self, weak sharing] _ in
            guard let self, let sharing, self.sharing === sharing, let read = sharing.read,
                !sharing.hasWon
            else { return }
            sharing.timer = nil
            sharing.read = nil
            read.cancel()
            counters.add(.sharedLosses)
            counters.add(.sharedDuplicateBytes, read.received)
            if read.received == 0 {
                table.shared?.failed("it had not answered when the origin had failed")
            }
            goOnWithOrigin(sharing)
        }
    }

    /// Handles what was kept back of the origin's failure, now that the second level has nothing.
    private func replay(_ sharing: FlightSharing) {
        guard let transfer = sharing.heldTransfer else { return }
        self.transfer = transfer
        if let head = sharing.heldHead { self.transfer(transfer, didReceive: head) }
        if let result = sharing.heldResult { self.transfer(transfer, didFinish: result) }
    }
}

extension Flight {
    // MARK: Writing

    /// True once the second level has won, until the flight no longer needs it: what is received
    /// comes from there.
    var fillsFromShared: Bool { sharing?.hasWon == true }

    /// True while an origin, a parent or the second level sends the body.
    var hasSource: Bool { transfer != nil || sharing?.read != nil }

    /// Has a complete object written to the second level, if other nodes may have it.
    func offerToSharedLevel(_ object: StoredObject) {
        guard let writer = table.shared?.writer, object.isComplete, object.isStorable,
            !object.isDiscarded, outcome?.notStored == nil,
            table.mayShare(
                resource, isPlaylist: ObjectFacts.of(object)?.head.isPlaylist),
            !table.isFromInside(object, resource)
        else { return }
        let (memory, session) = (table.playlistMemory, resource.session.id)
        writer.offer(
            SharedCandidate(
                key: object.key, generation: object.generation, url: resource.url,
                role: object.role, isKey: resource.role == .key,
                setsCookies: response?.setCookies.isEmpty == false, isFilm: false,
                isLive: { memory.isLive(session) }))
    }
}

extension Flight: SharedReader {
    func sharedRead(_ read: SharedRead, didBegin header: SharedHeader) -> Bool {
        guard let sharing, sharing.read === read, machine.attempt == sharing.attempt,
            let head = usableHead(header)
        else { return false }
        if let timer = sharing.timer { table.loop.cancel(timer) }
        sharing.timer = nil
        sharing.head = head
        // Whether the origin may send a rest that the second level does not is decided then.
        refusalOfOrigin = nil
        // The loser's transfer; its bytes are counted where it sent some already.
        sharing.heldTransfer?.cancel()
        sharing.heldTransfer = nil
        let loser = transfer
        transfer = nil
        if let loser {
            counters.add(.sharedDuplicateBytes, loser.bytesReceived)
            loser.cancel()
        }
        table.shared?.answered()
        counters.add(.sharedHits)
        requestTime = head.requestTime
        let answer = transferHead(head, header, sharing.attempt)
        response = answer
        body.beginResponse()
        perform(
            machine.received(
                facts(of: answer), known,
                fillFacts, now: table.loop.now))
        return self.sharing === sharing && phase != .ended
    }

    /// The head of an object that continues what is stored here; nil if it cannot be used.
    private func usableHead(_ header: SharedHeader) -> StoredHead? {
        guard var head = StoredHead(encoded: header.head), !head.followsHTTP, head.status == .ok,
            // Whatever was asked for: texts are read whole and as such.
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

    /// Stands for the URL that was asked for, which may have a viewer's token in it.
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

    func sharedRead(_ read: SharedRead, didProve bytes: UnsafeRawBufferPointer) {
        guard sharing?.read === read else { return }
        take(arrived: bytes)
    }

    func sharedReadRoundDidEnd(_ read: SharedRead) {
        guard sharing?.read === read else { return }
        takeHeldHead()
        flush()
    }

    func sharedRead(_ read: SharedRead, didEnd end: SharedRead.End) {
        guard let sharing, sharing.read === read else { return }
        sharing.read = nil
        switch end {
        case .complete where sharing.hasWon:
            takeHeldHead()
            finish()
        case .complete, .missing:
            table.shared?.answered()
            counters.add(.sharedMisses)
            goOnWithOrigin(sharing)
        case .failed(let reason):
            table.shared?.failed(reason)
            goOnWithOrigin(sharing)
        }
    }

    /// Has the origin send what the second level did not.
    private func goOnWithOrigin(_ sharing: FlightSharing) {
        if let timer = sharing.timer { table.loop.cancel(timer) }
        var goesOn = phase != .ended
        if sharing.hasWon {
            takeHeldHead()
            goesOn = writeOut()
        }
        self.sharing = nil
        guard goesOn else { return }
        if sharing.hasWon {
            // In the middle of a body: the rest is asked of the origin, without a pause.
            let error = UpstreamError(.preempted, host: resource.url.host)
            return perform(machine.broke(error, isDown: false, fillFacts, ending))
        }
        if let refusal = refusalOfOrigin { return refuse(refusal) }
        if sharing.hasAskedOrigin { return replay(sharing) }
        guard machine.attempt == sharing.attempt else { return }
        sendToOrigin(sharing.attempt)
    }
}
