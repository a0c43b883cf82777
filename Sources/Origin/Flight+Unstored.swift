import CachePolicy
import HLS
import Model
import Numbers
import Posix
import Store

/// The bound of a body that is not stored, whose readers may be far apart.
///
/// Each reader has a window of it. Where another request brings the same bytes, what lies between
/// the windows is freed, and a slow reader gets a flight of its own at the end of its window; while
/// the disk is short, that is near. Where none does, the flight waits for the slowest reader.
extension Flight {
    /// What readers report late, what they may be sending, and what comes while a transfer pauses.
    private static let windowMargin: Int64 = 8 << 20

    /// A flight waits no longer for a reader that makes no progress: server loops end most of these
    /// by then, and one stream of a connection may wait for another.
    static let readerPatience = Interval.seconds(60 as Int64)

    /// The window of one reader, without the bytes before it that a response is compared with.
    private var window: Int64 { table.settings.readAhead.addingSaturated(Self.windowMargin) }

    /// Frees what lies between the windows of readers, or at least what none of them needs, once
    /// the object has grown by a window.
    func leaveBehind(_ object: StoredObject) {
        let present = object.presentBytes
        let least = window.multipliedSaturated(by: 2)
        // Lower again after readers have left.
        unstoredBound = max(least, min(unstoredBound, present.addingSaturated(window)))
        guard present > unstoredBound, hasFreeableBody else { return }
        let (hasWindows, start) = (mayLeaveBehind, stretchAtHand?.lowerBound ?? 0)
        let isDone = object.punch(
            outside: windows(of: object) { needed in
                if hasWindows { return window }
                // A reader that was given up finds a broken body at its hole.
                return needed.lowerBound < start
                    ? start - needed.lowerBound
                    : KeptLengths.everything
            })
        guard isDone else { return }
        unstoredBound = max(least, object.presentBytes.addingSaturated(window))
    }

    /// Returns what stays for the readers, each of which needs no more than `length` bytes, and
    /// what a response is compared with.
    private func windows(
        of object: StoredObject, _ length: (Range<Int64>) -> Int64
    ) -> [Range<Int64>] {
        table.readers.needs(object.generation).map { needed in
            let start = needed.lowerBound
            let end = min(needed.upperBound, start.addingSaturated(length(needed)))
            return max(0, start - StoredBody.mostCompared)..<end
        }
    }

    /// True if bytes in the middle of the body can be freed, and the daemon itself reads none.
    private var hasFreeableBody: Bool {
        guard machine.extent == .bounded, !machine.isOpaque, machine.isKnownAsMedia,
            resource.role != .json, resource.live.growth == nil, let object
        else { return false }
        return !object.isSpread && !object.isDiscarded
    }

    /// True if a later request brings what was freed of the body, from any byte on.
    ///
    /// Without a known length, a transfer that fills a hole does not end at the stored bytes behind
    /// it.
    private var mayLeaveBehind: Bool {
        guard hasFreeableBody, let facts = fillFacts, facts.total != nil else { return false }
        return machine.mayContinueLater(facts)
    }

    /// The present bytes up to the watermark.
    private var stretchAtHand: Range<Int64>? {
        guard let object, let written = body.writer?.written,
            let last = object.spans.ranges.last(where: { $0.contains(written - 1) })
        else { return nil }
        return last.lowerBound..<written
    }

    /// The position of a reader that the transfer has to wait for; nil if it may go on.
    ///
    /// All bytes from there to the watermark are present, so that it depends on no transfer. Of a
    /// body in several files nothing is freed in front of a reader, however long it pauses.
    var slowestToAwait: Int64? {
        guard let object, !object.isStorable, !object.isSpread, machine.extent == .bounded,
            machine.isKnownAsMedia, let stretch = stretchAtHand,
            stretch.upperBound - stretch.lowerBound > Self.windowMargin,
            let slowest = table.readers.least(object.generation, within: stretch)
        else { return nil }
        let length = stretch.upperBound - slowest
        if length > window.multipliedSaturated(by: 2), !mayLeaveBehind { return slowest }
        return length > Self.windowMargin && object.isOnShortDisk ? slowest : nil
    }

    /// True if the transfer has to wait for its slowest reader.
    ///
    /// Where another request brings it the rest, that reader is left behind as soon as another one
    /// waits for bytes.
    func mustAwaitSlowest() -> Bool {
        guard let slowest = slowestToAwait else { return false }
        guard isStarving, mayLeaveBehind else { return true }
        stopAwaiting(slowest)
        return false
    }

    /// True if a reader has read all that was fetched, as far as readers have reported.
    var isStarving: Bool {
        guard let object, let written = body.writer?.written,
            let lead = table.readers.lead(
                object.generation, at: written, within: table.reach(of: self))
        else { return false }
        return written - lead < Readers.step
    }

    /// Frees what only the slowest reader has yet to read, if another one waits for bytes.
    ///
    /// It requests the rest when it gets there, and sees a broken body where no response proves to
    /// be that rest.
    ///
    /// - Parameters:
    ///   - slowest: its position.
    ///   - stuck: the positions whose readers have all not moved for as long as a flight waits.
    func stopAwaiting(_ slowest: Int64, stuck: Set<Int64> = []) {
        guard isStarving, let object, let written = body.writer?.written else { return }
        let kept = KeptLengths(
            slowest: slowest, written: written, window: window,
            stuck: mayLeaveBehind ? nil : stuck)
        _ = object.punch(outside: windows(of: object) { kept.length(for: $0) })
    }
}
