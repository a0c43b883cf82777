import CachePolicy
package import HLS
package import Model
import Store
import Synchronization
import URISyntax

/// Which segments of a longer window are really there: only what was fetched counts.
extension TimeShiftTable {
    /// The key that a resource of a role is stored under; `mark` tells what its name stands for.
    func storedKey(
        _ url: AbsoluteURL, _ session: Session, role: ResourceRole, mark: UInt32
    ) -> ObjectKey {
        var key = names.cacheKey(url, session: session, role: role)
        key.epoch = Epoch(number: mark)
        return ObjectKey(key)
    }

    /// Whether all that a segment needs to be played is stored, or on its way; opens files.
    package func isKept(_ segment: TimeShiftSegment, _ session: Session) -> Bool {
        guard let url = segment.url else { return false }
        let marks = segment.marks
        if let key = segment.keyURL,
            !isKept(storedKey(key, session, role: .key, mark: marks.key), whole: false)
        {
            return false
        }
        if let map = segment.mapURL,
            !isKept(
                storedKey(map, session, role: .initialization, mark: marks.map), whole: false)
        {
            return false
        }
        return isKept(
            storedKey(url, session, role: .segment, mark: marks.segment), segment.byteRange)
    }

    /// Whether the wanted bytes of an object are stored, or on their way.
    ///
    /// Sections and keys need not be `whole`: they are used as they were read, which may be by a range.
    private func isKept(_ key: ObjectKey, _ range: SubRange? = nil, whole: Bool = true) -> Bool {
        guard let object = store.peek(key) else { return false }
        if object.isComplete || (!whole && object.presentBytes > 0) { return true }
        guard let range else { return object.isFilling(from: 0) }
        return object.spans.contains(range.bytes)
            || object.isFilling(from: range.bytes.lowerBound)
    }
}

extension ShiftedList {
    /// A segment that left the origin's window is looked for this many segments longer: its fetch
    /// may be under way.
    static let grace = 8

    /// Looks for segments that have left the origin's window since the last look; some file opens.
    ///
    /// - Returns: true where what players get has changed.
    @discardableResult
    package func lookForKept(_ table: TimeShiftTable) -> Bool {
        let (shift, open) = state.withLock { state -> (TimeShift, Set<Int>) in
            let end = min(state.shift.windowStart, (state.shift.segments.last?.number ?? -1) + 1)
            if state.lookedTo < end {
                state.open.formUnion(state.lookedTo..<end)
                state.lookedTo = end
            }
            return (state.shift, state.open)
        }
        guard !open.isEmpty else { return false }
        var kept: Set<Int> = []
        var lost: Set<Int> = []
        for number in open {
            guard let segment = shift.segment(number: number) else {
                kept.insert(number)
                continue
            }
            if segment.isGap || segment.isPlaceholder {
                lost.insert(number)
            } else if table.isKept(segment, session) {
                kept.insert(number)
            } else if number < shift.windowStart - Self.grace {
                lost.insert(number)
            }
        }
        guard !kept.isEmpty || !lost.isEmpty else { return false }
        state.withLock { state in
            state.open.subtract(kept)
            state.open.subtract(lost)
            state.missing.formUnion(lost)
            state.change()
        }
        return true
    }

    /// Compares everything before the origin's window with the index.
    ///
    /// Blocks on the disk, for a second or two with a day of segments. What left the window just now is
    /// left to `lookForKept`, which gives it time. With `all` that, and the window itself, is looked at
    /// too.
    package func verify(_ table: TimeShiftTable, all: Bool = false) {
        let (shift, open, lookedTo) = state.withLock { ($0.shift, $0.open, $0.lookedTo) }
        let end = min(shift.windowStart, lookedTo)
        let old = shift.segments.filter { segment in
            !segment.isGap && (all || (segment.number < end && !open.contains(segment.number)))
        }
        var lost: Set<Int> = []
        for start in stride(from: 0, to: old.count, by: 500) {
            let some = old[start..<min(start + 500, old.count)]
            let keys = some.map { segment in
                segment.url.map {
                    table.storedKey($0, session, role: .segment, mark: segment.marks.segment)
                }
            }
            let rows = table.store.entries(of: keys.compactMap { $0 })
            var cursor = 0
            for (segment, key) in zip(some, keys) {
                guard key != nil else { continue }
                let row = rows[cursor]
                cursor += 1
                // The index learns of what came just now a moment later, and knows no ranges.
                if row?.isComplete != true, !table.isKept(segment, session) {
                    lost.insert(segment.number)
                }
            }
        }
        let gaps = shift.segments.lazy.filter { $0.isGap }.map(\.number)
        lost.formUnion(gaps)
        state.withLock { state in
            let known = state.missing.filter { $0 >= shift.windowStart }
            guard lost.union(known) != state.missing else { return }
            state.missing = lost.union(known)
            state.open.subtract(state.missing)
            state.change()
        }
    }
}
