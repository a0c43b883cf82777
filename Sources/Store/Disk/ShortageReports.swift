import Logging
import Numbers
import Posix
import Reactor

/// Tells the log why evictions make no room: once, and again after a change that may have ended it.
///
/// Owned by the store thread's loop.
final class ShortageReports {
    private let core: StoreCore
    private let evictor: Evictor
    /// True once the log has told that the disk has no room; until it has some, or limits change.
    private var isDiskTold = false
    /// When that may be told again: a disk that is nearly full has room again and again.
    private var nextDisk = Monotonic(nanoseconds: .min)
    /// True once the log has told that pinned titles take all room; until some are unpinned, or
    /// limits change.
    private var arePinsTold = false
    private var isSummingPins = false
    /// When the pinned bytes may be summed up again: each pinned object is a query.
    private var nextPinSum = Monotonic(nanoseconds: .min)
    private static let diskInterval = Interval.seconds(600 as Int64)
    private static let pinSumInterval = Interval.seconds(30 as Int64)
    private static let mostPinPause = Interval.seconds(600 as Int64)

    init(core: StoreCore, evictor: Evictor) {
        self.core = core
        self.evictor = evictor
    }

    // MARK: The disk

    /// Notes that evictions have made room.
    func noteRoom() { isDiskTold = false }

    /// Has the next shortage of the disk told at once, since limits have changed.
    func forgetDisk() { (isDiskTold, nextDisk) = (false, Monotonic(nanoseconds: .min)) }

    /// Logs, once until the disk has room again, that it has none and that evictions make none.
    ///
    /// - Parameters:
    ///   - wanted: the bytes of the objects that are refused.
    ///   - evictable: the bytes that evictions may still free.
    func tellDisk(for wanted: Int64 = 0, after evictable: Int64 = 0) {
        let now = Monotonic.now()
        guard !isDiskTold, now >= nextDisk, let free = evictor.readFree() else { return }
        let most = free.bytes.addingSaturated(max(0, evictable))
        let lacksBytes = most < core.usage.minFree.addingSaturated(wanted)
        guard lacksBytes || (FileFloor.isReached(free.files) && evictable <= 0) else { return }
        isDiskTold = true
        nextDisk = now + Self.diskInterval
        core.log.warning(
            lacksBytes
                ? "the disk has less free than min-free, and what may be evicted does not make up for it: nothing new is stored; make room, or lower min-free"
                : "the disk can take no more files (inodes), and nothing may be evicted: nothing new is stored; make room",
            metadata: ["free_bytes": "\(free.bytes)", "min_free": "\(core.usage.minFree)"])
    }

    // MARK: Pins

    /// Has the next shortage for pins told at once, since pins or limits have changed.
    func forgetPins() {
        (arePinsTold, nextPinSum) = (false, Monotonic(nanoseconds: .min))
        evictor.forgetPinSum()
    }

    /// Logs, once, that pinned titles leave no room for anything else.
    func tellPins(_ loop: EventLoop) {
        let now = Monotonic.now()
        guard !arePinsTold, !isSummingPins, core.pins.count > 0, now >= nextPinSum else { return }
        isSummingPins = true
        sumPins(since: now, loop)
    }

    /// Adds up some of the pinned bytes, and continues in the loop's next turn: with a million pinned
    /// objects that takes half a minute.
    private func sumPins(since began: Monotonic, _ loop: EventLoop) {
        guard let pinned = evictor.sumPins(until: .now() + StoreWorker.evictionStep) else {
            loop.schedule(after: .zero) { [unowned self] loop in sumPins(since: began, loop) }
            return
        }
        isSummingPins = false
        let now = Monotonic.now()
        let pause = SearchPause.pause(after: now - began, atMost: Self.mostPinPause)
        nextPinSum = now + max(Self.pinSumInterval, pause)
        let budget = core.usage.budget
        // Otherwise what is in use takes the room, for as long as it is.
        guard pinned >= budget - budget / 8 else { return }
        arePinsTold = true
        core.log.warning(
            "pinned titles take the room of the cache: nothing new is stored; unpin some, or raise cache-size",
            metadata: ["pinned_bytes": "\(pinned)", "cache_size": "\(budget)"])
    }
}
