import URISyntax

/// Saving a shifted window across restarts, as a playlist with private comments.
extension TimeShift {
    /// Returns all remembered segments as a playlist with private comments.
    ///
    /// Stored on disk and passed to `init(snapshot:)` at the next start.
    package func snapshot() -> [UInt8] {
        guard let first = segments.first else { return [] }
        var output = Array("#EXTM3U\n".utf8)
        let longest = segments.lazy.map(\.duration).max() ?? .zero
        newestWindow.appendHead(
            longest, first, .live, isLive: true, isSnapshot: true, to: &output)
        output += savedNumbers.lines
        var writer = TimeShiftWriter(output: output)
        var expected: TimeShiftNote?
        for segment in segments {
            let note = TimeShiftNote(
                epoch: segment.epoch, originNumber: segment.originNumber,
                generation: segment.generation, marks: segment.marks)
            if note != expected { writer.append(Array(note.line.utf8)) }
            expected = note.next
            for line in dateRanges.lines(before: segment.number) { writer.append(line) }
            writer.write(segment, isGap: segment.isGap, keepsGaps: true)
        }
        if isEnded { writer.append(Array("#EXT-X-ENDLIST\n".utf8)) }
        return writer.output
    }

    /// What the tags of the playlist do not tell of the window as a whole.
    private var savedNumbers: SnapshotNumbers {
        var numbers = SnapshotNumbers()
        numbers[.listEpoch] = listEpoch.map { Int($0.number) }
        numbers[.privateEnd] = privateEnd
        numbers[.droppedCount] = droppedCount > 0 ? droppedCount : nil
        numbers[.skippedCount] = skippedCount > 0 ? skippedCount : nil
        let isOwn = originDiscontinuity == segments.last?.discontinuity
        numbers[.originDiscontinuity] = isOwn ? nil : originDiscontinuity
        let first = segments.first?.number ?? 0
        numbers[.listStart] = listStart > first ? listStart : nil
        return numbers
    }

    /// Restores the result of `snapshot`.
    ///
    /// Throws the error of a damaged snapshot.
    package init(snapshot: [UInt8], limits: Limits = Limits()) throws(PlaylistError) {
        self.init(limits: limits)
        guard !snapshot.isEmpty, let base = try? AbsoluteURL("http://snapshot.invalid/") else {
            return
        }
        restore(try LiveWindow(snapshot, base: base, PlaylistReading(limits: .own)))
    }

    /// Restores the segments of a snapshot.
    mutating func restore(_ window: LiveWindow) {
        newestWindow.takeHead(of: window)
        listEpoch = window.saved[.listEpoch].map { Epoch(number: UInt32(clamping: $0)) }
        privateEnd = window.saved[.privateEnd]
        droppedCount = window.saved[.droppedCount] ?? 0
        skippedCount = window.saved[.skippedCount] ?? 0
        var note = TimeShiftNote(
            epoch: 0, originNumber: window.segments.first?.originNumber ?? 0, generation: 0)
        for seen in window.segments {
            note = seen.note ?? note
            let discontinuity = discontinuity(of: seen)
            let isPlaceholder = seen.url.map(SegmentPlaceholder.isUsed) ?? false
            var segment = TimeShiftSegment(
                number: seen.originNumber, originNumber: note.originNumber, epoch: note.epoch,
                generation: note.generation, discontinuity: discontinuity,
                url: isPlaceholder ? nil : seen.url, byteRange: seen.byteRange,
                duration: seen.duration, date: seen.date ?? nextDate(discontinuity),
                isGap: seen.isGap, isPlaceholder: isPlaceholder,
                uri: seen.uri,
                lines: isPlaceholder ? [] : seen.lines, hasOwnDate: seen.hasOwnDate,
                context: seen.context)
            segment.marks = note.marks
            remembered.append(segment)
            for range in seen.dateRanges { dateRanges.note(range, at: seen.originNumber) }
            epoch = note.epoch
            note = note.next
        }
        newestWindow.start = segments.last.map { $0.number + 1 } ?? 0
        originDiscontinuity =
            window.saved[.originDiscontinuity] ?? segments.last?.discontinuity ?? 0
        // That of a damaged snapshot would hide what is merged later.
        listStart = min(window.saved[.listStart] ?? 0, windowStart)
    }

    /// Returns the discontinuity sequence number of the next segment.
    ///
    /// Each step is written as a line of its own: a damaged snapshot has no more than a live window,
    /// and a segment that lacks a number has that of the one before.
    private func discontinuity(of seen: LiveWindow.Segment) -> Int {
        guard let last = segments.last?.discontinuity else { return seen.originDiscontinuity }
        return last + min(max(seen.originDiscontinuity - last, 0), limits.discontinuityStep)
    }
}
