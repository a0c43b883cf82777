import Posix

/// Decodes headers of format 1, which had one slot and no checksums of the body.
///
/// The next header of such a file is written to the second slot, after the old header, in the
/// current format; the header after that replaces the old one.
extension ObjectHeader {
    private static let formerMagic = Array("SLUICE1\n".utf8)
    /// 1 TiB; each mebibyte takes an extent in memory.
    private static let mostFormerBytes: Int64 = 1 << 40

    /// Decodes the fields of format 1, in this order: magic (8 bytes), format version (u32), pages
    /// (u32), key (32 bytes), generation (u64), total
    /// (i64), created (i64), flags (u8), role (u8), two zero bytes, lengths of URL and head and
    /// number of spans (three u32), URL, head, spans (two i64 each), and the first 16 bytes of
    /// SHA-256 over all before it.
    init?(decodingFormat1 bytes: UnsafeRawBufferPointer) {
        var reader = RawReader(bytes)
        guard reader.take(8)?.elementsEqual(Self.formerMagic) == true,
            reader.integer(UInt32.self) == 1,
            let pages = reader.integer(UInt32.self), (1...Self.pagesLimit).contains(pages),
            let key = reader.take(32),
            let generation = reader.integer(UInt64.self),
            let total = reader.integer(Int64.self), total >= -1,
            let created = reader.integer(Int64.self),
            let flags = reader.take(4),
            let urlLength = reader.integer(UInt32.self),
            let headLength = reader.integer(UInt32.self),
            let spanCount = reader.integer(UInt32.self),
            let url = reader.take(Int(urlLength)),
            let head = reader.take(Int(headLength)),
            let spans = reader.spans(Int(spanCount)), spans.end <= Self.mostFormerBytes
        else { return nil }
        let sum = SHA256Digest.of(Array(bytes[..<reader.offset])).prefix(Self.checksumLength)
        guard reader.take(Self.checksumLength)?.elementsEqual(sum) == true else { return nil }
        let description = ObjectDescription(
            key: ObjectKey(raw: key), url: String(decoding: url, as: UTF8.self), role: flags[1],
            head: Array(head),
            total: total < 0 ? nil : total, created: WallTime(nanoseconds: created),
            isStorable: true)
        self.init(
            pages: pages, generation: generation, description: description, spans: spans,
            extents: ExtentMap(unsummed: spans))
        guard isComplete == (flags[0] & 1 == 1), spans.end <= self.total ?? .max else { return nil }
        isCramped = reader.offset > Int(bodyOffset) / 2
    }
}
