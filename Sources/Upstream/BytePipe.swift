// A bounded run of bytes from one thread to another: how bodies pass through that are not stored.
import Synchronization

/// One writer and one taker, each on its own thread; neither ever blocks.
///
/// The writer is told when it has filled the pipe and called back when there is room; the taker
/// takes all there is and is called back when there is more. Callbacks run on the other side's
/// thread, outside the lock: they send a job home and return.
///
/// Life: filled and emptied in turn, until the writer ends it (whole or broken) or the taker closes
/// it.
package final class BytePipe: Sendable {
    /// What a taker gets.
    package enum Step: Sendable, Equatable {
        /// At least one byte.
        case bytes([UInt8])
        /// Nothing yet.
        case wait
        /// All bytes were taken, and they are the whole.
        case end
        /// The writer could not go on; bytes before that have been taken.
        case broken
    }

    package typealias Callback = @Sendable () -> Void

    private enum Ending {
        case whole, broken
    }

    private struct State {
        var bytes: [UInt8] = []
        var ending: Ending?
        var isClosed = false
        var whenMore: Callback?
        var whenRoom: Callback?
    }

    private let state = Mutex(State())
    private let capacity: Int

    /// `capacity` is in bytes; one write may go over it.
    package init(capacity: Int = 1 << 16) {
        self.capacity = capacity
    }

    // MARK: Writer

    /// Adds bytes.
    ///
    /// - Returns: Whether there is room for more; where not, `whenRoom` is called once there is.
    package func write(_ bytes: UnsafeRawBufferPointer, whenRoom: @escaping Callback) -> Bool {
        let (more, hasRoom) = state.withLock { state -> (Callback?, Bool) in
            // Nobody takes them any more: what ends the writer is on its way.
            if state.isClosed || state.ending != nil { return (nil, true) }
            state.bytes.append(contentsOf: bytes)
            let hasRoom = state.bytes.count < capacity
            state.whenRoom = hasRoom ? nil : whenRoom
            return (state.whenMore.take(), hasRoom)
        }
        more?()
        return hasRoom
    }

    /// Calls back once the taker first asks for bytes.
    package func whenWanted(_ call: @escaping Callback) {
        state.withLock { $0.whenRoom = call }
    }

    /// Says that there is no more; nothing is called back after it.
    package func end(isWhole: Bool) {
        let more = state.withLock { state -> Callback? in
            if state.ending == nil { state.ending = isWhole ? .whole : .broken }
            state.whenRoom = nil
            return state.whenMore.take()
        }
        more?()
    }

    // MARK: Taker

    /// Takes all there is; after `wait`, `whenMore` is called once there is more.
    package func take(whenMore: @escaping Callback) -> Step {
        let (room, step) = state.withLock { state -> (Callback?, Step) in
            if !state.bytes.isEmpty {
                var taken: [UInt8] = []
                swap(&taken, &state.bytes)
                return (state.whenRoom.take(), .bytes(taken))
            }
            switch state.ending {
            case .whole: return (nil, .end)
            case .broken: return (nil, .broken)
            case nil:
                state.whenMore = whenMore
                return (state.whenRoom.take(), .wait)
            }
        }
        room?()
        return step
    }

    /// Lets go of everything: nothing more is taken.
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
