import Posix
import Synchronization

/// The long URLs kept in the index under short IDs.
extension ObjectStore {
    /// False while the index rejects long URLs or is far behind, so that only memory has their
    /// short names, and while others would displace those in use: links should then do without.
    package var takesLongURLs: Bool { takesLongURLs(at: .now()) }

    func takesLongURLs(at now: @autoclosure () -> WallTime) -> Bool {
        let crowded = WallTime(nanoseconds: core.longURLsCrowdedUntil.load(ordering: .relaxed))
        if crowded.nanoseconds != .min {
            // A longer time was noted before the clock was set back: the next step notes it anew.
            let left = crowded - now()
            guard left <= .zero || left > core.configuration.longURLUse else { return false }
        }
        return core.unsavedLongURLs.withLock { $0.hasRoom }
    }

    /// Changes when long URLs are deleted, and some time after they were saved: what was written
    /// with their short names before may lead nowhere, now or soon, and must be written anew, which
    /// saves them again.
    package var longURLVersion: UInt64 { core.longURLVersion.load(ordering: .acquiring) }

    /// Saves a URL under a short ID; `savedURL` finds it immediately, the disk has it a moment
    /// later.
    package func saveLongURL(id: [UInt8], url: String) {
        guard core.unsavedLongURLs.withLock({ $0.add(url, id: id) }) else { return }
        onStoreThread { worker, loop in worker.saveLongURLs(loop) }
    }

    /// Returns the URL saved under a short ID; nil if none is known.
    ///
    /// May block on the disk for one SQLite read.
    package func savedURL(id: [UInt8]) throws(UnreadableIndex) -> String? {
        if let url = core.unsavedLongURLs.withLock({ $0.urls[id] }) { return url }
        do {
            return try core.index.longURL(id: id)
        } catch {
            tellIndexFailure(error, to: "find a URL")
            throw UnreadableIndex()
        }
    }
}

/// The index cannot be read now: what it holds is not known.
package struct UnreadableIndex: Error, Sendable {}
