// The timers of one loop: a heap ordered by deadline; cancelled timers are dropped when they reach
// the top.
import HeapModule
import Posix

/// Identifies one scheduled timer of one loop.
package struct TimerID: Hashable, Sendable {
    fileprivate let slot: UInt32
    fileprivate let number: UInt64
}

/// The closure of a timer or of a round's end, and its call site.
struct ScheduledWork {
    let body: (EventLoop) -> Void
    let site: CallSite
}

/// A heap of timers; closures are in slots that later timers reuse, distinguished by the timer's
/// number.
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
        /// The number of the timer that uses the slot; 0 while it is free.
        var number: UInt64 = 0
        var work: ScheduledWork?
    }

    private var heap = Heap<Entry>()
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    private var nextNumber: UInt64 = 0

    mutating func add(deadline: Monotonic, _ work: ScheduledWork) -> TimerID {
        nextNumber += 1
        let slot = freeSlots.popLast() ?? UInt32(slots.count)
        if slot == slots.count { slots.append(Slot()) }
        slots[Int(slot)] = Slot(number: nextNumber, work: work)
        heap.insert(Entry(deadline: deadline, number: nextNumber, slot: slot))
        return TimerID(slot: slot, number: nextNumber)
    }

    mutating func cancel(_ timer: TimerID) {
        _ = take(timer.slot, timer.number)
        // Cancelled entries with distant deadlines must not accumulate under steady rescheduling.
        if heap.count > 2 * (slots.count - freeSlots.count) + 64 {
            heap = Heap(heap.unordered.filter { slots[Int($0.slot)].number == $0.number })
        }
    }

    /// Drops all timers and returns their work, which the caller releases when it no longer changes
    /// this heap: objects that go with it may cancel their timers.
    mutating func dropAll() -> [ScheduledWork] {
        heap = Heap()
        var dropped: [ScheduledWork] = []
        for index in slots.indices where slots[index].number != 0 {
            slots[index].number = 0
            freeSlots.append(UInt32(index))
            if let work = slots[index].work.take() { dropped.append(work) }
        }
        return dropped
    }

    /// Frees the slot of a timer and returns its work; nil if it has run or was cancelled.
    private mutating func take(_ slot: UInt32, _ number: UInt64) -> ScheduledWork? {
        let index = Int(slot)
        guard slots[index].number == number else { return nil }
        slots[index].number = 0
        freeSlots.append(slot)
        return slots[index].work.take()
    }

    /// A mark that separates the timers set so far from later ones.
    var mark: UInt64 { nextNumber }

    /// Removes and returns the next due timer that was set before `mark`; nil if none is due.
    mutating func popDue(at now: Monotonic, setBefore mark: UInt64) -> ScheduledWork? {
        while let first = heap.min, first.deadline <= now, first.number <= mark {
            heap.removeMin()
            if let work = take(first.slot, first.number) { return work }
        }
        return nil
    }

    /// Returns the milliseconds until the next deadline, at most 60,000, rounded up so that the
    /// timer is due then; -1 if there is no timer.
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
