/// The first pages of an object's file, by which the file describes itself.
///
/// Little-endian, in this order: magic (8 bytes), format version (u32), pages (u32), key (32
/// bytes), generation (u64), total (i64, -1 when unknown), created (i64, nanoseconds since 1970),
/// flags (u8, bit 0: complete), role (u8), two zero bytes, lengths of URL and head and number of
/// spans (three u32), URL, head, spans (two i64 each), and the first 16 bytes of SHA-256 over all
/// before it. The body starts at the next multiple of 4096 given by `pages`, for the life of the
/// file.
import Posix
import Retention

/// The fields of one header.
struct ObjectHeader: Equatable {
    static let pageSize: Int64 = 4096
    static let formatVersion: UInt32 = 2
    /// A header of more pages than this (1 MiB) was not written by this program.
    static let pagesLimit: UInt32 = 256
    private static let magic = Array("SLUICE1\n".utf8)
    private static let fixedLength = 96
    private static let checksumLength = 16
    /// Room for spans and for a head that grows with a 304, beyond what is known at creation.
    private static let slack = 2048

    var pages: UInt32
    var key: ObjectKey
    var generation: UInt64
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

    /// Where the body starts in the file.
    var bodyOffset: Int64 { Int64(pages) * Self.pageSize }

    /// The number of pages a new object gets; nil when head and URL pass the limit.
    static func pages(url: String, head: [UInt8]) -> UInt32? {
        let length = fixedLength + url.utf8.count + head.count + checksumLength + slack
        let pages = (length + Int(pageSize) - 1) / Int(pageSize)
        return pages <= Int(pagesLimit) ? UInt32(pages) : nil
    }

    /// The bytes to write at offset 0.
    ///
    /// Spans for which there is no room are left out: the file then claims less than it holds,
    /// never more. Nil when even without spans the head does not fit any more.
    func encoded() -> [UInt8]? {
        let urlBytes = Array(url.utf8)
        let capacity = Int(bodyOffset) - Self.fixedLength - Self.checksumLength
        let room = capacity - urlBytes.count - head.count
        guard room >= 0 else { return nil }
        let kept = spans.ranges.prefix(room / 16)
        var out = ByteWriter()
        out.bytes.reserveCapacity(Int(bodyOffset))
        out.bytes += Self.magic
        out.append(Self.formatVersion)
        out.append(pages)
        out.bytes += key.bytes
        out.append(generation)
        out.append(total ?? -1)
        out.append(created.nanoseconds)
        out.bytes += [isComplete && kept.count == spans.ranges.count ? 1 : 0, role, kind.rawValue, isRead ? 1 : 0]
        out.append(title)
        out.append(UInt32(urlBytes.count))
        out.append(UInt32(head.count))
        out.append(UInt32(kept.count))
        out.bytes += urlBytes
        out.bytes += head
        for span in kept {
            out.append(span.lowerBound)
            out.append(span.upperBound)
        }
        out.bytes += sha256(out.bytes).prefix(Self.checksumLength)
        return out.bytes
    }

    /// Reads a header back; nil for anything that was not written whole by `encoded`.
    init?(decoding bytes: [UInt8]) {
        var reader = ByteReader(bytes: bytes)
        guard reader.take(8) == ArraySlice(Self.magic),
            let version = reader.integer(UInt32.self),
            (1...Self.formatVersion).contains(version),
            let pages = reader.integer(UInt32.self), (1...Self.pagesLimit).contains(pages),
            let key = reader.take(32).flatMap({ ObjectKey(bytes: Array($0)) }),
            let generation = reader.integer(UInt64.self),
            let total = reader.integer(Int64.self), total >= -1,
            let created = reader.integer(Int64.self),
            let flags = reader.take(4).map(Array.init),
            let title = version == 1 ? 0 : reader.integer(UInt64.self),
            let urlLength = reader.integer(UInt32.self),
            let headLength = reader.integer(UInt32.self),
            let spanCount = reader.integer(UInt32.self),
            let url = reader.take(Int(urlLength)),
            let head = reader.take(Int(headLength)),
            let spanBytes = reader.take(Int(spanCount) * 16)
        else { return nil }
        let covered = Array(bytes[..<reader.offset])
        guard reader.take(Self.checksumLength) == sha256(covered).prefix(Self.checksumLength) else {
            return nil
        }
        guard let spans = Self.spans(Array(spanBytes)) else { return nil }
        self.pages = pages
        self.key = key
        self.generation = generation
        self.total = total < 0 ? nil : total
        self.created = WallTime(nanoseconds: created)
        isComplete = flags[0] & 1 == 1
        role = flags[1]
        self.title = title
        kind = version == 1 ? .media : RetentionKind(rawValue: flags[2]) ?? .other
        isRead = version == 1 || flags[3] == 1
        self.url = String(decoding: url, as: UTF8.self)
        self.head = Array(head)
        self.spans = spans
        if isComplete != spans.isComplete(total: self.total), isComplete { return nil }
        if let known = self.total, spans.end > known { return nil }
    }

    init(
        pages: UInt32, generation: UInt64, description: ObjectDescription,
        spans: SpanSet = SpanSet()
    ) {
        self.pages = pages
        self.generation = generation
        self.spans = spans
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

    private static func spans(_ bytes: [UInt8]) -> SpanSet? {
        var reader = ByteReader(bytes: bytes)
        var spans = SpanSet()
        while let start = reader.integer(Int64.self), let end = reader.integer(Int64.self) {
            guard start >= spans.end, end > start else { return nil }
            spans.insert(start..<end)
        }
        return spans
    }

    /// Reads and verifies the header of an open file (pread(2)); blocks on the disk if it is cold.
    ///
    /// - Returns: nil for a file that is no whole object, or that is shorter than its spans say.
    static func read(from file: CInt) throws(SystemError) -> ObjectHeader? {
        var bytes = try readBytes(from: file, at: 0, count: Int(pageSize))
        var start = ByteReader(bytes: bytes)
        guard start.take(12) != nil, let pages = start.integer(UInt32.self),
            (1...pagesLimit).contains(pages)
        else { return nil }
        if pages > 1 { bytes = try readBytes(from: file, at: 0, count: Int(pages) * Int(pageSize)) }
        guard let header = ObjectHeader(decoding: bytes) else { return nil }
        guard try fileSize(file) >= header.bodyOffset + header.spans.end || header.spans.isEmpty
        else {
            return nil
        }
        return header
    }

}

/// Appends little-endian integers.
private struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func append(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Takes bytes and little-endian integers from the front; nil once they run out.
private struct ByteReader {
    let bytes: [UInt8]
    var offset = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= bytes.count - offset else { return nil }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        guard let taken = take(Value.bitWidth / 8) else { return nil }
        return taken.reversed().reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
    }
}
