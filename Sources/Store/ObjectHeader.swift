// The first pages of an object's file, by which the file describes itself.
//
// The header has two slots of `pages` times 2048 bytes, the first at offset 0, and is written to
// them in turn: into the one that does not hold what was written last, and not before that is
// synced. So a write that is torn, lost or late leaves the one before it, and what was once
// committed stays claimed. Of two valid slots the one with the higher sequence counts. Half a page
// is enough for a slot: disks tear pages at sectors, which are 512 bytes or more.
//
// A slot is little-endian: magic (8 bytes), length with checksum (u32), pages (u32), sequence
// (u64), key (32 bytes), generation (u64), epoch (u64), total (i64, -1 when unknown), created (i64,
// nanoseconds since 1970), title (u64), flags (u8, bit 0: complete, bit 1: read), role, kind and
// block shift (u8 each), lengths of URL and head, numbers of spans and checksums (four u32), URL,
// head, spans (two i64 each), checksums of the extents that the block cuts the spans into (u32
// each), and the first 16 bytes of SHA-256 over all before it. The body starts at `pages` times
// 4096, for the life of the file.
import Posix
import Retention

/// The fields of one header.
struct ObjectHeader: Equatable {
    static let pageSize: Int64 = 4096
    /// A header of more pages than this (1 MiB) was not written by this program.
    static let pagesLimit: UInt32 = 256
    static let magic = Array("SLUICE2\n".utf8)
    static let fixedLength = 116
    static let checksumLength = 16
    /// Room for spans, checksums and a head that grows with a 304, beyond what is known at creation.
    private static let slack = 512

    var pages: UInt32
    /// Counts the headers that were written to the file.
    var sequence: UInt64 = 0
    var key: ObjectKey
    var generation: UInt64
    /// The run of the store, from one unclean stop to the next, that vouches for the bytes.
    var epoch: UInt64 = 0
    var total: Int64?
    var isComplete: Bool
    var role: UInt8
    var title: UInt64
    var kind: RetentionKind
    var isRead: Bool
    var created: WallTime
    var url: String
    var head: [UInt8]
    var spans: SpanSet
    var extents: ExtentMap
    /// True where a header of the first format leaves no room for a second slot.
    var isCramped = false

    /// Where the body starts in the file.
    var bodyOffset: Int64 { Int64(pages) * Self.pageSize }

    /// Where this header stands in the file.
    var slotOffset: Int64 { Self.slotOffset(pages: pages, sequence: sequence) }

    static func slotLength(_ pages: UInt32) -> Int { Int(pages) * Int(pageSize) / 2 }

    private static func slotOffset(pages: UInt32, sequence: UInt64) -> Int64 {
        sequence % 2 == 0 ? 0 : Int64(slotLength(pages))
    }

    /// The number of pages a new file gets; nil when head and URL pass the limit.
    static func pages(url: String, head: [UInt8], total: Int64?, spans: Int = 8) -> UInt32? {
        let blocks = min((total ?? 0) >> ExtentMap.smallestBlockShift, 4096)
        let fixed = fixedLength + url.utf8.count + head.count + checksumLength + slack
        let length = fixed + spans * 20 + Int(blocks) * 4
        let slot = Int(pageSize) / 2
        let pages = (length + slot - 1) / slot
        if pages <= Int(pagesLimit) { return UInt32(pages) }
        return (fixed + slot - 1) / slot <= Int(pagesLimit) ? pagesLimit : nil
    }

    /// What the header says once it is encoded, and whether it says all there is.
    struct Encoded {
        var bytes: [UInt8]
        var isWhole: Bool
    }

    /// The bytes to write at `slotOffset`.
    ///
    /// Where there is no room for all spans, the shortest are left out: the file then claims less
    /// than it holds, never more. Nil when even without spans the head does not fit any more.
    func encoded() -> Encoded? {
        let urlBytes = Array(url.utf8)
        let length = Self.fixedLength + urlBytes.count + head.count + Self.checksumLength
        let room = Self.slotLength(pages) - length
        guard room >= 0 else { return nil }
        let (claimed, claimedSpans) = claims(in: room)
        let sums = claimed.sums
        var out = ByteWriter()
        out.bytes.reserveCapacity(Self.slotLength(pages))
        out.bytes += Self.magic
        out.append(UInt32(length + claimedSpans.ranges.count * 16 + sums.count * 4))
        out.append(pages)
        out.append(sequence)
        out.bytes += key.bytes
        out.append(generation)
        out.append(epoch)
        out.append(total ?? -1)
        out.append(created.nanoseconds)
        out.append(title)
        let isComplete = claimedSpans.isComplete(total: total)
        out.bytes += [(isComplete ? 1 : 0) | (isRead ? 2 : 0), role, kind.rawValue]
        out.bytes.append(claimed.blockShift)
        out.append(UInt32(urlBytes.count))
        out.append(UInt32(head.count))
        out.append(UInt32(claimedSpans.ranges.count))
        out.append(UInt32(sums.count))
        out.bytes += urlBytes
        out.bytes += head
        for span in claimedSpans.ranges {
            out.append(span.lowerBound)
            out.append(span.upperBound)
        }
        for sum in sums { out.append(sum) }
        out.bytes += SHA256Digest.of(out.bytes).prefix(Self.checksumLength)
        return Encoded(bytes: out.bytes, isWhole: claimedSpans == spans)
    }

    /// As many extents as fit, the longest spans first.
    private func claims(in room: Int) -> (ExtentMap, SpanSet) {
        var claimed = extents
        for range in claimed.unsummed { claimed.remove(range) }
        var spans = claimed.summedSpans
        if spans.ranges.count * 20 > room {
            let longest = spans.ranges.sorted { $0.count > $1.count }
            for range in longest.dropFirst(room / 20) { claimed.remove(range) }
            spans = claimed.summedSpans
        }
        claimed.coarsen(to: (room - spans.ranges.count * 16) / 4)
        return (claimed, spans)
    }

    init(
        pages: UInt32, generation: UInt64, description: ObjectDescription,
        spans: SpanSet = SpanSet(), extents: ExtentMap = ExtentMap()
    ) {
        self.pages = pages
        self.generation = generation
        self.spans = spans
        self.extents = extents
        key = description.key
        total = description.total
        role = description.role
        title = description.title
        kind = description.kind
        isRead = description.isRead
        created = description.created
        url = description.url
        head = description.head
        isComplete = spans.isComplete(total: description.total)
    }
}
