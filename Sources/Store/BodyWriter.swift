// Writes bodies into files on a thread of its own, so that whoever receives them goes on meanwhile.
//
// Of a transfer's processor time a good part is the copy into the page cache, several times the
// rest where a virtual machine's memory has to be got back from its host first. One thread that
// receives and another that writes use two processors for it.
import Glibc
package import Posix
import Reactor
import Synchronization

/// A thread with a short queue of pieces, and buffers to gather pieces in.
///
/// One thread puts pieces off and settles them: that of the loop whose flights they are of. The
/// queue is bounded; what finds no room in it is written by that thread itself, which so is slowed
/// down to the pace of the disk.
///
/// The end of its owner ends the thread; what is in the queue then is dropped.
package final class BodyWriter: Sendable {
    let queue: PieceQueue
    private let thread: PosixThread

    /// Starts the thread.
    package init() throws(SystemError) {
        let queue = try PieceQueue()
        self.queue = queue
        thread = try PosixThread(name: "bodies") { queue.run() }
    }

    deinit {
        queue.stop()
        thread.join()
    }

    /// An empty buffer with room for `capacity` bytes: the one used last, if there is a spare one.
    package func takeBuffer(capacity: Int) -> [UInt8] {
        if let spare = queue.takeSpare() { return spare }
        var made: [UInt8] = []
        made.reserveCapacity(capacity)
        return made
    }

    /// Empties a buffer and keeps it for the next one that takes one; a few are kept.
    package func giveBack(_ buffer: inout [UInt8]) {
        var returned: [UInt8] = []
        swap(&returned, &buffer)
        queue.keep(&returned)
    }

    /// Lets go of all spare buffers.
    package func dropBuffers() { queue.dropSpares() }
}

/// What was put off of one fill.
final class PutOff: Sendable {
    struct State: Sendable {
        /// The end of what is in the file.
        var written: Int64
        var failure: SystemError?
    }

    let state: Mutex<State>
    /// Called once, on the writing thread, when a piece cannot be written.
    let whenFailed: @Sendable () -> Void

    init(from offset: Int64, whenFailed: @escaping @Sendable () -> Void) {
        state = Mutex(State(written: offset))
        self.whenFailed = whenFailed
    }
}

/// The queue; shared by the thread and those who put pieces off.
final class PieceQueue: Sendable {
    /// Bytes on their way into the file.
    ///
    /// A class, so that nothing else than it refers to its buffer, which can be used again then.
    final class Piece: Sendable {
        let object: StoredObject
        let fill: FillID
        let putOff: PutOff
        let offset: Int64
        let bytes: Mutex<[UInt8]>

        init(_ bytes: consuming [UInt8], of fill: FillWriter, _ putOff: PutOff) {
            object = fill.object
            self.fill = fill.fill
            self.putOff = putOff
            offset = fill.offset
            self.bytes = Mutex(bytes)
        }
    }

    private struct State: Sendable {
        var pieces: [Piece] = []
        /// What the thread is writing a piece of.
        var current: PutOff?
        var isAsleep = false
        /// True while somebody waits for the end of the current piece.
        var isAwaited = false
        var isStopped = false
        var spares: [[UInt8]] = []
    }

    /// Pieces that wait at most: while one is written, two are at hand, and more would only take
    /// memory; measured with 1 to 32 transfers, eight gain nothing.
    static let limit = 3

    private let state = Mutex(State())
    private let wake: Latch
    private let done: Latch

    init() throws(SystemError) {
        wake = try Latch()
        done = try Latch()
    }

    // MARK: The thread

    func run() {
        while true {
            let (piece, isStopped) = state.withLock { state -> (Piece?, Bool) in
                guard !state.isStopped else { return (nil, true) }
                guard !state.pieces.isEmpty else {
                    state.isAsleep = true
                    return (nil, false)
                }
                let piece = state.pieces.removeFirst()
                state.current = piece.putOff
                return (piece, false)
            }
            if isStopped { return }
            guard let piece else {
                _ = wake.wait(atMost: .seconds(3600 as Int64))
                continue
            }
            write(piece)
            let mustTell = state.withLock { state -> Bool in
                state.current = nil
                defer { state.isAwaited = false }
                return state.isAwaited
            }
            if mustTell { done.open() }
        }
    }

    func stop() {
        let mustWake = state.withLock { state -> Bool in
            state.isStopped = true
            state.pieces = []
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake { wake.open() }
    }

    /// Writes a piece, unless one before it failed, and keeps its buffer.
    private func write(_ piece: Piece) {
        var bytes: [UInt8] = []
        piece.bytes.withLock { swap(&bytes, &$0) }
        if piece.putOff.state.withLock({ $0.failure == nil }) {
            let failure = Self.append(bytes, of: piece)
            let end = piece.offset + Int64(bytes.count)
            piece.putOff.state.withLock { state in
                state.failure = failure
                if failure == nil { state.written = end }
            }
            if failure != nil { piece.putOff.whenFailed() }
        }
        keep(&bytes)
    }

    private static func append(_ bytes: borrowing [UInt8], of piece: Piece) -> SystemError? {
        bytes.withUnsafeBytes { raw in
            do throws(SystemError) {
                try piece.object.append(raw, at: piece.offset, by: piece.fill)
                return nil
            } catch {
                return error
            }
        }
    }

    // MARK: Those who put off

    /// Takes a piece over, with its bytes; false where the queue is full.
    func add(_ bytes: inout [UInt8], of fill: FillWriter, _ putOff: PutOff) -> Bool {
        let mustWake = state.withLock { state -> Bool? in
            guard state.pieces.count < Self.limit, !state.isStopped else { return nil }
            var taken: [UInt8] = []
            swap(&taken, &bytes)
            state.pieces.append(Piece(consume taken, of: fill, putOff))
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake == true { wake.open() }
        return mustWake != nil
    }

    /// Returns once everything that was put off of a fill is in the file, or cannot be.
    ///
    /// The piece that is being written is waited for; those that wait are written here, after it,
    /// since a watermark passes over no gap.
    func settle(_ putOff: PutOff) {
        while true {
            let mine = state.withLock { state -> [Piece]? in
                if state.current === putOff {
                    state.isAwaited = true
                    return nil
                }
                guard state.pieces.contains(where: { $0.putOff === putOff }) else { return [] }
                let mine = state.pieces.filter { $0.putOff === putOff }
                state.pieces.removeAll { $0.putOff === putOff }
                return mine
            }
            guard let mine else {
                _ = done.wait(atMost: .seconds(3600 as Int64))
                continue
            }
            for piece in mine { write(piece) }
            return
        }
    }

    // MARK: Buffers

    /// Spare ones at most: as many as wait, are written and are gathered at a time.
    private static let mostSpares = limit + 2

    func takeSpare() -> [UInt8]? { state.withLock { $0.spares.popLast() } }

    func keep(_ buffer: inout [UInt8]) {
        buffer.removeAll(keepingCapacity: true)
        state.withLock { state in
            guard state.spares.count < Self.mostSpares else { return }
            var kept: [UInt8] = []
            swap(&kept, &buffer)
            state.spares.append(kept)
        }
    }

    func dropSpares() {
        let dropped = state.withLock { state in
            defer { state.spares = [] }
            return state.spares
        }
        // Outside the lock.
        _ = consume dropped
    }
}
