import HLS
import HTTP
import Library
import Model
import Numbers

/// The origin's window as the fetches of its segments see it.
///
/// A value without clock.
struct FetchWindow: Equatable {
    /// The number of the first segment in the window.
    private(set) var start = 0
    /// Segments before this number may be gone before they are requested.
    private var lateEnd = 0

    /// The least length of a window whose first segment counts as about to leave.
    private static let leastLength = 4

    init() {}

    /// - Parameters:
    ///   - start: the number of the first segment in the window.
    ///   - end: the number after the last segment.
    init(start: Int, end: Int) {
        self.start = start
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
        guard piece.role == .segment, number < lateEnd else { return .inTime }
        return number >= start.subtractingSaturated(ShiftedList.grace) ? .late : .over
    }

    /// True if the failure of a piece's fetch says that the origin has removed the segment.
    ///
    /// A segment in the window may not be there yet, or not on every server of the origin.
    func isGone(_ piece: TimeShiftFetches.Piece, after failure: ProxyFailure) -> Bool {
        piece.role == .segment && piece.number < start && failure.fault == .origin
            && [.notFound, .gone].contains(failure.originStatus)
    }
}
