import Model
import CachePolicy
import HLS
import HTTP
import Posix
import Reactor
import Store
import Upstream
import URISyntax

/// What a flight makes of the origin's bytes and of their end.
extension Flight {
    // MARK: Bytes

    /// The pieces that a body is written in, and readers are woken for, while it comes faster than
    /// that; cut at multiples of this in the file.
    static let gatherLimit = 256 << 10

    /// Takes bytes of this round; they are written when a piece is full, or at the round's end.
    ///
    /// The first ones of a response are written at once: players wait for them.
    func gather(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            if roomInPiece == 0 {
                guard let writer else { return }
                if gathered.capacity == 0 { gathered = table.takeBuffer() }
                roomInPiece = writer.bytesToCut(every: Self.gatherLimit) - gathered.count
            }
            let count = min(roomInPiece, rest.count)
            gathered.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            roomInPiece -= count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if roomInPiece == 0 || isExpected { flush() }
        }
    }

    /// Writes what was gathered and lets readers have it.
    ///
    /// Large pieces of the middle of a body are put off: what fails with them is heard of later.
    func flush() {
        roomInPiece = 0
        guard !gathered.isEmpty, writer != nil else { return }
        guard !putOff() else { return didWrite() }
        isExpected = false
        var failure = writeGathered()
        if let error = failure, keepNothing(because: error) { failure = writeGathered() }
        let first = isSniffing ? Array(gathered.prefix(PlaylistDetector.prefixLength)) : []
        table.giveBack(&gathered)
        if let error = failure { return storingFailed(error) }
        if isSniffing { sniff(first, isAtEnd: false) }
        didWrite()
    }

    private func didWrite() {
        guard account() else { return failSpent() }
        if meetsStored { return close(cause: nil) }
        if sendsMore { return stopBehindAskedRange() }
        if object?.isStorable == false { passOn() }
        limitReadAhead()
    }

    /// Readers go on with a flight of their own into a file that is not kept.
    private func storingFailed(_ error: SystemError) {
        object?.discard(because: error)
        fail(
            ProxyFailure(
                .us, error.isLackOfRoom ? .insufficientStorage : .serviceUnavailable,
                "storing failed in the middle: \(error)"),
            cause: error)
    }

    // MARK: Bytes that another thread writes

    /// A smaller piece costs more to hand over than to write.
    private static let leastPutOff = 64 << 10

    /// Has another thread write what was gathered, where nobody waits for just that.
    ///
    /// A single transfer is not helped by that: the other processor is its player's, and handing over
    /// costs more than it saves.
    private func putOff() -> Bool {
        guard !isExpected, !isSniffing, object?.isStorable == true, let bodies = table.bodies,
            table.client.transfersInFlight > 1,
            let behind = writer.map({ $0.written < $0.offset }),
            behind || gathered.count >= Self.leastPutOff
        else { return false }
        return writer?.putOff(&gathered, to: bodies, whenFailed: whenFailed()) == true
    }

    private func whenFailed() -> @Sendable () -> Void {
        let bound = LoopBound(self, to: table.loop)
        return { bound.enqueue { flight, _ in flight.settleWrites() } }
    }

    /// Waits until all that was put off is in the file.
    ///
    /// Before anything goes by what has been written: the end of a body, a request for the rest.
    func settleWrites() {
        guard state == .filling, let error = settled() else { return }
        storingFailed(error)
    }

    /// As `settleWrites`; what failed is the caller's to tell.
    func settled() -> SystemError? {
        do throws(SystemError) {
            try writer?.settle()
            return nil
        } catch {
            return error
        }
    }

    /// Begins anew with an object that is not kept, where storing the very first bytes failed.
    ///
    /// Nobody has been told of the former object then.
    private func keepNothing(because error: SystemError) -> Bool {
        guard !keepsNothing, !isAhead, !waiters.isEmpty, let former = object, let failed = writer,
            former.presentBytes == 0, let head = ObjectFacts.of(former)?.head
        else { return false }
        keepsNothing = true
        former.discard(because: error)
        failed.end(failure: error)
        writer = nil
        guard create(head, total: former.total, isWhole: true, isStorable: false), let object
        else { return false }
        table.counters.add(.notStored)
        var end = former.total
        if case .span(_, let last?) = wanted { end = last }
        writer = FillWriter(object, from: failed.offset, to: end)
        return true
    }

    /// True when the next bytes are there already, and so many of them that a new request for what
    /// comes behind them costs less than fetching them twice.
    private var meetsStored: Bool {
        guard state == .filling, waiters.isEmpty, let object, let writer, let total = object.total,
            object.isStorable, case .present(let count) = object.state(at: writer.offset)
        else { return false }
        return count >= table.settings.joinDistance || writer.offset + count >= total
    }

    /// Writes in place: a copy of the array would have to be allocated anew in every round.
    private func writeGathered() -> SystemError? {
        gathered.withUnsafeBytes { raw in
            do throws(SystemError) {
                try writer?.append(raw)
                return nil
            } catch {
                return error
            }
        }
    }

    private func sniff(_ bytes: [UInt8], isAtEnd: Bool) {
        let room = PlaylistDetector.prefixLength - prefix.count
        prefix.append(contentsOf: bytes.prefix(max(0, room)))
        let found = PlaylistDetector.inspect(prefix)
        if found == .undecided, !isAtEnd, prefix.count < PlaylistDetector.prefixLength { return }
        isSniffing = false
        prefix = []
        if found == .playlist {
            markPlaylist()
        } else if isPlaylist {
            object?.discard()
            let what = found == .markup ? "an HTML or XML page" : "something else"
            refuse(
                ProxyFailure(
                    .origin, .badGateway,
                    "\(resource.url.redacted): expected a playlist, but the origin sent \(what)",
                    originStatus: outcome?.status))
        } else {
            publishIfMedia()
            answer(isComplete: false)
        }
    }

    private func markPlaylist() {
        guard !isPlaylist, let object, var head = StoredHead(encoded: object.head) else { return }
        isPlaylist = true
        head.isPlaylist = true
        object.replaceHead(head.encoded)
    }

    // MARK: Ends

    func finish() {
        flush()
        settleWrites()
        guard state != .ended, let object, let writer else {
            if state != .ended {
                refuse(
                    ProxyFailure(.origin, .badGateway, "\(resource.url.redacted): no usable answer")
                )
            }
            return
        }
        if isSniffing { sniff([], isAtEnd: true) }
        guard state != .ended, !asksForWhole(), !readsListsFirst(), !repeatsReload() else {
            return
        }
        if writer.offset < promisedEnd {
            // Framed as whole, but shorter than it said elsewhere: broken like any other.
            return retry(after: UpstreamError(.truncated, host: resource.url.host), isDown: false)
        }
        if object.total == nil, !resource.isGrowing, case .span(_, nil) = wanted {
            if !endIsProven, !isOpaque, !isPlaylist, verifyEnd(at: writer.offset) { return }
            object.markBodyEnd(writer.offset)
            // The player gets what there was; but what may have been cut is not kept, unless HTTP's
            // rules lead: they take a connection that ended in order for the end of the body (RFC
            // 9112 section 8).
            if !endIsProven, !isPlaylist, resource.kind == nil { object.discard() }
        }
        state = .ended
        table.remove(self)
        table.forgetGivenUp(resource.key)
        writer.end(failure: nil)
        self.writer = nil
        if object.isStorable, !object.isCurrent, !object.isDiscarded, !isBehindStored {
            publish(object)
        }
        if resource.live.growth == nil { table.keys.learn(resource, object, isMerged: isMerged) }
        table.store.finish(object)
        answer(isComplete: true)
    }

    /// Where this transfer's bytes should end, as far as known; else 0.
    private var promisedEnd: Int64 {
        if case .span(_, let end?) = wanted { return end }
        return object?.total ?? 0
    }

    /// Asks the origin whether the body goes on after its last byte: the only way to tell the end
    /// of a body that ends with its connection from a cut (RFC 9112 section 8).
    ///
    /// - Returns: false where that cannot be asked.
    private func verifyEnd(at offset: Int64) -> Bool {
        guard !isVerifyingEnd, offset > 0, let object, !resource.decodesContent || isHandedOut,
            ObjectFacts.of(object)?.head.strongValidator != nil
        else { return false }
        isVerifyingEnd = true
        wanted = .span(start: offset, end: nil)
        table.counters.add(.originResumes)
        ask()
        return true
    }

    /// The origin's answer to that question: there is nothing more, or the question is not understood.
    func endVerification(isProven: Bool) {
        endIsProven = isProven
        let running = transfer
        transfer = nil
        running?.cancel()
        finish()
    }
}
