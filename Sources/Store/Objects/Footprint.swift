import Glibc
import Posix

/// Computes the bytes that an object's file takes.
enum Footprint {
    private static let block: Int64 = 4096

    /// Returns the size of the header pages plus one contiguous body, in whole blocks of 4 KiB.
    static func bytes(header: Int64, present: Int64) -> Int64 {
        header + (present + block - 1) / block * block
    }

    /// Returns the size of the header pages plus the blocks that the spans lie in.
    static func bytes(header: Int64, spans: SpanSet) -> Int64 {
        header + spans.blockBytes
    }

    /// Returns the bytes that an object at rest takes.
    static func bytes(of header: ObjectHeader) -> Int64 {
        bytes(header: header.bodyOffset, spans: header.spans)
    }
}

/// Frees every block of a body outside its spans, including preallocated ones (fallocate(2),
/// ftruncate(2)).
///
/// No fill may be writing the body.
func keepOnly(_ spans: SpanSet, of file: CInt, bodyOffset: Int64, total: Int64?) {
    let size = (try? fileSize(file)) ?? 0
    let end = max(size - bodyOffset, total ?? 0, spans.end)
    // Blocks reserved beyond the end of a file cannot be punched, so the file gets its full length
    // first. Failures cost space only.
    if bodyOffset + end > size { _ = ftruncate(file, off_t(bodyOffset + end)) }
    for hole in spans.holes(in: 0..<end) {
        punchHole(file, offset: bodyOffset + hole.lowerBound, length: Int64(hole.count))
    }
    _ = ftruncate(file, off_t(bodyOffset + spans.end))
}
