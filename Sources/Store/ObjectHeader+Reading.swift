/// Reading headers back: one read of a file's start gives its header, and a short body along with it.
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
        var bytes = try firstBytes(of: file)
        if bytes.count < pageSize { bytes = try readBytes(from: file, at: 0, count: Int(pageSize)) }
        guard bytes.count >= 16 else { return nil }
        let pages = bytes.withUnsafeBytes {
            UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        }
        guard (1...pagesLimit).contains(pages) else { return nil }
        let headerLength = Int(pages) * Int(pageSize)
        // Longer, or cut short for once: what does not verify is deleted, so that is made sure of.
        if bytes.count < headerLength {
            bytes = try readBytes(from: file, at: 0, count: headerLength)
        }
        let newest = bytes.withUnsafeBytes { newestSlot(in: $0, pages: pages, epoch: epoch) }
        guard
            let header = newest
                ?? ObjectHeader(decodingFormat1: Array(bytes.prefix(headerLength)))
        else { return nil }
        let end = header.spans.isEmpty ? 0 : header.bodyOffset + header.spans.end
        if Int64(bytes.count) < end, try fileSize(file) < end { return nil }
        return ObjectStart(header: header, content: header.content(in: bytes))
    }

    private static func firstBytes(of file: CInt) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: startLength) { buffer, filled in
            do throws(SystemError) {
                filled = try readOnce(
                    into: UnsafeMutableRawBufferPointer(buffer), from: file, at: 0)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
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
    private func content(in bytes: [UInt8]) -> [UInt8]? {
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
            sha256(covered, into: digest)
            return bytes[covered.count..<length].elementsEqual(digest.prefix(checksumLength))
        }
    }
}
