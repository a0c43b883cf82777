// The memory of one nghttp2 session, most of which an idle connection gives back.
import CNGHTTP2
import Glibc
import Posix

/// Holds what a session allocates at its creation in pages of its own: its state, the tables of
/// HPACK, the map of streams and the buffer of 16 KiB for a frame.
///
/// Most of these 25 KB are zeros that nothing ever writes: only touched pages take memory. While
/// the connection is idle, `pack` keeps the words that are not zero and returns the
/// pages to the kernel; `unpack` restores all bytes at their addresses. Neither depends on what
/// the bytes mean. Later allocations of the session, such as fields in the tables of HPACK, come
/// from malloc(3).
final class SessionMemory {
    private let pages: AnonymousPages?
    private var top = 0
    /// False once the session is created.
    private var isOpen = true
    /// The contents of the pages while they are returned; see `PackedWords`.
    private var packed: [UInt64]?

    /// Suffices for a session of libnghttp2 1.52, which takes 25,500 bytes; what another version
    /// needs beyond it comes from malloc(3).
    private static let capacity = 28 << 10

    init() { pages = AnonymousPages(count: Self.capacity) }

    // MARK: Allocating

    /// Returns zeroed memory, aligned to 16 bytes; nil if memory is short.
    func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        guard isOpen, let pages, count <= Self.capacity - top else {
            return calloc(1, max(1, count))
        }
        let start = top
        // Pages are zero at first, and no part of them is used twice.
        top = min(Self.capacity, (top + count + 15) & ~15)
        return pages.bytes.baseAddress.map { $0 + start }
    }

    private func isInPages(_ block: UnsafeMutableRawPointer) -> Bool {
        guard let start = pages?.bytes.baseAddress else { return false }
        return block >= start && block < start + Self.capacity
    }

    func free(_ block: UnsafeMutableRawPointer?) {
        guard let block, !isInPages(block) else { return }
        Glibc.free(block)
    }

    /// Changes the size of a block as realloc(3) does.
    func resize(
        _ block: UnsafeMutableRawPointer?, to count: Int
    ) -> UnsafeMutableRawPointer? {
        guard let block else { return isOpen ? allocate(count) : malloc(max(1, count)) }
        guard isInPages(block), let start = pages?.bytes.baseAddress else {
            return realloc(block, count)
        }
        guard let moved = malloc(max(1, count)) else { return nil }
        moved.copyMemory(from: block, byteCount: min(count, top - (block - start)))
        return moved
    }

    /// Ends the creation of the session: later allocations come from malloc(3).
    func seal() { isOpen = false }

    // MARK: Resting

    /// True while the session must not be entered.
    var isPacked: Bool { packed != nil }

    /// The number of bytes that take memory now, in whole pages.
    var residentBytes: Int { pages?.residentBytes ?? 0 }

    /// Returns the pages to the kernel and keeps what they hold, unless that would save little.
    func pack() {
        guard packed == nil, let pages else { return }
        let words = UnsafeRawBufferPointer(rebasing: pages.bytes[..<((top + 7) & ~7)])
        let kept = PackedWords.pack(words.bindMemory(to: UInt64.self))
        guard kept.count * MemoryLayout<UInt64>.size <= Self.capacity / 4, pages.discard() else {
            return
        }
        packed = kept
    }

    /// Restores the contents of the pages.
    func unpack() {
        guard let kept = packed, let pages else { return }
        packed = nil
        PackedWords.unpack(kept, into: pages.bytes.bindMemory(to: UInt64.self))
    }

    // MARK: nghttp2

    /// The functions that a session allocates with (nghttp2_mem); the session copies them.
    ///
    /// Not retained: it must outlive the session.
    var functions: nghttp2_mem {
        nghttp2_mem(
            mem_user_data: Unmanaged.passUnretained(self).toOpaque(),
            malloc: { count, holder in memory(holder)?.resize(nil, to: count) },
            free: { block, holder in memory(holder)?.free(block) },
            calloc: { count, size, holder in
                let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: size)
                return isTooLarge ? nil : memory(holder)?.allocate(bytes)
            },
            realloc: { block, count, holder in memory(holder)?.resize(block, to: count) })
    }
}

private func memory(_ holder: UnsafeMutableRawPointer?) -> SessionMemory? {
    holder.map { Unmanaged<SessionMemory>.fromOpaque($0).takeUnretainedValue() }
}

/// Words of which most are zero, without these: for each 64 words, the set of those that are not
/// zero as bits, lowest first, and then these words.
enum PackedWords {
    static func pack(_ words: UnsafeBufferPointer<UInt64>) -> [UInt64] {
        var packed: [UInt64] = []
        var start = 0
        while start < words.count {
            let place = packed.count
            packed.append(0)
            var present: UInt64 = 0
            for index in start..<min(start + 64, words.count) where words[index] != 0 {
                present |= 1 << UInt64(index - start)
                packed.append(words[index])
            }
            packed[place] = present
            start += 64
        }
        return packed
    }

    /// Writes the words that are not zero; `words` must be zero before, and as long as what was
    /// packed.
    static func unpack(_ packed: [UInt64], into words: UnsafeMutableBufferPointer<UInt64>) {
        var start = 0
        var next = 0
        while next < packed.count {
            var present = packed[next]
            next += 1
            while present != 0 {
                words[start + present.trailingZeroBitCount] = packed[next]
                next += 1
                present &= present - 1
            }
            start += 64
        }
    }
}
