/// Timers of one loop: a heap by deadline, cancelled ones dropped when they surface.
import HeapModule
import Posix

/// Names one scheduled timer of one loop.
package struct TimerID: Hashable, Sendable {
    fileprivate let number: UInt64
}

struct TimerHeap {
    private struct Entry: Comparable {
        let deadline: Monotonic
        let number: UInt64

        static func < (a: Entry, b: Entry) -> Bool {
            a.deadline != b.deadline ? a.deadline < b.deadline : a.number < b.number
        }
    }

    private var heap = Heap<Entry>()
    private var bodies: [UInt64: (EventLoop) -> Void] = [:]
    private var nextNumber: UInt64 = 0

    mutating func add(deadline: Monotonic, _ body: @escaping (EventLoop) -> Void) -> TimerID {
        nextNumber += 1
        heap.insert(Entry(deadline: deadline, number: nextNumber))
        bodies[nextNumber] = body
        return TimerID(number: nextNumber)
    }

    mutating func cancel(_ timer: TimerID) {
        bodies[timer.number] = nil
        // Cancelled entries with far deadlines must not pile up under steady rescheduling.
        if heap.count > 2 * bodies.count + 64 {
            heap = Heap(heap.unordered.filter { bodies[$0.number] != nil })
        }
    }

    /// Divides the timers set so far from those set later.
    var mark: UInt64 { nextNumber }

    /// The next timer that is due and was set before `mark`, removed; nil if none is.
    mutating func popDue(at now: Monotonic, setBefore mark: UInt64) -> ((EventLoop) -> Void)? {
        while let first = heap.min, first.deadline <= now, first.number <= mark {
            heap.removeMin()
            if let body = bodies.removeValue(forKey: first.number) { return body }
        }
        return nil
    }

    /// Milliseconds until the next deadline, rounded up so that the timer is due then; -1 for none.
    mutating func timeout(from now: Monotonic) -> CInt {
        while let first = heap.min {
            if bodies[first.number] == nil {
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
