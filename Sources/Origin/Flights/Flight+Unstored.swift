import CachePolicy
import HLS
import Model
import Posix
import Reactor
import Store

/// The facts about a body that is not stored, for `UnstoredBody`, and what it decides.
extension Flight {
    private var window: Int64 { UnstoredBody.window(readAhead: services.settings.readAhead) }

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
        object.punch(outside: kept.ranges(for: services.readers.needs(object.generation)))
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

    /// What lies between the slowest reader and the watermark; nil if that is less than readers may
    /// report late.
    ///
    /// Of a body in several files nothing is freed in front of a reader, however long it pauses.
    private var gap: UnstoredGap? {
        guard let object, !object.isStorable, !object.isSpread, machine.extent == .bounded,
            machine.isKnownAsMedia, let stretch = stretchAtHand,
            stretch.upperBound - stretch.lowerBound > UnstoredBody.margin,
            let slowest = services.readers.least(object.generation, within: stretch)
        else { return nil }
        return UnstoredGap(slowest: slowest, written: stretch.upperBound, window: window)
    }

    /// True if a reader has read all that was fetched, as far as readers have reported.
    var isStarving: Bool {
        guard let object, let written = body.writer?.written,
            let lead = services.readers.lead(
                object.generation, at: written, within: reach)
        else { return false }
        return written - lead < Readers.step
    }

    /// True if the transfer has to wait for its slowest reader; leaves that one behind if it may.
    func mustAwaitSlowest() -> Bool {
        guard let gap, let object else { return false }
        let step = gap.step(
            isStarving: isStarving, mayLeaveBehind: mayLeaveBehind,
            isOnShortDisk: object.isOnShortDisk)
        switch step {
        case .goOn: return false
        case .wait: return true
        case .free(let kept):
            _ = free(object, but: kept)
            return false
        }
    }

    /// Looks for the slowest reader of a transfer that waits for it, and leaves that one behind if
    /// it has not moved for long and another one waits for bytes.
    ///
    /// - Parameter start: when the transfer was paused.
    /// - Returns: what it has done, or is to do.
    func lookForSlowest(since start: Monotonic) -> UnstoredBody.Look {
        guard let object else { return .wait }
        let now = table.loop.now
        let look = unstored.look(
            at: gap, positions: services.readers.positions(object.generation),
            isStarving: isStarving, mayLeaveBehind: mayLeaveBehind,
            isOnShortDisk: object.isOnShortDisk, waited: now - start,
            patience: services.settings.readAheadPatience, now: now)
        if case .free(let kept) = look { _ = free(object, but: kept) }
        return look
    }
}
