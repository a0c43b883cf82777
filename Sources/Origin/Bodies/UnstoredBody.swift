import Model
import Numbers
import Posix

/// The policy of a body that is not stored, whose readers may be far apart.
///
/// Each reader has a window of it. Where another request brings the same bytes, what lies between
/// the windows is freed, and a slow reader gets a flight of its own at the end of its window, which
/// is short while the disk is short of room. Where none does, the flight waits for the slowest
/// reader.
struct UnstoredBody {
    /// What a flight that waits does when it looks for its slowest reader again.
    enum Look: Equatable {
        /// Waits, if that reader is still to be awaited.
        case wait
        /// Frees all but what readers keep, then decides again.
        case free(KeptBytes)
        /// Ends the transfer if another request brings the rest: readers request it when they get
        /// there.
        case end
    }

    /// What readers report late, what they may be sending, and what comes while a transfer pauses.
    static let margin: Int64 = 8 << 20

    /// A flight waits no longer for a reader that makes no progress: server loops end most of these
    /// by then, and one stream of a connection may wait for another.
    static let readerPatience = Interval.seconds(60 as Int64)

    /// Beyond this many bytes the body leaves its slower readers behind.
    private var bound: Int64 = 0
    /// Where readers are while the flight waits, and looks for the slowest one; nil while it does
    /// not.
    private var standing: StandingReaders?

    /// Returns the window of one reader, without the bytes before it that a response is compared
    /// with.
    static func window(readAhead: Int64) -> Int64 { readAhead.addingSaturated(margin) }

    /// Leaves slower readers behind once the body has grown by a window, but not within two.
    ///
    /// Called for each written piece: what is expensive to know is asked for when it decides.
    ///
    /// - Parameters:
    ///   - present: the number of its bytes that are present.
    ///   - window: the window of one reader.
    ///   - isFreeable: whether bytes in the middle can be freed.
    ///   - mayLeaveBehind: whether another request brings readers the rest.
    ///   - start: where the present bytes up to the watermark begin.
    /// - Returns: what readers keep; nil if nothing is freed.
    mutating func kept(
        of present: Int64, window: Int64, isFreeable: @autoclosure () -> Bool,
        mayLeaveBehind: @autoclosure () -> Bool, from start: @autoclosure () -> Int64
    ) -> KeptBytes? {
        // Lower again after readers have left.
        bound = Self.bound(min(bound, present.addingSaturated(window)), window: window)
        guard present > bound, isFreeable() else { return nil }
        return mayLeaveBehind() ? .windows(window) : .needed(from: start())
    }

    /// Notes that all was freed but what readers keep: so many bytes.
    mutating func noteFreed(leaving present: Int64, window: Int64) {
        bound = Self.bound(present.addingSaturated(window), window: window)
    }

    private static func bound(_ bound: Int64, window: Int64) -> Int64 {
        max(window.multipliedSaturated(by: 2), bound)
    }

    // MARK: Waiting

    /// Begins to wait for the slowest reader.
    ///
    /// - Returns: false if the flight waits already: its transfer was resumed, and is paused again
    ///   before the next look.
    mutating func beginWaiting() -> Bool {
        guard standing == nil else { return false }
        standing = StandingReaders()
        return true
    }

    /// Forgets where readers were, since the flight waits for none.
    mutating func endWaiting() { standing = nil }

    /// Returns the time until a flight looks for its slowest reader again.
    ///
    /// A transfer that cannot be ended may wait for as long as its player pauses.
    static func pauseBeforeLook(afterWaiting waited: Interval) -> Interval {
        .milliseconds(waited < readerPatience ? 50 : 500)
    }

    /// Decides what a flight that waits does now.
    ///
    /// - Parameters:
    ///   - gap: what lies between the slowest reader and the end of what was fetched; nil if the
    ///     flight waits for no reader in particular.
    ///   - positions: the positions of all readers.
    ///   - isStarving: whether a reader has read all that was fetched; it would only request again
    ///     what an ended transfer would have brought.
    ///   - mayLeaveBehind: whether another request brings readers the rest.
    ///   - isOnShortDisk: whether the disk of the body is short of room.
    ///   - waited: how long the transfer has been paused.
    ///   - patience: how long it may be.
    ///   - now: the present time.
    /// - Returns: the decision.
    mutating func look(
        at gap: UnstoredGap?, positions: @autoclosure () -> [Readers.ID: Int64], isStarving: Bool,
        mayLeaveBehind: @autoclosure () -> Bool, isOnShortDisk: @autoclosure () -> Bool,
        waited: Interval, patience: Interval, now: Monotonic
    ) -> Look {
        if let gap,
            gap.isAwaited(mayLeaveBehind: mayLeaveBehind(), isOnShortDisk: isOnShortDisk())
        {
            let stuck = standing?.stuck(at: positions(), now: now) ?? []
            if isStarving, stuck.contains(gap.slowest) {
                return .free(.shares(gap, stuck: mayLeaveBehind() ? nil : stuck))
            }
        }
        return waited >= patience && !isStarving ? .end : .wait
    }
}
