import CachePolicy
import HLS
import Model
import Numbers
import Posix
import Store

/// The facts about a body that is not stored, for `UnstoredBody`, and what it decides.
extension Flight {
    /// A flight waits no longer for a reader that makes no progress: server loops end most of these
    /// by then, and one stream of a connection may wait for another.
    static let readerPatience = Interval.seconds(60 as Int64)

    private var window: Int64 { UnstoredBody.window(readAhead: table.settings.readAhead) }

    /// Frees what lies between the windows of readers, or at least what none of them needs, once
    /// the object has grown by a window.
    func leaveBehind(_ object: StoredObject) {
        let window = self.window
        let kept = unstored.kept(
            of: object.presentBytes, window: window, isFreeable: hasFreeableBody,
            mayLeaveBehind: mayLeaveBehind, from: stretchAtHand?.lowerBound ?? 0)
        guard let kept, free(object, but: kept) else { return }
        unstored.noteFreed(leaving: object.presentBytes, window: window)
    }

    /// Frees all but what readers keep.
    ///
    /// - Returns: false if another call would free more.
    private func free(_ object: StoredObject, but kept: KeptBytes) -> Bool {
        object.punch(outside: kept.ranges(for: table.readers.needs(object.generation)))
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
            stretch.upperBound - stretch.lowerBound > UnstoredBody.margin,
            let slowest = table.readers.least(object.generation, within: stretch)
        else { return nil }
        let length = stretch.upperBound - slowest
        if length > window.multipliedSaturated(by: 2), !mayLeaveBehind { return slowest }
        return length > UnstoredBody.margin && object.isOnShortDisk ? slowest : nil
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
        _ = free(object, but: .lengths(kept))
    }
}
