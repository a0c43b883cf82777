// Fuzzes what the store and the cache read from the files of objects: slots of headers in both
// formats, response heads, indexes of variants.
import CachePolicy
import HTTP
import Posix

// Of the store only the pure sources are compiled into this driver: what reads files is named by
// them and is never called.
enum StoredObject { static let shortLimit = 16_384 }
struct SystemError: Error {}

func readOnce(
    into buffer: UnsafeMutableRawBufferPointer, from file: CInt, at offset: Int64
) throws(SystemError) -> Int { throw SystemError() }

func readBytes(
    from file: CInt, at offset: Int64, count: Int
) throws(SystemError) -> [UInt8] { throw SystemError() }

func fileSize(_ file: CInt) throws(SystemError) -> Int64 { throw SystemError() }

// Checksums of bodies are only carried, not compared, where headers are read.
func crc32c(_ bytes: UnsafeRawBufferPointer) -> UInt32 { UInt32(truncatingIfNeeded: bytes.count) }

func joinedCRC32C(_ first: UInt32, _ second: UInt32, secondCount: Int) -> UInt32 { first ^ second }

/// Runs every check on one input (called by libFuzzer).
///
/// The first byte says whether the checksum is made right: nothing else would be read beyond it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let choice = bytes.first else { return 0 }
    let input = Array(bytes.dropFirst())
    checkSlot(input)
    if choice & 1 == 0 { checkSlot(summed(input, at: 8)) }
    checkFormer(input)
    checkFormer(summed(input, at: nil))
    checkHead(input)
    checkVariants(input)
    return 0
}

/// The bytes with a checksum behind them, and their length at an offset if there is one.
private func summed(_ input: [UInt8], at offset: Int?) -> [UInt8] {
    var bytes = input
    if let offset, bytes.count >= offset + 4 {
        let length = UInt32(bytes.count + ObjectHeader.checksumLength).littleEndian
        withUnsafeBytes(of: length) { bytes.replaceSubrange(offset..<offset + 4, with: $0) }
    }
    return bytes + SHA256Digest.of(bytes).prefix(ObjectHeader.checksumLength)
}

/// A header that is read claims nothing that contradicts itself, and is read as it is written.
private func checkSlot(_ bytes: [UInt8]) {
    guard let header = decoded(bytes) else { return }
    check(header)
    guard let encoded = header.encoded(), encoded.isWhole else { return }
    precondition(decoded(encoded.bytes) == header, "reads differently when written back")
}

private func decoded(_ slot: [UInt8]) -> ObjectHeader? {
    slot.withUnsafeBytes { ObjectHeader(decodingSlot: $0, epoch: 1) }
}

private func checkFormer(_ bytes: [UInt8]) {
    let found = bytes.withUnsafeBytes { ObjectHeader(decodingFormat1: $0) }
    if let found { check(found) }
}

private func check(_ header: ObjectHeader) {
    precondition(header.pages >= 1 && header.pages <= ObjectHeader.pagesLimit)
    precondition(header.spans.end <= header.total ?? .max, "spans beyond the end")
    var end: Int64 = -1
    for span in header.spans.ranges {
        precondition(span.lowerBound > end && span.upperBound > span.lowerBound)
        end = span.upperBound
    }
    _ = (header.bodyOffset, header.slotOffset, header.spans.totalBytes)
    checkHead(header.head)
}

/// A stored head is read as it is written.
private func checkHead(_ bytes: [UInt8]) {
    guard let head = StoredHead(encoded: bytes) else { return }
    precondition(StoredHead(encoded: head.encoded) == head, "a head reads differently")
    _ = (head.strongValidator, CacheControl(head.fields))
}

private func checkVariants(_ bytes: [UInt8]) {
    guard let index = VariantIndex(encoded: bytes) else { return }
    let again = VariantIndex(encoded: index.encoded)
    precondition(again?.encoded == index.encoded, "an index of variants reads differently")
}
