// The types that readers and fills of one object exchange.
import Synchronization

/// The identifier of one fill of one object.
package struct FillID: Hashable, Sendable {
    let number: UInt64
}

/// Why a waiter was woken.
package enum WakeEvent: Sendable {
    /// The awaited byte is present, or the awaited offset turned out to be the end.
    case progress
    /// A fill ended or the object was discarded: look at the object again.
    case fillEnded
}

/// A reader's request to be woken once.
package struct Waiter: Sendable {
    /// Unique in the process; identifies the waiter when it is cancelled.
    package let id: UInt64
    /// Called once, on the thread that caused the event, outside every lock of the store.
    ///
    /// It must be quick and must not block: normally it enqueues a job on the reader's loop.
    package let wake: @Sendable (WakeEvent) -> Void

    private static let last = Atomic<UInt64>(0)

    package init(_ wake: @escaping @Sendable (WakeEvent) -> Void) {
        id = Self.last.add(1, ordering: .relaxed).newValue
        self.wake = wake
    }
}

/// A missing byte, and what is known about the fill that will bring it.
package struct Hole: Sendable, Equatable {
    /// The running fill that will reach the offset soonest, if any covers it.
    package let fill: FillID?
    /// Bytes between that fill's watermark and the offset; 0 without a fill.
    package let fillDistance: Int64
    /// The end that the origin has stated for that fill; nil for the end of the body, and without a
    /// fill.
    package var fillEnd: Int64?
    /// The first present offset after the hole, or the total, or nil while both are unknown.
    package let end: Int64?
    /// The number of fills that had ended when this was read.
    ///
    /// Passed to `wait`, it ensures that the end of a fill between reading and waiting is not
    /// missed.
    package let endedFills: UInt64
}

/// What a reader finds at an offset.
package enum ReadState: Sendable, Equatable {
    /// This many bytes can be read from the offset on; at least one.
    case present(count: Int64)
    /// The offset is the end of the body.
    case end
    /// The byte is not there yet.
    case hole(Hole)
}

/// The outcome of asking to be woken.
package enum WaitOutcome: Sendable, Equatable {
    /// There is something to look at already; the waiter was not registered.
    case ready
    /// The waiter will be called once.
    case waiting
}

/// The last fill that ended with an error.
package struct FillFailure: Sendable {
    package let error: any Error
    /// The fill as it was when it ended.
    let ended: Fill
    /// The number of fills that had ended, this one included; compare with `Hole.endedFills`.
    package let endedFills: UInt64

    /// Returns the bytes between the end of what the fill wrote and an offset; nil if it was not to
    /// bring the byte there.
    package func distance(to offset: Int64) -> Int64? {
        ended.covers(offset) ? offset - ended.watermark : nil
    }
}
