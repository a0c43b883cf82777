// A bounded byte buffer between two threads, for bodies that are not stored.
import Synchronization

/// A pipe with one writer and one reader, each on its own thread; neither ever blocks.
///
/// The writer learns when it has filled the pipe, and is called back when there is room; the reader
/// takes all bytes at once, and is called back when there are more. Callbacks run on the other
/// side's thread, outside the lock: they must only enqueue a job on their own thread.
///
/// Life cycle: filled and emptied in turn, until the writer ends it (whole or broken) or the reader
/// closes it.
package final class BytePipe: Sendable {
    /// The result of a read.
    package enum Step: Sendable, Equatable {
        /// At least one byte.
        case bytes([UInt8])
        /// Nothing yet.
        case wait
        /// All bytes were taken, and they are complete.
        case end
        /// The writer failed; bytes before that have been taken.
        case broken
    }

    package typealias Callback = @Sendable () -> Void

    private struct State {
        var bytes: [UInt8] = []
        /// `end` or `broken`; nil while the writer may add bytes.
        var ending: Step?
        var isClosed = false
        var whenMore: Callback?
        var whenRoom: Callback?
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// `capacity` is in bytes; one write may exceed it.
    package init(capacity: Int = 1 << 16) {
        self.capacity = capacity
    }

    // MARK: Writer

    /// Adds bytes.
    ///
    /// - Returns: Whether there is room for more; if not, `whenRoom` is called once there is.
    package func write(_ bytes: UnsafeRawBufferPointer, whenRoom: @escaping Callback) -> Bool {
        let (more, hasRoom) = state.withLock { state -> (Callback?, Bool) in
            // The reader is gone; the writer is about to be stopped.
            if state.isClosed || state.ending != nil { return (nil, true) }
            state.bytes.append(contentsOf: bytes)
            let hasRoom = state.bytes.count < capacity
            state.whenRoom = hasRoom ? nil : whenRoom
            return (state.whenMore.take(), hasRoom)
        }
        more?()
        return hasRoom
    }

    /// Sets a callback for when the reader first asks for bytes.
    package func whenWanted(_ call: @escaping Callback) {
        state.withLock { $0.whenRoom = call }
    }

    /// Ends the pipe; there are no callbacks to the writer afterwards.
    package func end(isWhole: Bool) {
        let more = state.withLock { state -> Callback? in
            if state.ending == nil { state.ending = isWhole ? .end : .broken }
            state.whenRoom = nil
            return state.whenMore.take()
        }
        more?()
    }

    // MARK: Reader

    /// Takes all available bytes; after `wait`, `whenMore` is called once there are more.
    package func take(whenMore: @escaping Callback) -> Step {
        let (room, step) = state.withLock { state -> (Callback?, Step) in
            if !state.bytes.isEmpty {
                var taken: [UInt8] = []
                swap(&taken, &state.bytes)
                return (state.whenRoom.take(), .bytes(taken))
            }
            if let ending = state.ending { return (nil, ending) }
            state.whenMore = whenMore
            return (state.whenRoom.take(), .wait)
        }
        room?()
        return step
    }

    /// Closes the pipe on the reader's side and drops its bytes.
    package func close() {
        let room = state.withLock { state -> Callback? in
            state.isClosed = true
            state.bytes = []
            state.whenMore = nil
            return state.whenRoom.take()
        }
        room?()
    }
}
