import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Store
import Upstream

/// Bytes of a round that are to be written.
struct GatheredBytes {
    var bytes: [UInt8] = []
    /// What of the piece that is being gathered is still to come, in bytes; 0 until that is known.
    var roomInPiece = 0

    /// Forgets the bytes.
    mutating func drop() {
        bytes.removeAll()
        roomInPiece = 0
    }
}

/// What the response has said of its body, as far as each piece of it is held against that.
struct ExpectedBody {
    /// Where the bytes end that the response has said it holds; what comes behind is not written.
    var end: Int64?
    /// Where the response ends, as far as it says.
    var receivedEnd: Int64?
    var ahead = StoredAhead.unchecked
    /// True until the first bytes of a response have come, which readers are waiting for.
    var isAwaited = false
}

/// What is done about stored bytes that the transfer comes to.
enum StoredAhead {
    /// Nothing needs to be compared.
    case unchecked
    /// They are compared before the transfer gets there.
    case checked
    /// The end of a hole is being compared.
    case meeting(Meeting)
}

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
            if gathered.roomInPiece == 0 {
                guard let writer else { return }
                if gathered.bytes.capacity == 0 { gathered.bytes = table.takeBuffer() }
                gathered.roomInPiece =
                    writer.bytesToCut(every: Self.gatherLimit) - gathered.bytes.count
            }
            let count = min(gathered.roomInPiece, rest.count)
            gathered.bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            gathered.roomInPiece -= count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if gathered.roomInPiece == 0 || expected.isAwaited { flush() }
        }
    }

    /// Writes what was gathered and lets readers have it.
    ///
    /// Large pieces of the middle of a body are put off: what fails with them is heard of later.
    func flush() {
        gathered.roomInPiece = 0
        guard !gathered.bytes.isEmpty, writer != nil else { return }
        guard !putOff() else { return didWrite() }
        expected.isAwaited = false
        var failure = writeGathered()
        if let error = failure, keepNothing(because: error) { failure = writeGathered() }
        let isSniffing = machine.isSniffing
        let first = isSniffing ? Array(gathered.bytes.prefix(PlaylistDetector.prefixLength)) : []
        table.giveBack(&gathered.bytes)
        if let error = failure { return storingFailed(error) }
        if isSniffing { sniff(first, isAtEnd: false) }
        didWrite()
    }

    private func didWrite() {
        if let end = writer?.offset, !machine.accounts(to: end, now: table.loop.now) {
            perform(machine.outspent())
            guard phase != .ended else { return }
        }
        if meetsStored { return perform(machine.close(cause: nil)) }
        if machine.sendsMore { return stopBehindAskedRange() }
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
        guard !expected.isAwaited, !machine.isSniffing, object?.isStorable == true,
            let bodies = table.bodies,
            table.client.transfersInFlight > 1,
            let behind = writer.map({ $0.written < $0.offset }),
            behind || gathered.bytes.count >= Self.leastPutOff
        else { return false }
        return writer?.putOff(&gathered.bytes, to: bodies, whenFailed: whenFailed()) == true
    }

    private func whenFailed() -> @Sendable () -> Void {
        let bound = LoopBound(self, to: table.loop)
        return { bound.enqueue { flight, _ in flight.settleWrites() } }
    }

    /// Waits until all that was put off is in the file.
    ///
    /// Before anything goes by what has been written: the end of a body, a request for the rest.
    func settleWrites() {
        guard phase == .filling, let error = settled() else { return }
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
        guard let former = object, let failed = writer, former.presentBytes == 0,
            let head = ObjectFacts.of(former)?.head, machine.keepsNothing()
        else { return false }
        former.discard(because: error)
        failed.end(failure: error)
        writer = nil
        guard create(head, total: former.total, isWhole: true, isStorable: false, sniffs: false),
            let object
        else { return false }
        table.counters.add(.notStored)
        var end = former.total
        if case .span(_, let last?) = machine.wanted { end = last }
        writer = FillWriter(object, from: failed.offset, to: end)
        return true
    }

    /// True when the next bytes are there already, and so many of them that a new request for what
    /// comes behind them costs less than fetching them twice.
    private var meetsStored: Bool {
        guard machine.isFilling, !hasWaiters, let object, let writer, let total = object.total,
            object.isStorable, case .present(let count) = object.state(at: writer.offset)
        else { return false }
        return machine.endsAtStored(count, from: writer.offset, total: total)
    }

    /// Writes in place: a copy of the array would have to be allocated anew in every round.
    private func writeGathered() -> SystemError? {
        gathered.bytes.withUnsafeBytes { raw in
            do throws(SystemError) {
                try writer?.append(raw)
                return nil
            } catch {
                return error
            }
        }
    }

    private func sniff(_ bytes: [UInt8], isAtEnd: Bool) {
        let found = machine.sniff(bytes, isAtEnd: isAtEnd)
        if found == .newPlaylist, let object, var head = StoredHead(encoded: object.head) {
            head.isPlaylist = true
            let times = ObjectFacts.of(object)?.times
            object.replaceHead(head.encoded)
            _ = object.attach(
                ObjectFacts(head: head, generation: object.generation, times: times))
        }
        perform(machine.sniffed(found, now: table.loop.now))
    }

    // MARK: Short bodies

    /// Takes bytes of a body whose head waits.
    func hold(_ bytes: UnsafeRawBufferPointer) {
        guard let total = machine.heldLength else { return }
        // No buffer for large pieces: many heads may wait at once.
        if gathered.bytes.capacity == 0 { gathered.bytes.reserveCapacity(Int(total)) }
        gathered.bytes.append(contentsOf: bytes)
        if gathered.bytes.count >= total { takeHeldHead() }
    }

    /// Begins with the head that waited, and with what has come of its body.
    func takeHeldHead() {
        guard machine.isHolding else { return }
        perform(machine.releaseHeldHead())
        if writer == nil { gathered.bytes = [] } else { flush() }
    }

    /// The whole body, where it is here before the object is made and may be written with it.
    func heldBody(_ total: Int64?) -> [UInt8]? {
        guard let total, total == gathered.bytes.count, total > 0, writer == nil else { return nil }
        return Array(gathered.bytes)
    }

    /// The end of what was written with a new object; nil where nothing was.
    ///
    /// What was gathered is in the file then.
    func takeWritten(_ former: StoredObject?) -> Int64? {
        guard let object, object !== former, !gathered.bytes.isEmpty, object.isComplete,
            object.total == Int64(gathered.bytes.count)
        else { return nil }
        gathered.bytes = []
        return object.total
    }

    // MARK: Ends

    /// The transfer has ended in order.
    func finish() {
        flush()
        settleWrites()
        if machine.isSniffing { sniff([], isAtEnd: true) }
        perform(machine.bodyEnded(fillFactsAtEnd, ending))
    }

    /// Goes on with an object that is not kept: what all readers have read is given back to the disk.
    func passOn() {
        guard machine.isFilling, let object else { return }
        if machine.noteLoss(isAnswered: outcome?.notStored != nil) == .new {
            table.counters.add(.notStored)
            // Nobody waits for these bytes themselves.
            if machine.isAhead, !machine.isPlaylist { return refuse(.noRoom) }
            if !hasWaiters { table.checkAbandoned(self) }
        }
        guard !hasWaiters, let least = table.readers.least(object.generation) else { return }
        object.punch(upTo: max(0, least - StoredBody.mostCompared))
    }
}
