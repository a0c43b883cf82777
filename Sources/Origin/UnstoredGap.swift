import Numbers

/// What lies between the slowest reader of a body that is not stored and the end of what was
/// fetched.
///
/// All of it is present, so that this reader depends on no transfer until it gets there. What is
/// expensive to know is asked for when it decides.
struct UnstoredGap {
    /// What a transfer does about the slowest reader.
    enum Step: Equatable {
        case goOn
        /// Waits until that reader has advanced.
        case wait
        /// Frees all but what readers keep, and goes on.
        case free(KeptBytes)
    }

    /// The position of the slowest reader.
    let slowest: Int64
    /// The end of what was fetched.
    let written: Int64
    /// The window of one reader.
    let window: Int64

    /// Decides about the slowest reader: where another request brings it the rest, it is left
    /// behind as soon as another one waits for bytes.
    ///
    /// - Parameters:
    ///   - isStarving: whether a reader has read all that was fetched.
    ///   - mayLeaveBehind: whether another request brings readers the rest.
    ///   - isOnShortDisk: whether the disk of the body is short of room.
    /// - Returns: what the transfer does.
    func step(
        isStarving: @autoclosure () -> Bool, mayLeaveBehind: @autoclosure () -> Bool,
        isOnShortDisk: @autoclosure () -> Bool
    ) -> Step {
        guard isAwaited(mayLeaveBehind: mayLeaveBehind(), isOnShortDisk: isOnShortDisk()) else {
            return .goOn
        }
        return isStarving() && mayLeaveBehind() ? .free(kept(stuck: nil)) : .wait
    }

    /// True if the transfer has to wait for the slowest reader, unless that is left behind.
    func isAwaited(
        mayLeaveBehind: @autoclosure () -> Bool, isOnShortDisk: @autoclosure () -> Bool
    ) -> Bool {
        let length = written - slowest
        if length > window.multipliedSaturated(by: 2), !mayLeaveBehind() { return true }
        return length > UnstoredBody.margin && isOnShortDisk()
    }

    /// What readers keep if the slowest one is left behind.
    ///
    /// It requests the rest when it gets there, and sees a broken body where no response proves to
    /// be that rest.
    ///
    /// - Parameter stuck: the positions whose readers have all not moved for as long as a flight
    ///   waits; nil if another request brings readers the rest.
    /// - Returns: what they keep.
    func kept(stuck: Set<Int64>?) -> KeptBytes {
        .lengths(KeptLengths(slowest: slowest, written: written, window: window, stuck: stuck))
    }
}
