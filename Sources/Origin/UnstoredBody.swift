import Numbers

/// The policy of a body that is not stored, whose readers may be far apart.
///
/// Each reader has a window of it. Where another request brings the same bytes, what lies between
/// the windows is freed, and a slow reader gets a flight of its own at the end of its window; while
/// the disk is short, that is near. Where none does, the flight waits for the slowest reader.
struct UnstoredBody {
    /// What readers report late, what they may be sending, and what comes while a transfer pauses.
    static let margin: Int64 = 8 << 20

    /// Beyond this many bytes the body leaves its slower readers behind.
    private var bound: Int64 = 0

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
}
