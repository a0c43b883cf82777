import Glibc
import Logging
import Numbers
import Posix
import Retention
import Synchronization

/// The stored objects in the order in which they are evicted, and their deletion.
///
/// The retention policy selects the victims among objects that are neither held nor pinned. Owned
/// by the store thread's loop.
final class Evictor {
    private let core: StoreCore
    private let index: IndexWriter
    var policy: any RetentionPolicy
    private var pinnedTitles: Set<UInt64> = []
    private var pinnedNames: Set<UInt128> = []
    /// What the pinned objects take that `policy` knows.
    private var pinnedBytes: Int64 = 0 { didSet { tellBytes() } }
    private var refused: RefusedVictims
    /// True if the disk refused to delete the last victim, and the search must end.
    private var isRefused = false
    /// The number of objects that were examined for victims since `evict` was last called.
    private(set) var examined = 0
    /// The victim whose row could not be read; it is the next one.
    private var unreadVictim: UInt128?
    /// True if the objects of pinned titles could not all be found.
    private var lacksPins = false
    /// When they are looked for again.
    private var nextPins = Monotonic(nanoseconds: .min)
    private static let pinInterval = Interval.seconds(1 as Int64)
    private var lagging = LaggingSpace()
    /// True if the last check found the disk short, and not the budget alone.
    private var isDiskShort = false
    /// Returns what is free on the disk; replaced by tests.
    var readFree: () -> FreeRoom?
    /// The names whose bytes are still to be added, and the sum of the others; nil unless a sum is
    /// under way.
    private var pinSum: (names: [UInt128], bytes: Int64)?
    /// Returns the keys of the indexed objects of a title; replaced by tests.
    var readKeys: (_ title: UInt64) throws -> [ObjectKey]
    /// True if the disk may report freed space later; set by tests.
    var isDiskLate: Bool

    init(core: StoreCore, index: IndexWriter) {
        self.core = core
        self.index = index
        policy = core.configuration.makePolicy(core.usage.budget)
        refused = RefusedVictims(interval: core.configuration.deletionInterval)
        readFree = { [folder = core.folder] in freeRoom(at: folder.path) }
        readKeys = { [core] title in try core.index.keys(ofTitle: title) }
        isDiskLate = reportsFreedSpaceLate(at: core.folder.path)
    }

    // MARK: Objects

    func insert(_ row: StoreEntry) {
        let name = row.key.name
        if pinnedNames.contains(name) {
            pinnedBytes &+= row.bytes &- (policy.bytes(of: name) ?? 0)
        }
        policy.insert(name, Retained(row))
        notePin(of: row)
    }

    func remove(_ key: ObjectKey) {
        if pinnedNames.contains(key.name) { pinnedBytes &-= policy.bytes(of: key.name) ?? 0 }
        policy.remove(key.name)
        // What a pin names stays pinned when it is fetched again.
        if !core.pins.holds(key, ofTitle: 0) { release(key.name) }
    }

    /// Restarts with only these objects; the pins are loaded by `reloadPins`.
    func startAnew(with kept: [StoreEntry] = []) {
        policy = core.configuration.makePolicy(core.usage.budget)
        (unreadVictim, lagging) = (nil, LaggingSpace())
        refused = RefusedVictims(interval: core.configuration.deletionInterval)
        isDiskLate = reportsFreedSpaceLate(at: core.folder.path)
        for row in kept { policy.insert(row.key.name, Retained(row)) }
        countPinned()
    }

    /// Marks an object of a pinned title as pinned.
    func notePin(of row: StoreEntry) {
        if pinnedTitles.contains(row.title) { hold(row.key.name) }
    }

    /// Keeps an object from being evicted.
    private func hold(_ name: UInt128) {
        if pinnedNames.insert(name).inserted { pinnedBytes &+= policy.bytes(of: name) ?? 0 }
    }

    /// Lets an object be evicted again.
    private func release(_ name: UInt128) {
        if pinnedNames.remove(name) != nil { pinnedBytes &-= policy.bytes(of: name) ?? 0 }
    }

    /// Tells those who need room what is pinned, and what may be evicted for them.
    func tellBytes() {
        core.usage.pinned = pinnedBytes
        core.usage.evictable = policy.bytes &- pinnedBytes
    }

    /// Adds up what the pinned objects take, after the policy has learned of many objects at once.
    func countPinned() {
        pinnedBytes = pinnedNames.reduce(0) { $0 &+ (policy.bytes(of: $1) ?? 0) }
    }

    /// Loads the pins, and finds the objects of pinned titles in the index.
    ///
    /// If the index cannot be read, what was pinned stays pinned until it can.
    func reloadPins() {
        let pins = core.pins.all
        pinnedTitles = Set(pins.map(\.title)).subtracting([0])
        var names: Set<UInt128> = []
        lacksPins = false
        var isWhole = true
        for pin in pins {
            names.formUnion(pin.keys.map(\.name))
            guard pin.title != 0, isWhole else { continue }
            do {
                names.formUnion(try readKeys(pin.title).lazy.map(\.name))
            } catch {
                noteUnreadPin(error)
                isWhole = false
            }
        }
        pinnedNames = isWhole ? names : pinnedNames.union(names)
        // Objects that are not in the index yet.
        for row in index.rows.values.lazy.compactMap(\.row) { notePin(of: row) }
        countPinned()
    }

    /// Follows a change of one pin; reads the objects of its title if that is pinned newly, or not
    /// any more.
    ///
    /// - Parameters:
    ///   - title: the title, whose pin may have changed again meanwhile.
    ///   - unnamed: what the pin named before the change, and none named after it.
    /// - Returns: false if what was pinned before still is.
    @discardableResult
    func followPin(of title: UInt64, unnamed: [ObjectKey]) -> Bool {
        // Of another pinned title, it is noted again when it would be the next victim.
        for key in unnamed where !core.pins.holds(key, ofTitle: 0) { release(key.name) }
        let pin = core.pins.pin(of: title)
        for key in pin?.keys ?? [] { hold(key.name) }
        let mayFree = pin == nil || !unnamed.isEmpty
        guard title != 0, pinnedTitles.contains(title) != (pin != nil) else { return mayFree }
        if pin == nil { pinnedTitles.remove(title) } else { pinnedTitles.insert(title) }
        do {
            for key in try readKeys(title) { followPin(of: key, in: title) }
        } catch {
            noteUnreadPin(error)
        }
        for row in index.rows.values.lazy.compactMap(\.row) where row.title == title {
            followPin(of: row.key, in: title)
        }
        return mayFree
    }

    /// Follows the change of its title's pin for one object.
    private func followPin(of key: ObjectKey, in title: UInt64) {
        if core.pins.holds(key, ofTitle: title) {
            hold(key.name)
        } else {
            release(key.name)
        }
    }

    private func noteUnreadPin(_ error: any Error) {
        index.noteUnreadable(error)
        if !ObjectIndex.isCorruption(error) { lacksPins = true }
        nextPins = .now() + Self.pinInterval
    }

    /// Adds up the bytes of pinned objects until `end`; reads the index.
    ///
    /// - Returns: the sum; nil if there are more, for the next call.
    func sumPins(until end: Monotonic) -> Int64? {
        var sum = pinSum ?? (names: Array(pinnedNames), bytes: 0)
        // A second reference would have the names copied.
        pinSum = nil
        while let name = sum.names.popLast() {
            let row = try? index.row(ofName: name)
            sum.bytes = sum.bytes.addingSaturated(row?.bytes ?? 0)
            if !sum.names.isEmpty, .now() >= end {
                pinSum = sum
                return nil
            }
        }
        return sum.bytes
    }

    /// Has the next sum begin anew.
    func forgetPinSum() { pinSum = nil }

    // MARK: Eviction

    /// Evicts objects until `end` or until nothing is short.
    ///
    /// - Parameters:
    ///   - end: when to stop.
    ///   - wanted: the room to make, in bytes beyond current usage.
    /// - Returns: the bytes freed; nil if nothing can be freed.
    func evict(until end: Monotonic, wanted: Int64) -> Int64? {
        examined = 0
        if lacksPins, .now() >= nextPins { reloadPins() }
        refused.retry(at: .now())
        var freed: Int64 = 0
        repeat {
            guard isShort(wanted) else { return freed }
            switch nextVictim() {
            case .none: return freed == 0 ? nil : freed
            case .gone: continue
            case .row(let row):
                if let bytes = evict(row) {
                    freed = freed.addingSaturated(bytes)
                } else if isRefused {
                    return freed == 0 ? nil : freed
                }
            }
        } while .now() < end
        return freed
    }

    /// True if objects exceed the budget, or if the disk lacks bytes of the required free space, or
    /// files.
    func isShort(_ wanted: Int64) -> Bool {
        let usage = core.usage
        isDiskShort = false
        usage.awaitsDisk = false
        if usage.used.addingSaturated(wanted) > usage.budget - usage.headroom
            || usage.wantedFiles > 0
        {
            return true
        }
        guard let free = readFree() else { return false }
        lagging.observe(free: free.bytes, at: .now())
        // Caps the setting, so that the sum cannot overflow.
        let least = min(usage.minFree, 1 << 60) + wanted
        // Requests that are refused until the disk reports more are not added up.
        let ahead = lagging.bytes > 0 ? min(Self.ahead, usage.budget / 8) : 0
        isDiskShort = least + ahead > free.bytes.addingSaturated(lagging.bytes)
        usage.awaitsDisk = !isDiskShort && least > free.bytes
        return isDiskShort || FileFloor.isShort(free.files)
    }

    /// The bytes freed beyond what is short while the disk has not reported all that was freed.
    private static let ahead: Int64 = 64 << 20

    /// Evicts objects, as far as possible, until this many files can be created.
    func makeRoom(files wanted: Int64) {
        let isMissing = { [core] in
            freeRoom(at: core.folder.path)?.files.map { $0 < wanted } ?? false
        }
        for _ in 0..<2 * wanted {
            guard isMissing() else { return }
            switch nextVictim() {
            case .none: return
            case .gone: continue
            case .row(let row): if evict(row) == nil, isRefused { return }
            }
        }
    }

    /// What is to be deleted next.
    private enum Victim {
        case row(StoreEntry)
        /// It has no row any more, or was pinned meanwhile.
        case gone
        /// Everything is held or pinned, or the index cannot be read.
        case none
    }

    /// Removes the next victim from the order of eviction and returns it.
    private func nextVictim() -> Victim {
        guard let next = unreadVictim ?? search() else { return .none }
        unreadVictim = nil
        do {
            guard let row = try index.row(ofName: next) else { return .gone }
            // Also what a damaged index did not name as pinned.
            guard !core.pins.holds(row.key, ofTitle: row.title) else {
                insert(row)
                hold(next)
                return .gone
            }
            return .row(row)
        } catch {
            index.noteUnreadable(error)
            // A damaged row never comes back.
            guard !ObjectIndex.isCorruption(error) else { return .gone }
            unreadVictim = next
            return .none
        }
    }

    /// Has the policy select a victim.
    private func search() -> UInt128? {
        var count = 0
        let found = policy.nextVictim(now: WallTime.now().retentionTime) { name in
            count += 1
            return pinnedNames.contains(name) || refused.contains(name)
                || core.table.withShard(of: name) { !$0.isIdle(name) }
        }
        examined += count
        return found
    }

    /// Adapts to a changed budget.
    func followBudget() { policy.capacity = core.usage.budget }

    /// Deletes one object unless it is in use.
    ///
    /// - Returns: the bytes freed; nil if the object stays.
    private func evict(_ row: StoreEntry) -> Int64? {
        let key = row.key
        isRefused = false
        let before = isDiskShort && isDiskLate ? readFree() : nil
        let outcome = core.table.withName(of: key) { () -> (StoredObject?, Int64)? in
            let (isBusy, open) = core.table.withShard(of: key) { shard in
                shard.isIdle(key.name) ? (false, shard.remove(key.name)) : (true, nil)
            }
            guard !isBusy, let latest = index.latest(row) else { return nil }
            do throws(SystemError) {
                try removeFile(core.folder.objectPath(key))
            } catch {
                if refused.isNews(key.name) {
                    core.log.error("cannot evict an object", metadata: ["error": "\(error)"])
                }
                isRefused = refused.noteRefusal(of: key.name, error, at: .now())
                return nil
            }
            core.undeleted.remove(key)
            core.noteRemoval(of: key, releasing: open == nil ? latest.bytes : 0)
            guard let open else { return (nil, latest.bytes) }
            return open.state.withLock { state in
                state.place = .unlinked
                return (open, state.charge)
            }
        }
        guard let (object, bytes) = outcome else {
            policy.insert(key.name, Retained(row))
            return nil
        }
        refused.noteDeletion(of: key.name)
        // This is the last reference: closing the file frees the space.
        _ = consume object
        if let before, let after = readFree() {
            lagging.noteDeletion(
                of: bytes, before: before.bytes, after: after.bytes, at: .now())
        }
        core.usage.noteFileFreed()
        core.counters.note { $0.evictions += 1 }
        return bytes
    }
}

extension Retained {
    init(_ row: StoreEntry) {
        self.init(
            bytes: row.bytes, title: row.title, kind: row.kind, isRead: row.isRead,
            lastUsed: (row.knownUse ?? .now()).retentionTime)
    }
}

extension WallTime {
    /// Seconds since 1970, the time unit of retention.
    var retentionTime: UInt32 { UInt32(clamping: seconds) }
}
