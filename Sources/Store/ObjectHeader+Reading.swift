// Reading headers back: one read of a file's start gives its header, and a short body along with it.
import Posix
import Retention

/// What the start of a file says and holds.
struct ObjectStart {
    var header: ObjectHeader
    /// The whole body, where it is complete, short and vouched for by this epoch; else nil.
    var content: [UInt8]?
}

extension ObjectHeader {
    /// What is read of a file at once: one page of header and a body of the length that goes out in
    /// one piece with a response head.
    ///
    /// For 100,000 objects of 4 KB that is one system call a hit instead of three.
    static let startLength = Int(pageSize) + StoredObject.shortLimit

    /// Reads and verifies the header of an open file (pread(2)); blocks on the disk if it is cold.
    ///
    /// What was written in `epoch` need not be compared with its checksums.
    ///
    /// - Returns: nil for a file that is no whole object, or that is shorter than its spans say.
    static func read(from file: CInt, epoch: UInt64) throws(SystemError) -> ObjectHeader? {
        try readStart(of: file, epoch: epoch)?.header
    }

    /// As `read(from:epoch:)`, with the body if it came with the same read.
    static func readStart(of file: CInt, epoch: UInt64) throws(SystemError) -> ObjectStart? {
        var outcome = Result<ObjectStart?, SystemError>.success(nil)
        withUnsafeTemporaryAllocation(byteCount: startLength, alignment: 8) { room in
            do throws(SystemError) {
                let count = try readOnce(into: room, from: file, at: 0)
                let bytes = UnsafeRawBufferPointer(rebasing: room[..<count])
                outcome = .success(try start(in: bytes, of: file, epoch: epoch))
            } catch {
                outcome = .failure(error)
            }
        }
        return try outcome.get()
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
        // Longer, or cut short for once: what does not verify is deleted, so that is made sure of.
        let whole = try readBytes(from: file, at: 0, count: length)
        var outcome = Result<ObjectStart?, SystemError>.success(nil)
        whole.withUnsafeBytes { bytes in
            do throws(SystemError) {
                outcome = .success(try start(verifying: bytes, pages: pages, file, epoch))
            } catch {
                outcome = .failure(error)
            }
        }
        return try outcome.get()
    }

    /// The number of pages that a header says it has; nil where it cannot have so many.
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

    /// The slot that was written last and is whole.
    private static func newestSlot(
        in bytes: UnsafeRawBufferPointer, pages: UInt32, epoch: UInt64
    ) -> ObjectHeader? {
        let length = slotLength(pages)
        // The newer one is nearly always whole, and then the other one need not be looked at.
        let isFirstNewer = claimedSequence(bytes, at: 0) > claimedSequence(bytes, at: length)
        for offset in isFirstNewer ? [0, length] : [length, 0] where bytes.count > offset {
            let slot = bytes[offset..<min(bytes.count, offset + length)]
            let found = ObjectHeader(
                decodingSlot: UnsafeRawBufferPointer(rebasing: slot), epoch: epoch)
            if let found, found.pages == pages { return found }
        }
        return nil
    }

    /// The sequence that a slot names, be it whole or not.
    private static func claimedSequence(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        guard offset + 24 <= bytes.count else { return 0 }
        return UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self))
    }

    /// The body, if it is whole among the first bytes of the file and need not be compared first.
    private func content(in bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard isComplete, let total, total > 0, total <= Int64(StoredObject.shortLimit),
            extents.isProven, !isCramped, bodyOffset + total <= Int64(bytes.count)
        else { return nil }
        return Array(bytes[Int(bodyOffset)..<Int(bodyOffset + total)])
    }

    // MARK: Slots

    /// Reads one slot back; nil for anything that was not written whole by `encoded`.
    init?(decodingSlot bytes: [UInt8], epoch trusted: UInt64) {
        guard
            let read = bytes.withUnsafeBytes({ ObjectHeader(decodingSlot: $0, epoch: trusted) })
        else { return nil }
        self = read
    }

    /// As above; every lookup of an object that is not open comes through here.
    init?(decodingSlot bytes: UnsafeRawBufferPointer, epoch trusted: UInt64) {
        guard Self.isWhole(bytes) else { return nil }
        var reader = RawReader(bytes)
        reader.skip(12)
        guard let pages = reader.integer(UInt32.self), (1...Self.pagesLimit).contains(pages),
            let sequence = reader.integer(UInt64.self), let key = reader.take(32),
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

    /// Whether a slot begins as one does and its checksum fits.
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
