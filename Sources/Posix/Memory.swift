// Memory that the process has and does not need.
import CLinux

/// Lets go of program code that only the start needed (madvise(2), MADV_DONTNEED): what runs again
/// comes back from the page cache.
///
/// Takes a millisecond or two; other threads may run meanwhile.
package func giveBackCode() {
    clinux_give_back_code()
}

/// Gives free memory of the allocator back to the system (malloc_trim(3)).
///
/// Holds up allocations of other threads for a moment, so it belongs at the end of much work.
package func giveBackFreeMemory() {
    clinux_give_back_free_memory()
}
