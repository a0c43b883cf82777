// What takes too long for a server loop, or for the lock of a list.
import HLS
import Model
import Synchronization

extension ShiftedList {
    /// True if writing its text would block a server loop for too long.
    package var isLong: Bool { state.withLock { $0.shift.segments.count >= TextWorker.longWindow } }

    /// True if the next merge may make it long: it gets a placeholder for each segment by which
    /// another rendition is ahead.
    func isFarBehind(_ sibling: TimeShift?) -> Bool {
        guard let ahead = sibling?.segments.last?.number else { return false }
        let last = state.withLock { $0.shift.segments.last?.number }
        return last.map { ahead - $0 >= TextWorker.longWindow } ?? false
    }
}
