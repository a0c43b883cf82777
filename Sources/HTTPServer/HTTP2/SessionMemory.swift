// The memory of one nghttp2 session, most of which an idle connection gives back.
import CNGHTTP2
import Glibc
import Posix

/// Holds what a session allocates at its creation in pages of its own: its state, the tables of
/// HPACK, the map of streams and the buffer of 16 KiB for a frame.
///
/// Most of these 25 KB are zeros that nothing ever writes: only touched pages take memory. While
/// the connection is idle, `pack` keeps the bytes that are not zero and returns the pages to the
/// kernel; `unpack` restores all bytes at their addresses. Neither depends on what the bytes mean,
/// but for the buffer for a frame: what stands there is not needed once the frame is sent.
///
/// Later allocations of the session, such as fields in the tables of HPACK, come from malloc(3).
final class SessionMemory {
    private let pages: AnonymousPages?
    private var top = 0
    /// False once the session is created.
    private var isOpen = true
    /// The contents of the pages while they are returned; see `PackedBytes`.
    private var packed: [UInt8]?

    /// Suffices for a session of libnghttp2 1.52, which takes 25,500 bytes; what another version
    /// needs beyond it comes from malloc(3).
    private static let capacity = 28 << 10
    /// The length of the buffer for a frame (NGHTTP2_FRAMEBUF_CHUNKLEN): a version of nghttp2 with
    /// another one has its last frame kept.
    private static let frameLength = 16_394

    /// Where the buffer for a frame begins; nil unless it is the last block of the pages.
    private var frameStart: Int?

    init() { pages = AnonymousPages(count: Self.capacity) }

    // MARK: Allocating

    /// Returns zeroed memory, aligned to 16 bytes; nil if memory is short.
    func allocate(_ count: Int) -> UnsafeMutableRawPointer? {
        guard isOpen, let pages, count <= Self.capacity - top else {
            return calloc(1, max(1, count))
        }
        let start = top
        frameStart = count == Self.frameLength ? start : nil
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
    ///
    /// - Parameter isFrameSent: true if no frame has begun that the session has not given out whole;
    ///   the last one then is zeros after `unpack`.
    func pack(isFrameSent: Bool) {
        guard packed == nil, let pages else { return }
        let end = isFrameSent ? frameStart ?? top : top
        let kept = PackedBytes.pack(
            UnsafeRawBufferPointer(rebasing: pages.bytes[..<((end + 7) & ~7)]))
        guard kept.count <= Self.capacity / 4, pages.discard() else { return }
        packed = kept
    }

    /// Restores the contents of the pages.
    func unpack() {
        guard let kept = packed, let pages else { return }
        packed = nil
        PackedBytes.unpack(kept, into: pages.bytes)
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

/// Bytes of which most are zero, as runs: how many zeros come first, how many others, and those.
///
/// Zeros at the end are left out. Counts are written in groups of seven bits, lowest first, of which
/// all but the last have the highest bit set.
enum PackedBytes {
    /// Fewer zeros than a run's two counts take do not end a run.
    private static let fewestZeros = 3

    /// - Parameter bytes: aligned to eight bytes, which their number is a multiple of.
    /// - Returns: the runs, in an array without spare capacity.
    static func pack(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var packed: [UInt8] = []
        packed.reserveCapacity(2_048)
        var end = 0
        while let start = firstNonZero(bytes, from: end) {
            let zeros = start - end
            end = start
            var next = start
            while next < bytes.count, next - end < fewestZeros {
                next += 1
                if bytes[next - 1] != 0 { end = next }
            }
            append(zeros, to: &packed)
            append(end - start, to: &packed)
            packed.append(contentsOf: bytes[start..<end])
        }
        // With a count of 0, this initializer writes to the empty array that all threads share.
        guard !packed.isEmpty else { return [] }
        return Array(unsafeUninitializedCapacity: packed.count) { exact, count in
            count = exact.initialize(fromContentsOf: packed)
        }
    }

    private static func firstNonZero(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index < bytes.count {
            if index & 7 == 0, bytes.load(fromByteOffset: index, as: UInt64.self) == 0 {
                index += 8
            } else if bytes[index] == 0 {
                index += 1
            } else {
                return index
            }
        }
        return nil
    }

    private static func append(_ count: Int, to packed: inout [UInt8]) {
        var rest = count
        while rest > 0x7F {
            packed.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        packed.append(UInt8(rest))
    }

    /// Writes the bytes that are not zero; `bytes` must be zero before, and as many as were packed.
    static func unpack(_ packed: [UInt8], into bytes: UnsafeMutableRawBufferPointer) {
        var next = 0
        func count() -> Int {
            var (value, shift) = (0, 0)
            while packed[next] > 0x7F {
                value |= Int(packed[next] & 0x7F) << shift
                shift += 7
                next += 1
            }
            value |= Int(packed[next]) << shift
            next += 1
            return value
        }
        var offset = 0
        while next < packed.count {
            offset += count()
            let length = count()
            packed.withUnsafeBytes { raw in
                UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + length])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: raw[next..<next + length]))
            }
            next += length
            offset += length
        }
    }
}
