// Which recordings have their figures noted next.
import Posix

/// The turns in which the figures of running recordings are noted: all once in an interval.
///
/// The figures are summed up over all segments of a window, up to 200,000: all recordings in one
/// turn could keep the keeper from reloading for longer than an origin lists a segment.
struct FigureTurns {
    static let interval = Interval.seconds(10 as Int64)
    /// The most recordings in a turn: with one a second, all that may run have theirs in time.
    static let mostInTurn = 4

    /// When the last interval began.
    private var began: Monotonic
    /// Those whose turn in this interval is still to come.
    private var waiting: ArraySlice<String> = []

    /// Creates turns whose first interval has just begun, so that the first of them comes after it.
    init(now: Monotonic) { began = now }

    /// Returns the recordings whose figures are noted in this turn; called once a second.
    mutating func next(of ids: some Sequence<String>, now: Monotonic) -> [String] {
        if waiting.isEmpty, now >= began + Self.interval {
            began = now
            waiting = ids.sorted()[...]
        }
        let chosen = Array(waiting.prefix(Self.mostInTurn))
        waiting = waiting.dropFirst(Self.mostInTurn)
        return chosen
    }
}
