import CachePolicy
import HLS
import Model
import Numbers
import Posix
import Store

/// The bound of a body that is not stored, whose readers may be far apart.
///
/// Each reader has a window of it. Where another request brings the same bytes, what lies between
/// the windows is freed, and a slow reader gets a flight of its own at the end of its window. Where
/// none does, or the disk is short, the flight waits for the slowest reader.
extension Flight {
    /// What readers report late, what they may be sending, and what comes while a transfer pauses.
    private static let windowMargin: Int64 = 8 << 20

    /// A flight waits no longer for a reader that makes no progress: server loops end most of these
    /// by then, and one stream of a connection may wait for another.
    static let longestHold = Interval.seconds(60 as Int64)

    /// The window of one reader, without the bytes before it that a response is compared with.
    private var window: Int64 { table.settings.readAhead.addingSaturated(Self.windowMargin) }

    /// Frees what lies between the windows of readers, once the object has grown by a window.
    func leaveBehind(_ object: StoredObject) {
        let present = object.presentBytes
        let least = window.multipliedSaturated(by: 2)
        // Lower again after readers have left.
        unstoredBound = max(least, min(unstoredBound, present.addingSaturated(window)))
        guard present > unstoredBound, mayLeaveBehind,
            object.punch(outside: windows(of: object, window))
        else { return }
        unstoredBound = max(least, object.presentBytes.addingSaturated(window))
    }

    private func windows(of object: StoredObject, _ length: Int64) -> [Range<Int64>] {
        table.readers.positions(object.generation).map { position in
            max(0, position - StoredBody.mostCompared)..<position.addingSaturated(length)
        }
    }

    /// True if a later request brings the rest of the same body, from any byte on.
    private var mayLeaveBehind: Bool {
        guard machine.extent == .bounded, !machine.isOpaque, machine.isKnownAsMedia,
            machine.ranges == .taken, resource.role != .json, resource.live.growth == nil,
            let object, object.total != nil, !object.isSpread, !object.isDiscarded
        else { return false }
        return ObjectFacts.of(object)?.head.strongValidator != nil
    }

    /// The position of a reader that the transfer has to wait for; nil if it may go on.
    ///
    /// All bytes from there to the watermark are present, so that it depends on no transfer. Of a
    /// body in several files nothing is freed in front of a reader, however long it pauses.
    var slowestToAwait: Int64? {
        guard let object, !object.isStorable, !object.isSpread, machine.extent == .bounded,
            machine.isKnownAsMedia, let written = body.writer?.written,
            let stretch = object.spans.ranges.last(where: { $0.contains(written - 1) }),
            written - stretch.lowerBound > Self.windowMargin,
            let slowest = table.readers.least(
                object.generation, within: stretch.lowerBound..<written)
        else { return nil }
        let length = written - slowest
        if length > window.multipliedSaturated(by: 2), !mayLeaveBehind { return slowest }
        return length > Self.windowMargin && object.isOnShortDisk ? slowest : nil
    }

    /// Frees what only the slowest reader has yet to read, if the flight has others.
    ///
    /// It requests the rest when it gets there, and sees a broken body where no response proves to
    /// be that rest.
    func stopAwaiting(_ slowest: Int64) {
        guard let object, let written = body.writer?.written,
            table.readers.lead(object.generation, at: written, within: table.reach(of: self))
                ?? slowest > slowest
        else { return }
        _ = object.punch(
            outside: windows(of: object, Readers.longestOffer + 2 * Readers.step))
    }
}
