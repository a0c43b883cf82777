// Writes bodies to files on a separate thread, so that the receiving thread continues meanwhile.
//
// A good part of a transfer's processor time is the copy into the page cache: several times the
// rest where a virtual machine must first get memory back from its host. With one thread that
// receives and another that writes, a transfer uses two processors.
import Glibc
package import Posix
import Reactor
import Synchronization

/// A thread with a short queue of pieces to write, and buffers to gather pieces in.
///
/// One thread enqueues and settles pieces: that of the loop that owns the flights. The queue is
/// bounded; when it is full, the loop's thread writes the piece itself, which slows it down to the
/// pace of the disk.
///
/// The thread ends with the deinitialization of the writer; pieces still in the queue are dropped.
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

    /// Returns an empty buffer: the spare one used last, or a new one with room for `capacity`
    /// bytes.
    package func takeBuffer(capacity: Int) -> [UInt8] {
        if let spare = queue.takeSpare() { return spare }
        var made: [UInt8] = []
        made.reserveCapacity(capacity)
        return made
    }

    /// Empties a buffer and keeps it for reuse, up to a small number of spare buffers.
    package func giveBack(_ buffer: inout [UInt8]) {
        var returned: [UInt8] = []
        swap(&returned, &buffer)
        queue.keep(&returned)
    }

    /// Releases all spare buffers.
    package func dropBuffers() { queue.dropSpares() }
}

/// The write progress of one fill whose pieces are written by the thread.
final class BackgroundWrite: Sendable {
    struct State: Sendable {
        /// The end of the bytes that are in the file.
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

/// The queue, shared by the writer thread and the threads that enqueue pieces.
final class PieceQueue: Sendable {
    /// Bytes on their way into the file.
    ///
    /// A class, so that it holds the only reference to its buffer, which can then be reused.
    final class Piece: Sendable {
        let object: StoredObject
        let fill: FillID
        let backgroundWrite: BackgroundWrite
        let offset: Int64
        let bytes: Mutex<[UInt8]>

        init(_ bytes: consuming [UInt8], of fill: FillWriter, _ backgroundWrite: BackgroundWrite) {
            object = fill.object
            self.fill = fill.fill
            self.backgroundWrite = backgroundWrite
            offset = fill.offset
            self.bytes = Mutex(bytes)
        }
    }

    private struct State: Sendable {
        var pieces: [Piece] = []
        /// The fill of the piece that the thread is writing.
        var current: BackgroundWrite?
        var isAsleep = false
        /// True while a thread waits for the end of the current piece.
        var isAwaited = false
        var isStopped = false
        var spares: [[UInt8]] = []
    }

    /// The maximum number of queued pieces: two are ready while one is written, and more would only
    /// take memory; measured with 1 to 32 transfers, eight gain nothing.
    static let limit = 3

    private let state = Mutex(State())
    private let wake: ThreadSemaphore
    private let done: ThreadSemaphore

    init() throws(SystemError) {
        wake = try ThreadSemaphore()
        done = try ThreadSemaphore()
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
                state.current = piece.backgroundWrite
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
            if mustTell { done.signal() }
        }
    }

    func stop() {
        let mustWake = state.withLock { state -> Bool in
            state.isStopped = true
            state.pieces = []
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake { wake.signal() }
    }

    /// Writes a piece, unless an earlier piece of its fill failed, and keeps its buffer for reuse.
    private func write(_ piece: Piece) {
        var bytes: [UInt8] = []
        piece.bytes.withLock { swap(&bytes, &$0) }
        if piece.backgroundWrite.state.withLock({ $0.failure == nil }) {
            let failure = Self.append(bytes, of: piece)
            let end = piece.offset + Int64(bytes.count)
            piece.backgroundWrite.state.withLock { state in
                state.failure = failure
                if failure == nil { state.written = end }
            }
            if failure != nil { piece.backgroundWrite.whenFailed() }
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

    // MARK: Producers

    /// Enqueues a piece and takes its bytes; returns false if the queue is full.
    func add(_ bytes: inout [UInt8], of fill: FillWriter, _ backgroundWrite: BackgroundWrite)
        -> Bool
    {
        let mustWake = state.withLock { state -> Bool? in
            guard state.pieces.count < Self.limit, !state.isStopped else { return nil }
            var taken: [UInt8] = []
            swap(&taken, &bytes)
            state.pieces.append(Piece(consume taken, of: fill, backgroundWrite))
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if mustWake == true { wake.signal() }
        return mustWake != nil
    }

    /// Returns once every queued piece of a fill is in the file or has failed.
    ///
    /// Waits for the piece that is being written, then writes the queued pieces on the calling
    /// thread, in order, since a watermark may not pass over a gap.
    func drain(_ backgroundWrite: BackgroundWrite) {
        while true {
            let mine = state.withLock { state -> [Piece]? in
                if state.current === backgroundWrite {
                    state.isAwaited = true
                    return nil
                }
                guard state.pieces.contains(where: { $0.backgroundWrite === backgroundWrite })
                else { return [] }
                let mine = state.pieces.filter { $0.backgroundWrite === backgroundWrite }
                state.pieces.removeAll { $0.backgroundWrite === backgroundWrite }
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

    /// The maximum number of spare buffers: one per queued piece, one being written, one being
    /// gathered.
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
