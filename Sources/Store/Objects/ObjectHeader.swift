// The header: the first pages of an object's file, which describe the object.
//
// A header has two slots of `pages` times 2048 bytes, the first at offset 0. Each new header goes
// to the slot that does not hold the latest one, and only after the latest one is synced. So a
// write that is torn, lost or delayed leaves the previous header intact, and what was once
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
    /// The largest number of pages (1 MiB) that this program writes; more means a foreign file.
    static let pagesLimit: UInt32 = 256
    static let magic = Array("SLUICE2\n".utf8)
    static let fixedLength = 116
    static let checksumLength = 16
    /// Reserve for more spans and checksums, and for a head that grows when a 304 response updates
    /// it.
    private static let slack = 512

    var pages: UInt32
    /// The number of headers written to the file before this one.
    var sequence: UInt64 = 0
    var key: ObjectKey
    var generation: UInt64
    /// The epoch that the bytes were written in: the runs of the store from one unclean stop to the
    /// next.
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
    /// True if a header of format 1 leaves no room for a second slot.
    var isCramped = false

    /// The offset of the body in the file.
    var bodyOffset: Int64 { Int64(pages) * Self.pageSize }

    /// The offset of this header in the file.
    var slotOffset: Int64 { Self.slotOffset(pages: pages, sequence: sequence) }

    static func slotLength(_ pages: UInt32) -> Int { Int(pages) * Int(pageSize) / 2 }

    private static func slotOffset(pages: UInt32, sequence: UInt64) -> Int64 {
        sequence % 2 == 0 ? 0 : Int64(slotLength(pages))
    }

    /// Returns the number of pages of a new file; nil if head and URL exceed the limit.
    ///
    /// There is room for a span in each of the first 512 blocks: a long body has many when a player
    /// changes its quality, and it would have to be copied into a file with a larger header.
    static func pages(url: String, head: [UInt8], total: Int64?, spans: Int = 0) -> UInt32? {
        let blocks = Int(min((total ?? 0) >> ExtentMap.smallestBlockShift, 4096))
        let fixed = fixedLength + url.utf8.count + head.count + checksumLength + slack
        let length = fixed + max(spans, 8 + min(blocks, 512)) * 20 + blocks * 4
        let slot = Int(pageSize) / 2
        let pages = (length + slot - 1) / slot
        if pages <= Int(pagesLimit) { return UInt32(pages) }
        return (fixed + slot - 1) / slot <= Int(pagesLimit) ? pagesLimit : nil
    }

    /// An encoded header, and whether it claims all spans.
    struct Encoded {
        var bytes: [UInt8]
        var isWhole: Bool
    }

    /// Encodes the header: the bytes to write at `slotOffset`.
    ///
    /// If there is no room for all spans, the shortest are left out: the file then claims less than
    /// it holds, never more. Returns nil if the head does not fit even without spans.
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

    /// Returns as many extents as fit, those of the longest spans first.
    private func claims(in room: Int) -> (ExtentMap, SpanSet) {
        var claimed = extents
        claimed.keepSummed()
        var spans = claimed.summedSpans
        if spans.ranges.count * 20 > room {
            let longest = spans.ranges.sorted { $0.count > $1.count }
            let kept = longest.prefix(room / 20).sorted { $0.lowerBound < $1.lowerBound }
            claimed.keepSummed(in: kept)
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
