import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Retention
import Store
import Upstream

/// Handling of the body's bytes and of its end.
extension Flight {
    // MARK: Bytes

    /// Handles bytes of the body, up to the end that the response has stated.
    func take(_ bytes: UnsafeRawBufferPointer) {
        guard hasFill, !bytes.isEmpty else { return }
        if let endless { return take(bytes, of: endless) }
        var rest = bytes
        repeat {
            switch body.take(&rest, over: object, buffer: table.buffers.take()) {
            case .taken: return
            case .write: flush()
            case .end: return endAtProven()
            case .same: body.takeHeld().withUnsafeBytes { append($0) }
            case .different: return perform(machine.foundOtherVersion())
            }
        } while !rest.isEmpty
    }

    private func take(_ bytes: UnsafeRawBufferPointer, of endless: EndlessFill) {
        guard let end = body.position else { return }
        endless.take(bytes, end: end, now: table.loop.now) { append($0) }
    }

    /// Takes bytes that are known to belong to the body.
    private func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while case .write = body.collect(&rest, buffer: table.buffers.take()) { flush() }
    }

    /// Ends a transfer that continues beyond its stated end.
    private func endAtProven() {
        dropTransfer()
        flush()
        drainWrites()
        guard machine.isFilling else { return }
        perform(machine.wasWhole(now: table.loop.now))
    }

    /// Compares bytes of a response with stored ones, together with earlier ones that could not be
    /// judged alone, and takes what follows the compared ones.
    func takeCompared(_ bytes: UnsafeRawBufferPointer) {
        guard body.hasOpenBeginning else { return take(compare(bytes)) }
        let beginning = body.takeOpenBeginning() + bytes
        beginning.withUnsafeBytes { take(compare($0)) }
    }

    /// Compares the beginning of a response with the stored bytes that it overlaps on purpose: the
    /// heads of two versions of equal length do not differ without a strong validator.
    ///
    /// - Returns: the bytes after the compared ones; none if they differ, or stored ones are lost.
    private func compare(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard let next = machine.comparison, let known = object ?? continued else { return bytes }
        let count = Int(min(Int64(bytes.count), next.start - next.position))
        guard !known.removeDamaged(in: next.position..<next.position + Int64(count)) else {
            perform(machine.lostCompared())
            return UnsafeRawBufferPointer(rebasing: bytes[..<0])
        }
        let compared = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        let areSame = known.agrees(with: compared, at: next.position)
        if !areSame, next.position == 0 {
            switch verdict(on: bytes, inPlaceOf: known) {
            case .page:
                perform(machine.refusePage())
                return UnsafeRawBufferPointer(rebasing: bytes[..<0])
            // The first read may end within the first tag.
            case .undecided where bytes.count < PlaylistDetector.prefixLength:
                body.keepOpen(bytes)
                return UnsafeRawBufferPointer(rebasing: bytes[..<0])
            case .object, .other, .undecided: break
            }
        }
        perform(machine.compared(Int64(count), areSame: areSame))
        return UnsafeRawBufferPointer(rebasing: areSame ? bytes[count...] : bytes[..<0])
    }

    /// Classifies the first bytes of a body that may be a page where the resource is none.
    private func verdict(
        on bytes: UnsafeRawBufferPointer, inPlaceOf known: StoredObject
    ) -> PageDetector.Verdict {
        noteStored(known)
        guard machine.isNeverPage else { return .other }
        return PageDetector.inspect(Array(bytes.prefix(PlaylistDetector.prefixLength)))
    }

    // MARK: Writing

    /// Writes the collected bytes and makes them available to readers.
    ///
    /// Large pieces in the middle of a body are written by another thread; their errors are
    /// reported later.
    func flush() {
        guard body.endPiece() else { return }
        guard !putOff() else { return didWrite() }
        var failure = body.write()
        if let error = failure, keepNothing(because: error) { failure = body.write() }
        let isSniffing = machine.isSniffing
        let first = isSniffing ? Array(body.collected.prefix(PlaylistDetector.prefixLength)) : []
        body.giveBack(table.buffers.giveBack)
        if let error = failure { return storingFailed(error) }
        if isSniffing { sniff(first, isAtEnd: false) }
        didWrite()
    }

    /// Has another thread write the collected bytes, unless somebody waits for just these.
    ///
    /// Not for a single transfer: the other processor is busy with its player, and handing over
    /// costs more than it saves.
    private func putOff() -> Bool {
        guard body.mayBePutOff, !machine.isSniffing, object?.isStorable == true,
            let writer = table.buffers.writer, table.client.transfersInFlight > 1
        else { return false }
        return body.putOff(to: writer, whenFailed: whenFailed())
    }

    private func whenFailed() -> @Sendable () -> Void {
        let bound = LoopBound(self, to: table.loop)
        return { bound.enqueue { flight, _ in flight.drainWrites() } }
    }

    private func didWrite() {
        guard let end = body.writer?.offset else { return }
        if let spent = machine.account(to: end, now: table.loop.now) {
            perform(spent)
            guard phase != .ended else { return }
        }
        if let endless, didWrite(endless) { return }
        if meetsStored { return perform(machine.close(cause: nil)) }
        if machine.sendsMore { return stopBehindAskedRange() }
        if object?.isStorable == false { passOn() }
        limitReadAhead()
    }

    /// Ends the flight after a write error; readers continue with a new flight into an object that
    /// is not stored.
    ///
    /// A text, of which nobody has received anything yet, is requested again and only passed on.
    private func storingFailed(_ error: SystemError) {
        object?.discard(because: error)
        if let actions = machine.startsUnstored() {
            services.counters.add(.notStored)
            return perform(actions)
        }
        fail(
            ProxyFailure(
                .us, error.isLackOfRoom ? .insufficientStorage : .serviceUnavailable,
                "the daemon could not store the body any further: \(error)", allowsStale: true),
            cause: error)
    }

    /// Waits until all deferred writes are in the file.
    ///
    /// Needed before anything depends on what has been written: the end of a body, a request for
    /// the rest.
    func drainWrites() {
        guard phase == .filling, let error = body.drain() else { return }
        storingFailed(error)
    }

    /// Writes everything that the transfer, which has ended, delivered.
    ///
    /// - Returns: false if that failed: the flight has ended, or starts over.
    func writeOut() -> Bool {
        flush()
        drainWrites()
        return phase == .asking || phase == .filling
    }

    /// Starts over with an object that is not stored, if writing the very first bytes failed.
    ///
    /// No waiter has received the former object then.
    private func keepNothing(because error: SystemError) -> Bool {
        guard let former = object, let failed = body.writer, former.presentBytes == 0,
            let head = ObjectFacts.of(former)?.head, machine.keepsNothing()
        else { return false }
        former.discard(because: error)
        body.takeWriter()?.end(failure: error)
        guard create(head, total: former.total, isWhole: true, isStorable: false, sniffs: false),
            let object
        else { return false }
        services.counters.add(.notStored)
        outcome?.notStored = .noRoom
        var end = former.total
        if case .span(_, let last?) = machine.wanted { end = last }
        body.replaceWriter(FillWriter(object, from: failed.offset, to: end))
        return true
    }

    /// True if the next bytes are stored already, and so many that a new request for the bytes
    /// after them costs less than fetching them twice.
    private var meetsStored: Bool {
        guard machine.isFilling, !hasWaiters, let object, let writer = body.writer,
            let total = object.total, object.isStorable || object.isRemoved,
            case .present(let count) = object.state(at: writer.offset)
        else { return false }
        return machine.endsAtStored(count, from: writer.offset, total: total)
    }

    private func sniff(_ bytes: [UInt8], isAtEnd: Bool) {
        let found = machine.sniff(bytes, isAtEnd: isAtEnd)
        switch found {
        case .undecided: break
        case .wrong: settleOutdated(isReplaced: false)
        case .newPlaylist, .asExpected, .media: settleOutdated(isReplaced: true)
        }
        if found == .newPlaylist {
            transfer?.limitBody(to: Int64(services.settings.playlistLimits.byteCount))
        }
        if found == .newPlaylist, let object, var head = StoredHead(encoded: object.head) {
            head.isPlaylist = true
            head.wasLive = wasLive(object)
            head.hasViewerCookie = cookies.mayIdentifyViewer
            let times = ObjectFacts.of(object)?.times
            if outcome?.notStored == .noLength { outcome?.notStored = nil }
            object.replaceHead(head.encoded, kind: .structure)
            _ = object.attach(
                ObjectFacts(head: head, generation: object.generation, times: times))
        }
        if case .wrong(_, isPage: true) = found, startsPastPageOfParent() { return }
        perform(machine.sniffed(found, now: table.loop.now))
    }

    // MARK: Short bodies

    /// Collects bytes of a body whose head is held.
    func hold(_ bytes: UnsafeRawBufferPointer) {
        guard let total = machine.heldLength else { return }
        if body.hold(bytes, total: total) { takeHeldHead() }
    }

    /// Begins with the held head, and with the bytes of its body received so far.
    func takeHeldHead() {
        guard machine.isHolding else { return }
        perform(machine.releaseHeldHead())
        if hasFill { flush() } else { body.drop() }
    }

    // MARK: Facts for the machine

    /// The state of the body; nil while nothing is being filled.
    var fillFacts: FillFacts? {
        guard let writer = body.writer, let object else { return nil }
        let head = ObjectFacts.of(object)?.head
        return FillFacts(
            offset: writer.offset, total: object.total, hasHead: head != nil,
            hasStrongValidator: head?.strongValidator != nil)
    }

    /// The state at the end of a body.
    ///
    /// Most bodies are complete then, so nothing remains to be requested and no validator is looked
    /// up.
    var fillFactsAtEnd: FillFacts? {
        guard hasWholeBody, let writer = body.writer, let object else { return fillFacts }
        return FillFacts(
            offset: writer.offset, total: object.total, hasHead: ObjectFacts.of(object) != nil)
    }

    // MARK: Ends

    /// Handles the regular end of the transfer.
    func finish() {
        if body.hasOpenBeginning {
            _ = body.takeOpenBeginning()
            return perform(machine.compared(0, areSame: false))
        }
        guard writeOut() else { return }
        if machine.isSniffing {
            sniff([], isAtEnd: true)
            guard phase != .backingOff else { return }
        }
        var facts = fillFactsAtEnd
        if machine.isListOfOpenEnd(isCoded: response?.decodedCoding != nil), let end = listEnd {
            let isCut = isCut(end)
            facts?.isCutList = isCut
            if !isCut, end.mayBeCut { noteMayBeCut() }
        }
        perform(machine.bodyEnded(facts, ending))
    }

    /// What the received playlist shows of its end; nil for a long one.
    ///
    /// Blocks for the page cache only, as `isCut` does.
    private var listEnd: ListEnd? {
        guard let object, let count = body.writer?.offset, count < TextWorker.longText else {
            return nil
        }
        return (try? readBody(of: object, count: Int(count))).map { ListEnd($0) }
    }

    /// True if the received playlist was cut, by comparison with the stored one, which then stays.
    ///
    /// Not known beside long ones.
    private func isCut(_ received: ListEnd) -> Bool {
        guard let former = services.store.peek(resource.key), former !== object,
            former.isComplete, let total = former.total, total < TextWorker.longText,
            let facts = ObjectFacts.of(former), facts.head.isPlaylist,
            let stored = try? readBody(of: former, count: Int(total))
        else { return false }
        let now = Moment(wall: table.loop.wallNow, steady: table.loop.now)
        return received.isCut(after: ListEnd(stored), age: now.elapsed(since: facts.received))
    }

    /// Marks the received playlist as one that may have been cut, so that it is soon requested
    /// again.
    ///
    /// Without its validators, which the origin would confirm: they are those of the whole.
    private func noteMayBeCut() {
        guard !resource.followsHTTP, let object, let facts = ObjectFacts.of(object) else { return }
        var head = facts.head
        head.mayBeCut = true
        head.fields.remove(.etag)
        head.fields.remove(.lastModified)
        object.replaceHead(head.encoded)
        _ = object.attach(
            ObjectFacts(head: head, generation: object.generation, times: facts.times))
    }

    /// Continues with an object that is not stored: frees the disk space of what all readers have
    /// read.
    func passOn() {
        guard machine.isFilling, let object else { return }
        // A body without a length is stored until its end: without room it is lost before.
        let isAnswered = outcome?.notStored.map { $0 != .noLength } ?? false
        if machine.countsLoss(isAnswered: isAnswered) {
            if !object.isRemoved { services.counters.add(.notStored) }
            // No player waits for these bytes.
            if machine.isAhead, !machine.isPlaylist {
                return refuse(.unkept(object, .noRoom, machine.job.subject))
            }
            if !hasWaiters { table.gracePeriods.check(self) }
        }
        guard !hasWaiters else { return }
        object.punch(
            upTo: (services.readers.least(object.generation) ?? 0) - StoredBody.mostCompared)
        leaveBehind(object)
    }
}
