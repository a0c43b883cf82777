// The world's scheduled actions, ordered by time and then by scheduling.

/// Actions with their due times.
struct Timeline {
    private struct Entry {
        let time: Int64
        let number: UInt64
        let action: () -> Void
    }

    /// A binary heap, earliest first.
    private var heap: [Entry] = []
    private var count: UInt64 = 0

    /// The time of the earliest action; nil if there is none.
    var next: Int64? { heap.first?.time }

    mutating func add(at time: Int64, _ action: @escaping () -> Void) {
        count += 1
        heap.append(Entry(time: time, number: count, action: action))
        var child = heap.count - 1
        while child > 0, isEarlier(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes and returns the earliest action if it is due.
    mutating func popDue(at now: Int64) -> (() -> Void)? {
        guard let first = heap.first, first.time <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && isEarlier(child, least) { least = child }
            guard least != parent else { break }
            heap.swapAt(parent, least)
            parent = least
        }
        return first.action
    }

    private func isEarlier(_ a: Int, _ b: Int) -> Bool {
        (heap[a].time, heap[a].number) < (heap[b].time, heap[b].number)
    }
}
