// The readers of objects, so that a flight stops when its bytes are no longer needed.
import HeapModule
import Numbers
import Synchronization

/// The readers of all objects, by generation, since a descriptor may outlive the object's place in
/// the store.
///
/// Any thread may use it.
package final class Readers: Sendable {
    /// The range that one reader still needs.
    private struct Interest {
        var position: Int64
        /// Exclusive; nil for the end of the body.
        let end: Int64?

        func needsBytes(from watermark: Int64) -> Bool { end.map { $0 > watermark } ?? true }
    }

    /// Identifies one reader.
    package struct ID: Hashable, Sendable {
        fileprivate let number: UInt64
    }

    /// A reader reports its progress in steps of this many bytes.
    package static let step: Int64 = 256 << 10

    /// The most bytes that a reader offers to its connection at a time: what it may be sending lies
    /// within this and a step after its reported position.
    package static let longestOffer: Int64 = 4 << 20

    /// A flight that waits for readers to approach.
    private struct Watch {
        let positions: ClosedRange<Int64>
        let watermark: Int64
        let wake: @Sendable () -> Void

        func isFired(by reader: Interest) -> Bool {
            positions.contains(reader.position) && reader.needsBytes(from: watermark)
        }
    }

    /// The position of a reader at the time when this mark was made.
    private struct Mark: Comparable {
        let position: Int64
        let id: ID

        static func < (one: Mark, other: Mark) -> Bool { one.position < other.position }
    }

    /// The readers of one object.
    private struct Group {
        private(set) var interests: [ID: Interest] = [:]
        /// The positions of all readers, and former ones, which are dropped when they come to the
        /// top; nil until the least is asked for, as it is only of objects that are not stored.
        private var marks: Heap<Mark>?

        mutating func put(_ interest: Interest, _ id: ID) {
            interests[id] = interest
            mark(interest.position, id)
        }

        mutating func move(_ id: ID, to position: Int64) {
            guard let known = interests.index(forKey: id) else { return }
            interests.values[known].position = position
            mark(position, id)
        }

        mutating func remove(_ id: ID) { interests[id] = nil }

        private mutating func mark(_ position: Int64, _ id: ID) {
            guard marks != nil else { return }
            marks?.insert(Mark(position: position, id: id))
            // Former positions of readers far ahead never come to the top.
            if marks?.count ?? 0 > 2 * interests.count + 64 { marks = ordered() }
        }

        private func ordered() -> Heap<Mark> {
            Heap(interests.map { Mark(position: $0.value.position, id: $0.key) })
        }

        /// Returns the least position.
        ///
        /// Takes logarithmic time per change, since each of many readers asks for it at each step;
        /// a single reader needs no order.
        mutating func least() -> Int64? {
            if interests.count == 1 { return interests.first?.value.position }
            if marks == nil { marks = ordered() }
            while let first = marks?.min {
                if interests[first.id]?.position == first.position { return first.position }
                marks?.removeMin()
            }
            return nil
        }
    }

    private struct Shared {
        var groups: [UInt64: Group] = [:]
        /// Only paused flights have watches, so these are few.
        var watches: [UInt64: [Watch]] = [:]

        /// Removes and returns the watches that an event fires: a reader entered, moved or left.
        mutating func fired(_ generation: UInt64, by id: ID) -> [Watch] {
            guard let waiting = watches[generation] else { return [] }
            let reader = groups[generation]?.interests[id]
            let isFired = { (watch: Watch) in reader.map { watch.isFired(by: $0) } ?? true }
            let left = waiting.filter { !isFired($0) }
            watches[generation] = left.isEmpty ? nil : left
            return waiting.filter(isFired)
        }
    }

    private let shared = Mutex(Shared())
    private let last = Atomic<UInt64>(0)

    package init() {}

    /// Adds a reader.
    package func enter(_ generation: UInt64, from start: Int64, to end: Int64?) -> ID {
        let id = ID(number: last.add(1, ordering: .relaxed).newValue)
        change(generation, by: id) {
            $0.groups[generation, default: Group()].put(Interest(position: start, end: end), id)
        }
        return id
    }

    /// Updates a reader's position.
    package func move(_ id: ID, of generation: UInt64, to position: Int64) {
        change(generation, by: id) { $0.groups[generation]?.move(id, to: position) }
    }

    /// Removes a reader.
    package func leave(_ id: ID, of generation: UInt64) {
        change(generation, by: id) { shared in
            shared.groups[generation]?.remove(id)
            if shared.groups[generation]?.interests.isEmpty == true {
                shared.groups[generation] = nil
            }
        }
    }

    /// Changes a reader, and wakes the flights that waited for the change.
    private func change(_ generation: UInt64, by id: ID, _ body: (inout Shared) -> Void) {
        let fired = shared.withLock { shared in
            body(&shared)
            return shared.fired(generation, by: id)
        }
        for watch in fired { watch.wake() }
    }

    /// Reserves bytes for a reader that has not started, until the hold is released.
    ///
    /// The range ends at `end`, exclusive; nil means the end of the body. A flight that has reached
    /// it need not continue for this reader.
    package func hold(_ generation: UInt64, from start: Int64, to end: Int64?) -> Hold {
        Hold(readers: self, generation: generation, id: enter(generation, from: start, to: end))
    }

    /// A reader's registration before its first read.
    ///
    /// Between finding an object and reading it, bytes that are not stored would otherwise be
    /// released along with what the other readers have read.
    package final class Hold: Sendable {
        private let readers: Readers
        private let generation: UInt64
        private let id: ID

        fileprivate init(readers: Readers, generation: UInt64, id: ID) {
            self.readers = readers
            self.generation = generation
            self.id = id
        }

        deinit { readers.leave(id, of: generation) }
    }

    /// Returns the position of the reader furthest behind, as it was reported last; nil without
    /// readers.
    package func least(_ generation: UInt64) -> Int64? {
        shared.withLock { $0.groups[generation]?.least() }
    }

    /// Returns what each reader still needs, up to `Int64.max` for the end of the body; in no order
    /// and in time for each of them.
    package func needs(_ generation: UInt64) -> [Range<Int64>] {
        shared.withLock { shared in
            shared.groups[generation]?.interests.values.map { reader in
                reader.position..<max(reader.position, reader.end ?? .max)
            } ?? []
        }
    }

    /// Returns the position of each reader, as it was reported last; in time for each of them.
    package func positions(_ generation: UInt64) -> [ID: Int64] {
        shared.withLock { shared in
            shared.groups[generation]?.interests.mapValues { $0.position } ?? [:]
        }
    }

    /// Returns the position of the reader furthest behind of those that are within `range` and need
    /// bytes after it; nil if none is.
    package func least(_ generation: UInt64, within range: Range<Int64>) -> Int64? {
        shared.withLock { shared in
            shared.groups[generation]?.interests.values.lazy.filter { reader in
                range.contains(reader.position) && reader.needsBytes(from: range.upperBound)
            }.map(\.position).min()
        }
    }

    /// Returns the number of readers.
    package func count(_ generation: UInt64) -> Int {
        shared.withLock { $0.groups[generation]?.interests.count ?? 0 }
    }

    /// True if any reader needs bytes from `watermark` on and is not so far ahead of it that it
    /// gets a flight of its own.
    package func isWanted(_ generation: UInt64, at watermark: Int64, within distance: Int64) -> Bool
    {
        let foremost = watermark.addingSaturated(distance)
        return shared.withLock { shared in
            shared.groups[generation]?.interests.values.contains { reader in
                reader.needsBytes(from: watermark) && reader.position <= foremost
            } ?? false
        }
    }

    /// Returns the position of the foremost reader that depends on a flight at `watermark`; nil if
    /// none.
    package func lead(_ generation: UInt64, at watermark: Int64, within distance: Int64) -> Int64? {
        let foremost = watermark.addingSaturated(distance)
        return shared.withLock { shared in
            shared.groups[generation]?.interests.values.lazy.filter { reader in
                reader.needsBytes(from: watermark) && reader.position <= foremost
            }.map(\.position).max()
        }
    }

    /// Calls `wake` once, on any thread, when a reader that needs bytes from `watermark` on reaches
    /// one of `positions`, or when any reader leaves.
    ///
    /// If such a reader is there already, or there are no readers, `wake` is called immediately. A
    /// reader that needs only bytes before the watermark does not count: a flight there would be
    /// woken again and again while that reader stays where it is.
    package func watch(
        _ generation: UInt64, for positions: ClosedRange<Int64>, at watermark: Int64,
        wake: @escaping @Sendable () -> Void
    ) {
        let watch = Watch(positions: positions, watermark: watermark, wake: wake)
        let isThere = shared.withLock { shared in
            let readers = shared.groups[generation]?.interests.values
            guard let readers, !readers.contains(where: { watch.isFired(by: $0) }) else {
                return true
            }
            shared.watches[generation, default: []].append(watch)
            return false
        }
        if isThere { wake() }
    }
}
