/// The bytes that the segments of a window take in a playlist.
///
/// An origin decides how long its URIs and keys are: counting segments alone would let 50,000 of
/// them take gigabytes.
extension TimeShift {
    /// Returns the bytes that a segment takes after another one: its own, and its context if that
    /// begins with it.
    private func size(
        of segment: TimeShiftSegment, after previous: TimeShiftSegment?
    ) -> Int {
        let begins = previous.map { $0.context !== segment.context } ?? true
        return segment.byteCount + (begins ? segment.context.byteCount : 0)
    }

    /// Appends a segment.
    mutating func append(_ segment: TimeShiftSegment) {
        byteCount += size(of: segment, after: segments.last)
        segments.append(segment)
    }

    /// Measures all segments anew.
    mutating func measure() {
        byteCount = 0
        for index in segments.indices {
            byteCount += size(of: segments[index], after: index > 0 ? segments[index - 1] : nil)
        }
    }

    /// Subtracts the segments before an index, which are about to be dropped.
    mutating func forgetSize(before end: Int) {
        for index in 0..<end {
            byteCount -= size(of: segments[index], after: index > 0 ? segments[index - 1] : nil)
        }
        guard end < segments.count, segments[end].context === segments[end - 1].context else {
            return
        }
        // The context begins with the next segment now.
        byteCount += segments[end].context.byteCount
    }

    /// The number of the oldest segments that are beyond the limit of bytes; never the newest.
    var excessCount: Int {
        var excess = byteCount - limits.byteCount
        var count = 0
        while excess > 0, count < segments.count - 1 {
            excess -= segments[count].byteCount
            let (context, next) = (segments[count].context, segments[count + 1].context)
            if context !== next { excess -= context.byteCount }
            count += 1
        }
        return count
    }
}
