// Returns unused memory of the process to the system.
import CLinux
import Glibc

/// Drops resident program code that only the start needed (madvise(2), MADV_DONTNEED); code that
/// runs again is read from the page cache.
///
/// Takes a millisecond or two; other threads may run meanwhile.
package func giveBackCode() {
    clinux_give_back_code()
}

/// Returns free memory of the allocator to the system (malloc_trim(3)).
///
/// Briefly delays allocations of other threads, so it should be called at the end of much work.
package func giveBackFreeMemory() {
    clinux_give_back_free_memory()
}

/// Pages of memory without a file (mmap(2)), zero at first; those that nobody touches take none.
package final class AnonymousPages {
    package let bytes: UnsafeMutableRawBufferPointer

    /// Maps `count` bytes, rounded up to whole pages; nil if memory is short.
    package init?(count: Int) {
        let kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard count > 0,
            let start = mmap(nil, count, PROT_READ | PROT_WRITE, kind, -1, 0), start != MAP_FAILED
        else { return nil }
        // A huge page would be resident as a whole.
        madvise(start, count, MADV_NOHUGEPAGE)
        bytes = UnsafeMutableRawBufferPointer(start: start, count: count)
    }

    deinit { munmap(bytes.baseAddress, bytes.count) }

    /// Returns the pages to the kernel; they are zero at the next access.
    ///
    /// - Returns: false if the kernel refuses; the contents are unchanged then.
    package func discard() -> Bool { madvise(bytes.baseAddress, bytes.count, MADV_DONTNEED) == 0 }

    /// The number of bytes in memory, in whole pages (mincore(2)).
    package var residentBytes: Int {
        let page = Int(getpagesize())
        var resident = [UInt8](repeating: 0, count: (bytes.count + page - 1) / page)
        guard mincore(bytes.baseAddress, bytes.count, &resident) == 0 else { return bytes.count }
        return resident.count { $0 & 1 == 1 } * page
    }
}
