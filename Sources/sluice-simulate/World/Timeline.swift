// The world's scheduled actions, ordered by time and then by scheduling.
import HeapModule

/// Actions with their due times.
struct Timeline {
    private struct Entry: Comparable {
        let time: Int64
        let number: UInt64
        let action: () -> Void

        static func == (a: Entry, b: Entry) -> Bool { a.number == b.number }

        static func < (a: Entry, b: Entry) -> Bool { (a.time, a.number) < (b.time, b.number) }
    }

    private var heap = Heap<Entry>()
    private var count: UInt64 = 0

    /// The time of the earliest action; nil if there is none.
    var next: Int64? { heap.min?.time }

    mutating func add(at time: Int64, _ action: @escaping () -> Void) {
        count += 1
        heap.insert(Entry(time: time, number: count, action: action))
    }

    /// Removes and returns the earliest action if it is due.
    mutating func popDue(at now: Int64) -> (() -> Void)? {
        guard let next, next <= now else { return nil }
        return heap.popMin()?.action
    }
}
