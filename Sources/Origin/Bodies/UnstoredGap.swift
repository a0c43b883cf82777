import Model
import Numbers

/// What lies between the slowest reader of a body that is not stored and the end of what was
/// fetched.
///
/// All of it is present, so that this reader depends on no transfer until it gets there. What is
/// expensive to know is asked for when it decides.
struct UnstoredGap: Equatable {
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

    /// What a reader may be sending.
    static let least = Readers.longestOffer + 2 * Readers.step

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
        return isStarving() && mayLeaveBehind() ? .free(.shares(self, stuck: nil)) : .wait
    }

    /// True if the transfer has to wait for the slowest reader, unless that is left behind.
    func isAwaited(
        mayLeaveBehind: @autoclosure () -> Bool, isOnShortDisk: @autoclosure () -> Bool
    ) -> Bool {
        let length = written - slowest
        if length > window.multipliedSaturated(by: 2), !mayLeaveBehind() { return true }
        return length > UnstoredBody.margin && isOnShortDisk()
    }

    /// Returns how many bytes from its position on a reader keeps of what it needs if the slowest
    /// one is left behind; `stuck` as in `KeptBytes.shares`.
    func length(for needed: Range<Int64>, stuck: Set<Int64>?) -> Int64 {
        let position = needed.lowerBound
        // It needs nothing more of the transfer.
        if needed.upperBound <= written { return KeptBytes.everything }
        if let stuck { return length(at: position, stuck) }
        if position == slowest { return Self.least }
        // Readers near the slowest one must not keep all the rest.
        let half = (written - slowest) / 2
        if position > slowest + half { return window }
        // One before the slowest has a flight of its own, which would fetch its window again.
        return max(Self.least, half, min(window, slowest - position))
    }

    /// Returns the length where nothing brings readers the rest.
    private func length(at position: Int64, _ stuck: Set<Int64>) -> Int64 {
        // It was given up before, and finds a broken body at its hole.
        if position < slowest { return slowest - position }
        // Those that stand near the slowest one would keep its rest.
        let isGivenUp = stuck.contains(position) && position - slowest <= 2 * Self.least
        return isGivenUp ? Self.least : KeptBytes.everything
    }
}
