// Counts that several threads add to at the same time, without waiting for each other's cache
// lines.
import Posix
import Synchronization

/// Numbers of which each processor has a copy of its own: adding waits for no other processor, and
/// reading sums up the copies.
///
/// With one copy for all, eight loops waited for the cache lines of the counters (page Measuring).
/// Any thread may add and read.
final class ProcessorCounts: Sendable {
    private let count: Int
    private let copies = Processors.copies
    /// The distance of two copies: whole pairs of cache lines, since processors fetch two at a
    /// time.
    private let stride: Int
    // Safety: allocated and initialized once, freed by deinit; all access is atomic.
    nonisolated(unsafe) private let cells: UnsafeMutablePointer<Atomic<Int64>>

    /// - Parameter count: how many numbers there are, each 0 at first.
    init(count: Int) {
        self.count = count
        stride = (count + 15) / 16 * 16
        let all = stride * copies
        cells = UnsafeMutableRawPointer.allocate(
            byteCount: all * MemoryLayout<Atomic<Int64>>.stride, alignment: 128
        ).bindMemory(to: Atomic<Int64>.self, capacity: all)
        for place in 0..<all { (cells + place).initialize(to: Atomic(0)) }
    }

    deinit {
        cells.deinitialize(count: stride * copies)
        UnsafeMutableRawPointer(cells).deallocate()
    }

    /// Adds to a number, which must exist.
    func add(_ amount: Int64, at index: Int) {
        precondition(index >= 0 && index < count)
        cells[Processors.current(of: copies) * stride + index].wrappingAdd(
            amount, ordering: .relaxed)
    }

    /// Returns a number, which must exist.
    func sum(at index: Int) -> Int64 {
        precondition(index >= 0 && index < count)
        return (0..<copies).reduce(0) {
            $0 &+ cells[$1 * stride + index].load(ordering: .relaxed)
        }
    }
}
