// Reads headers: one read of a file's start returns its header and, if short, its body.
import Posix
import Retention

/// The content of the start of a file.
struct ObjectStart {
    var header: ObjectHeader
    /// The whole body if it is complete, short and was written in this epoch; otherwise nil.
    var content: [UInt8]?
}

extension ObjectHeader {
    /// The number of bytes read at once: one page of header and a body short enough to be sent in
    /// one piece with a response head.
    ///
    /// For objects of 4 KB (measured with 100,000) a hit then takes one system call instead of
    /// three.
    static let startLength = Int(pageSize) + StoredObject.shortLimit

    /// Reads and verifies the header of an open file (pread(2)), and the body if it came with the
    /// same read; blocks on the disk if they are not in the page cache.
    ///
    /// Bytes that were written in `epoch` need not be compared with their checksums.
    ///
    /// - Returns: nil if the file holds no valid header or is shorter than its spans claim.
    static func readStart(of file: CInt, epoch: UInt64) throws(SystemError) -> ObjectStart? {
        try withUnsafeTemporaryAllocation(byteCount: startLength, alignment: 8) {
            room throws(SystemError) -> ObjectStart? in
            let count = try readOnce(into: room, from: file, at: 0)
            let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
            return try start(in: bytes, of: file, epoch: epoch)
        }
    }

    private static func start(
        in bytes: UnsafeRawBufferPointer, of file: CInt, epoch: UInt64
    ) throws(SystemError) -> ObjectStart? {
        var found = Self.pages(in: bytes)
        if found == nil, bytes.count < 16 {
            found = try readBytes(from: file, at: 0, count: 16).withUnsafeBytes {
                Self.pages(in: $0)
            }
        }
        guard let pages = found else { return nil }
        let length = Int(pages) * Int(pageSize)
        guard bytes.count < length else {
            return try start(verifying: bytes, pages: pages, file, epoch)
        }
        // The header is longer, or the read was short: read again, since a file that fails
        // verification is deleted.
        let whole = try readBytes(from: file, at: 0, count: length)
        return try whole.span.withUnsafeBytes { bytes throws(SystemError) -> ObjectStart? in
            try start(verifying: bytes, pages: pages, file, epoch)
        }
    }

    /// Returns the number of pages that a header states; nil if it is out of range.
    private static func pages(in bytes: UnsafeRawBufferPointer) -> UInt32? {
        guard bytes.count >= 16 else { return nil }
        let pages = UInt32(
            littleEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        return (1...pagesLimit).contains(pages) ? pages : nil
    }

    private static func start(
        verifying bytes: UnsafeRawBufferPointer, pages: UInt32, _ file: CInt, _ epoch: UInt64
    ) throws(SystemError) -> ObjectStart? {
        guard
            let header = newestSlot(in: bytes, pages: pages, epoch: epoch)
                ?? ObjectHeader(
                    decodingFormat1: UnsafeRawBufferPointer(
                        rebasing: bytes.prefix(Int(pages) * Int(pageSize))))
        else { return nil }
        let end = header.spans.isEmpty ? 0 : header.bodyOffset + header.spans.end
        if Int64(bytes.count) < end, try fileSize(file) < end { return nil }
        return ObjectStart(header: header, content: header.content(in: bytes))
    }

    /// Decodes the valid slot that was written last.
    private static func newestSlot(
        in bytes: UnsafeRawBufferPointer, pages: UInt32, epoch: UInt64
    ) -> ObjectHeader? {
        let length = slotLength(pages)
        // The newer slot is nearly always valid; then the other one is not looked at.
        let isFirstNewer = claimedSequence(bytes, at: 0) > claimedSequence(bytes, at: length)
        for offset in isFirstNewer ? [0, length] : [length, 0] where bytes.count > offset {
            let slot = bytes[offset..<min(bytes.count, offset + length)]
            let found = ObjectHeader(
                decodingSlot: UnsafeRawBufferPointer(rebasing: slot), epoch: epoch)
            if let found, found.pages == pages { return found }
        }
        return nil
    }

    /// Returns the sequence that a slot states, without verifying the slot.
    private static func claimedSequence(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        guard offset + 24 <= bytes.count else { return 0 }
        return UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self))
    }

    /// Returns the body if all of it is among `bytes` and needs no comparison with its checksums.
    private func content(in bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard isComplete, let total, total > 0, total <= Int64(StoredObject.shortLimit),
            extents.isProven, !isCramped, bodyOffset + total <= Int64(bytes.count)
        else { return nil }
        return Array(bytes[Int(bodyOffset)..<Int(bodyOffset + total)])
    }

    // MARK: Slots

    /// Decodes one slot; nil unless `encoded` wrote all of it.
    ///
    /// Every lookup of an object that is not open uses this, so nothing is copied before.
    init?(decodingSlot bytes: UnsafeRawBufferPointer, epoch trusted: UInt64) {
        guard Self.isWhole(bytes) else { return nil }
        var reader = RawReader(bytes)
        reader.skip(12)
        guard let pages = reader.integer(UInt32.self), (1...Self.pagesLimit).contains(pages),
            let sequence = reader.integer(UInt64.self), sequence < .max,
            let key = reader.take(32),
            let generation = reader.integer(UInt64.self),
            let epoch = reader.integer(UInt64.self),
            let total = reader.integer(Int64.self), total >= -1,
            let created = reader.integer(Int64.self),
            let title = reader.integer(UInt64.self), let flags = reader.take(4),
            let urlLength = reader.integer(UInt32.self),
            let headLength = reader.integer(UInt32.self),
            let spanCount = reader.integer(UInt32.self),
            let sumCount = reader.integer(UInt32.self),
            let url = reader.take(Int(urlLength)), let head = reader.take(Int(headLength)),
            let spans = reader.spans(Int(spanCount)),
            let sums = reader.integers(UInt32.self, count: Int(sumCount)),
            let extents = ExtentMap(
                spans: spans, sums: sums, blockShift: flags[3], isProven: epoch == trusted)
        else { return nil }
        self.init(
            pages: pages, generation: generation,
            description: ObjectDescription(
                key: ObjectKey(raw: key), url: String(decoding: url, as: UTF8.self),
                role: flags[1], head: Array(head), total: total < 0 ? nil : total,
                created: WallTime(nanoseconds: created), isStorable: true, title: title,
                kind: RetentionKind(rawValue: flags[2]) ?? .other, isRead: flags[0] & 2 != 0),
            spans: spans, extents: extents)
        self.sequence = sequence
        self.epoch = epoch
        guard isComplete == (flags[0] & 1 == 1), spans.end <= self.total ?? .max else { return nil }
    }

    /// True if a slot starts with the magic and its checksum matches.
    private static func isWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= fixedLength, bytes.starts(with: magic) else { return false }
        let length = Int(
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)))
        guard length >= fixedLength, length <= bytes.count else { return false }
        let covered = UnsafeRawBufferPointer(rebasing: bytes[..<(length - checksumLength)])
        return withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
            SHA256Digest.write(of: covered, into: digest)
            return bytes[covered.count..<length].elementsEqual(digest.prefix(checksumLength))
        }
    }
}
