// Returns unused memory of the process to the system.
import CLinux

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
