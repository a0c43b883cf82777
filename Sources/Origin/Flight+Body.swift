import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Store
import Upstream

/// The bytes of a loop round that are to be written.
struct GatheredBytes {
    var bytes: [UInt8] = []
    /// The bytes that the current piece still lacks; 0 until that is known.
    var roomInPiece = 0

    /// Forgets the bytes.
    mutating func drop() {
        bytes.removeAll()
        roomInPiece = 0
    }
}

/// Handling of the body's bytes and of its end.
extension Flight {
    // MARK: Bytes

    /// The size of the pieces in which a fast body is written and readers are woken; pieces end at
    /// multiples of it in the file.
    static let gatherLimit = 256 << 10

    /// Collects bytes of this round; they are written when a piece is full, or at the end of the
    /// round.
    ///
    /// The first bytes of a response are written immediately: players wait for them.
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

    /// Writes the collected bytes and makes them available to readers.
    ///
    /// Large pieces in the middle of a body are written by another thread; their errors are
    /// reported later.
    func flush() {
        gathered.roomInPiece = 0
        guard !gathered.bytes.isEmpty, writer != nil else { return }
        guard !backgroundWrite() else { return didWrite() }
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
            perform(machine.handleSpentBudget())
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

    /// Has another thread write the collected bytes, unless somebody waits for just these.
    ///
    /// Not for a single transfer: the other processor is busy with its player, and handing over
    /// costs more than it saves.
    private func backgroundWrite() -> Bool {
        guard !expected.isAwaited, !machine.isSniffing, object?.isStorable == true,
            let bodies = table.bodies,
            table.client.transfersInFlight > 1,
            let behind = writer.map({ $0.written < $0.offset }),
            behind || gathered.bytes.count >= Self.leastPutOff
        else { return false }
        return writer?.backgroundWrite(&gathered.bytes, to: bodies, whenFailed: whenFailed())
            == true
    }

    private func whenFailed() -> @Sendable () -> Void {
        let bound = LoopBound(self, to: table.loop)
        return { bound.enqueue { flight, _ in flight.drainWrites() } }
    }

    /// Waits until all deferred writes are in the file.
    ///
    /// Needed before anything depends on what has been written: the end of a body, a request for
    /// the rest.
    func drainWrites() {
        guard phase == .filling, let error = errorOfDrain() else { return }
        storingFailed(error)
    }

    /// Waits as `drainWrites` does, but leaves handling the error to the caller.
    func errorOfDrain() -> SystemError? {
        do throws(SystemError) {
            try writer?.drain()
            return nil
        } catch {
            return error
        }
    }

    /// Starts over with an object that is not stored, if writing the very first bytes failed.
    ///
    /// No waiter has received the former object then.
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
        outcome?.notStored = .noRoom
        var end = former.total
        if case .span(_, let last?) = machine.wanted { end = last }
        writer = FillWriter(object, from: failed.offset, to: end)
        return true
    }

    /// True if the next bytes are stored already, and so many that a new request for the bytes
    /// after them costs less than fetching them twice.
    private var meetsStored: Bool {
        guard machine.isFilling, !hasWaiters, let object, let writer, let total = object.total,
            object.isStorable, case .present(let count) = object.state(at: writer.offset)
        else { return false }
        return machine.endsAtStored(count, from: writer.offset, total: total)
    }

    /// Writes in place: a copy of the array would be allocated in every round.
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

    /// Collects bytes of a body whose head is held.
    func hold(_ bytes: UnsafeRawBufferPointer) {
        guard let total = machine.heldLength else { return }
        // Not a pooled buffer for large pieces, since many heads may be held at once.
        if gathered.bytes.capacity == 0 { gathered.bytes.reserveCapacity(Int(total)) }
        gathered.bytes.append(contentsOf: bytes)
        if gathered.bytes.count >= total { takeHeldHead() }
    }

    /// Begins with the held head, and with the bytes of its body received so far.
    func takeHeldHead() {
        guard machine.isHolding else { return }
        perform(machine.releaseHeldHead())
        if writer == nil { gathered.bytes = [] } else { flush() }
    }

    /// Returns the whole body if it was received before its object is created and can be written
    /// with it.
    func heldBody(_ total: Int64?) -> [UInt8]? {
        guard let total, total == gathered.bytes.count, total > 0, writer == nil else { return nil }
        return Array(gathered.bytes)
    }

    /// Returns the end of the body that was written with a new object; nil if none was.
    ///
    /// The collected bytes are in the file then.
    func takeWritten(_ former: StoredObject?) -> Int64? {
        guard let object, object !== former, !gathered.bytes.isEmpty, object.isComplete,
            object.total == Int64(gathered.bytes.count)
        else { return nil }
        gathered.bytes = []
        return object.total
    }

    // MARK: Ends

    /// Handles the regular end of the transfer.
    func finish() {
        flush()
        drainWrites()
        if machine.isSniffing { sniff([], isAtEnd: true) }
        perform(machine.bodyEnded(fillFactsAtEnd, ending))
    }

    /// Continues with an object that is not stored: frees the disk space of what all readers have
    /// read.
    func passOn() {
        guard machine.isFilling, let object else { return }
        if machine.noteLoss(isAnswered: outcome?.notStored != nil) == .new {
            table.counters.add(.notStored)
            // No player waits for these bytes.
            if machine.isAhead, !machine.isPlaylist { return refuse(.noRoom) }
            if !hasWaiters { table.checkAbandoned(self) }
        }
        guard !hasWaiters, let least = table.readers.least(object.generation) else { return }
        object.punch(upTo: max(0, least - StoredBody.mostCompared))
    }
}
