import Numbers
import URISyntax

/// Joining windows of one list that were kept apart, as under URLs with different tokens.
extension TimeShift {
    /// Puts the segments of an older window before those of this one, whose numbers stay.
    ///
    /// A hole between them gets placeholders, like any other.
    ///
    /// - Parameter older: a window of the same list, with the same numbers.
    /// - Returns: false if the older window does not lead up to this one; nothing has changed then.
    package mutating func prepend(_ older: TimeShift) -> Bool {
        guard let first = segments.first, older.leads(to: first), let last = older.segments.last
        else { return false }
        let missed = first.number - last.number - 1
        guard missed <= limits.placeholderCount else { return false }
        var older = older
        if missed > 0 { older.appendPlaceholders(missed, after: last) }
        let added = older.segments.prefix { $0.number < first.number }
        remembered.prepend(added)
        dateRanges.add(older.dateRanges, before: first.number)
        // The list begins earlier, this once: with what players of the older window had.
        listStart = older.listStart
        privateEnd = [privateEnd, older.privateEnd].compactMap { $0 }.max()
        droppedCount = droppedCount.addingSaturated(older.droppedCount)
        skippedCount = skippedCount.addingSaturated(older.skippedCount)
        dropExcess()
        return true
    }

    /// True if the segments before `next` are the last of this window, possibly with a hole.
    private func leads(to next: TimeShiftSegment) -> Bool {
        guard let first = segments.first, let last = segments.last, first.number < next.number
        else { return false }
        if let known = segment(number: next.number) {
            return known.originNumber == next.originNumber && known.epoch == next.epoch
                && known.discontinuity == next.discontinuity && known.isSame(as: next)
        }
        let step = next.discontinuity - last.discontinuity
        return next.number - last.number == next.originNumber - last.originNumber
            && last.epoch == next.epoch && (0...limits.discontinuityStep).contains(step)
    }
}
