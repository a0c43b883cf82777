package import DurableState
import Posix

/// Pins: titles whose objects are never evicted.
extension ObjectStore {
    /// Pins a title, so that it is never evicted; blocks until the pin is on the disk.
    ///
    /// `url` is its entry, for listings; `keys` are objects that belong to it although they were
    /// first fetched for another title.
    package func pin(title: UInt64, url: String, keys: [ObjectKey]) throws(StateFault) {
        let pin = Pin(title: title, url: url, since: .now(), keys: keys)
        let unnamed = try core.pins.add(pin)
        onStoreThread { worker, loop in
            worker.followPin(of: title, unnamed: unnamed)
            worker.scheduleTick(loop)
        }
    }

    /// Unpins a title and makes other changes of the state in the same commit; blocks until that is
    /// on the disk.
    ///
    /// - Returns: false if it was not pinned; the other changes are made anyway.
    @discardableResult
    package func unpin(
        title: UInt64, with others: [StateChange] = []
    ) throws(StateFault) -> Bool {
        guard let unnamed = try core.pins.remove(title, with: others) else { return false }
        onStoreThread { worker, loop in
            worker.followPin(of: title, unnamed: unnamed)
            worker.scheduleTick(loop)
        }
        return true
    }

    /// The pinned titles, in the order of pinning.
    package func pins() -> [Pin] { core.pins.all }

    /// The pin of a title; nil if it is not pinned.
    package func pin(of title: UInt64) -> Pin? { core.pins.pin(of: title) }

    /// True if an object is never evicted, since a pinned title has it.
    package func isPinned(_ object: StoredObject) -> Bool {
        core.pins.holds(object.key, ofTitle: object.title)
    }

    /// Returns true if a pinned title has an object, or a pin names it; for any thread.
    ///
    /// Does not hold the store, so that the store can hold it.
    package var isPinnedNow: @Sendable (_ key: ObjectKey, _ title: UInt64) -> Bool {
        { [pins = core.pins] key, title in pins.holds(key, ofTitle: title) }
    }

    /// Returns how many pins name an object; for any thread.
    ///
    /// Does not hold the store, so that the store can hold it.
    package var namingsNow: @Sendable (_ key: ObjectKey) -> Int {
        { [pins = core.pins] key in pins.count(naming: key) }
    }
}
