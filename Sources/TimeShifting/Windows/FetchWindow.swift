import HLS
import HTTP
import Library
import Model
import Numbers
import Posix

/// The origin's window as the fetches of its segments see it.
///
/// A value without clock.
struct FetchWindow: Equatable {
    /// The number of the first segment in the window.
    private(set) var start = 0
    /// Segments before this number may be gone before they are requested.
    private var lateEnd = 0
    /// The number after the last segment in the window.
    private var end = 0
    /// The ring of names that the list uses; nil if it uses none.
    private var ring: Ring?

    /// The names of a list that gives each again after a number of segments.
    struct Ring: Equatable {
        /// The number of names.
        let length: Int
        /// The duration of its segments, on average.
        let duration: Interval
    }

    /// The least length of a window whose first segment counts as about to leave.
    private static let leastLength = 4
    /// The shortest ring: in a shorter one, no name would last until its segment is fetched.
    private static let leastRing = 3
    /// The least duration of a segment that counts.
    private static let leastDuration = Interval.milliseconds(100)
    /// How many of the newest segments show the duration of those to come: a single one may be a
    /// splice of a few frames.
    private static let typicalCount = 8

    init() {}

    /// The origin's newest window in a longer one.
    init(of shift: TimeShift) {
        guard let newest = shift.segments.last else {
            self.init()
            return
        }
        let recent = shift.segments.suffix(Self.typicalCount)
        let duration = recent.reduce(Duration.zero) { $0 + $1.duration } / recent.count
        // A stream that has ended gives no name again.
        let distance = shift.isEnded ? nil : shift.nameDistance
        self.init(
            start: shift.windowStart, end: newest.number.addingSaturated(1),
            ring: distance.map { Ring(length: $0, duration: Interval(duration)) })
    }

    /// - Parameters:
    ///   - start: the number of the first segment in the window.
    ///   - end: the number after the last segment.
    ///   - ring: the ring of names that the list uses; nil if it uses none. One that is no longer
    ///     than the window is none: a segment has its name several times in it.
    init(start: Int, end: Int, ring: Ring? = nil) {
        self.start = start
        self.end = end
        if let ring, ring.length > end.subtractingSaturated(start), ring.length >= Self.leastRing {
            self.ring = ring
        }
        let isLong = start > 0 && end.subtractingSaturated(start) >= Self.leastLength
        lateEnd = isLong ? start.addingSaturated(1) : start
    }

    /// Returns how much time there is to fetch a piece.
    ///
    /// Origins keep segments for a while after the window has moved on, and need not. Keys and
    /// initialization sections are always in time: other segments may need them too.
    func standing(
        of piece: TimeShiftFetches.Piece
    ) -> FetchQueue<TimeShiftFetches.Piece>.Standing {
        let number = piece.number
        guard !mayBeReused(piece, after: .zero) else { return .over }
        guard piece.role == .segment, number < lateEnd else { return .inTime }
        return number >= start.subtractingSaturated(ShiftedList.grace) ? .late : .over
    }

    /// True if the origin may have given the name of a segment to a later one.
    ///
    /// One segment may be listed since the window was read and the file of the next one be open,
    /// and another one for each duration that has passed.
    ///
    /// - Parameters:
    ///   - piece: the segment; any other piece has no name of a ring.
    ///   - age: the time since the window was read.
    /// - Returns: false for a list without a ring of names.
    func mayBeReused(_ piece: TimeShiftFetches.Piece, after age: Interval) -> Bool {
        guard piece.role == .segment, let ring else { return false }
        let duration = max(ring.duration, Self.leastDuration)
        let passed = Int(clamping: age.nanoseconds / duration.nanoseconds)
        let newest = end.addingSaturated(1).addingSaturated(max(passed, 0))
        return piece.number.addingSaturated(ring.length) <= newest
    }

    /// True if the failure of a piece's fetch says that the origin has removed the segment.
    ///
    /// A segment in the window may not be there yet, or not on every server of the origin.
    func isGone(_ piece: TimeShiftFetches.Piece, after failure: ProxyFailure) -> Bool {
        piece.role == .segment && piece.number < start && failure.fault == .origin
            && [.notFound, .gone].contains(failure.originStatus)
    }
}
