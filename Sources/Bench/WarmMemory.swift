import Glibc

/// Memory that has been touched already, and stays so while this is held.
///
/// A virtual machine that reports free memory to its host in blocks gets cold ones back: the first
/// touch of each costs ten times the copy into it. A page held in every block keeps the rest of the
/// block from being reported; all proxies gain alike.
final class WarmMemory {
    private let bytes: Int
    private let start: UnsafeMutableRawPointer
    private static let block = 2 << 20

    /// Takes and lets go of so many bytes, but for a page a block; nil where nothing is reported.
    init?(bytes: Int) {
        let isReporting = access("/sys/module/page_reporting/parameters/page_reporting_order", R_OK)
        let kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let free = sysconf(CInt(_SC_AVPHYS_PAGES)) * 4_096
        guard isReporting == 0, free > 3 * bytes,
            let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, kind, -1, 0), start != MAP_FAILED
        else { return nil }
        self.bytes = bytes
        self.start = start
        // Pages of their own, so that one of a block can be kept alone.
        madvise(start, bytes, MADV_NOHUGEPAGE)
        for offset in stride(from: 0, to: bytes, by: 4_096) {
            start.storeBytes(of: 1, toByteOffset: offset, as: UInt8.self)
        }
        for offset in stride(from: 0, to: bytes, by: Self.block) {
            madvise(start + offset + 4_096, Self.block - 4_096, MADV_DONTNEED)
        }
    }

    deinit { munmap(start, bytes) }
}
