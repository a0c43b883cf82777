import Logging
import Posix
import Synchronization

/// Saves long URLs in the index, and deletes the oldest.
///
/// Owned by the store thread's loop.
final class LongURLWriter {
    private let core: StoreCore
    /// True while long URLs wait for the next tick, since the index rejected them.
    @exclusivity(unchecked) private(set) var fails = false
    /// Those saved in this run, in units of `LongURLSize`.
    private var saved = 0
    /// The value of `saved` when the oldest were last deleted.
    private var trimmed = 0

    init(core: StoreCore) { self.core = core }

    /// Saves those that are not in the index yet; the next tick tries again if that fails.
    func save() {
        do {
            while case let batch = core.unsavedLongURLs.withLock({ $0.next() }), !batch.isEmpty {
                try core.index.saveLongURLs(batch, now: .now())
                core.unsavedLongURLs.withLock { $0.noteSaved(batch) }
                saved += batch.reduce(0) { $0 + LongURLSize.units(of: $1.url) }
                // The first trim of a run waits for the end: meanwhile a kill loses what waits.
                if saved > step { try trim() }
            }
            try trim()
            fails = false
        } catch {
            core.unsavedLongURLs.withLock { $0.noteFailure() }
            core.noteIndexFailure(error)
            if !fails {
                core.log.error(
                    "cannot save the short names of long URLs: links are written in full",
                    metadata: ["error": "\(error)"])
            }
            fails = true
            if ObjectIndex.isLackOfRoom(error) { try? core.index.emptyLog() }
            core.reopenIndex(after: error)
        }
    }

    /// The oldest are deleted after each tenth of the limit.
    private var step: Int { max(1, core.configuration.longURLLimit / 10) }

    /// Deletes the oldest after the first one of a run, and at each step.
    private func trim() throws {
        let step = step
        let steps = { (units: Int) in (units + step - 1) / step }
        if steps(saved) != steps(trimmed) {
            if try core.index.trimLongURLs(keeping: core.configuration.longURLLimit) {
                core.longURLVersion.add(1, ordering: .releasing)
            }
            try noteCrowding(now: .now())
        }
        trimmed = saved
    }

    /// Notes until when more short names would displace those in use.
    ///
    /// Players of films do not load a playlist again. Three fifths of the table are for long URLs
    /// in use. The rest has room for those that are saved before this is noted: a step, and those
    /// that wait in memory; and for those that are too long for a link.
    private func noteCrowding(now: WallTime) throws {
        let configuration = core.configuration
        let last = try core.index.longURLTime(beyond: configuration.longURLLimit / 5 * 3)
        // A time in the future is one from before the clock was set back.
        let until = last.map { min($0, now) + configuration.longURLUse }
        core.longURLsCrowdedUntil.store(until?.nanoseconds ?? .min, ordering: .relaxed)
    }
}
