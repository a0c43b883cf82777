/// Timers of one loop: a heap by deadline, cancelled ones dropped when they surface.
import HeapModule
import Posix

/// Names one scheduled timer of one loop.
package struct TimerID: Hashable, Sendable {
    fileprivate let slot: UInt32
    fileprivate let number: UInt64
}

/// A timer's body lies in a slot, which a later timer may have again; its number tells them apart.
struct TimerHeap {
    private struct Entry: Comparable {
        let deadline: Monotonic
        let number: UInt64
        let slot: UInt32

        static func < (a: Entry, b: Entry) -> Bool {
            a.deadline != b.deadline ? a.deadline < b.deadline : a.number < b.number
        }
    }

    private struct Slot {
        /// That of the timer whose body it is; 0 while it is free.
        var number: UInt64 = 0
        var body: ((EventLoop) -> Void)?
    }

    private var heap = Heap<Entry>()
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    private var nextNumber: UInt64 = 0

    mutating func add(deadline: Monotonic, _ body: @escaping (EventLoop) -> Void) -> TimerID {
        nextNumber += 1
        let slot = freeSlots.popLast() ?? UInt32(slots.count)
        if slot == slots.count { slots.append(Slot()) }
        slots[Int(slot)] = Slot(number: nextNumber, body: body)
        heap.insert(Entry(deadline: deadline, number: nextNumber, slot: slot))
        return TimerID(slot: slot, number: nextNumber)
    }

    mutating func cancel(_ timer: TimerID) {
        _ = takeBody(timer.slot, timer.number)
        // Cancelled entries with far deadlines must not pile up under steady rescheduling.
        if heap.count > 2 * (slots.count - freeSlots.count) + 64 {
            heap = Heap(heap.unordered.filter { slots[Int($0.slot)].number == $0.number })
        }
    }

    /// Frees the slot of a timer; nil where it has run or was cancelled.
    private mutating func takeBody(_ slot: UInt32, _ number: UInt64) -> ((EventLoop) -> Void)? {
        let index = Int(slot)
        guard slots[index].number == number else { return nil }
        slots[index].number = 0
        freeSlots.append(slot)
        return slots[index].body.take()
    }

    /// Divides the timers set so far from those set later.
    var mark: UInt64 { nextNumber }

    /// The next timer that is due and was set before `mark`, removed; nil if none is.
    mutating func popDue(at now: Monotonic, setBefore mark: UInt64) -> ((EventLoop) -> Void)? {
        while let first = heap.min, first.deadline <= now, first.number <= mark {
            heap.removeMin()
            if let body = takeBody(first.slot, first.number) { return body }
        }
        return nil
    }

    /// Milliseconds until the next deadline, rounded up so that the timer is due then; -1 for none.
    mutating func timeout(from now: Monotonic) -> CInt {
        while let first = heap.min {
            if slots[Int(first.slot)].number != first.number {
                heap.removeMin()
                continue
            }
            let wait = (first.deadline - now).nanoseconds
            if wait <= 0 { return 0 }
            return CInt(min((wait + 999_999) / 1_000_000, 60_000))
        }
        return -1
    }
}
