import Glibc
package import Posix
import Synchronization

extension StoredObject {
    /// True if a fill covers the first missing byte at or after an offset.
    package func isFilling(from offset: Int64) -> Bool {
        guard case .hole(let hole) = state(at: spans.contiguousEnd(from: offset)) else {
            return false
        }
        return hole.fill != nil
    }

    /// Throws EIO if one of the first bytes is missing; after an unclean stop, compares them first.
    fileprivate func requireBytes(upTo end: Int64) throws(SystemError) {
        var offset: Int64 = 0
        while offset < end {
            guard case .present(let count) = state(at: offset) else {
                throw SystemError("pread", code: EIO, subject: "bytes are missing")
            }
            offset += count
        }
    }
}

/// Reads the beginning of a stored body; blocks on the disk.
///
/// Compares it with its checksums: a text is used as a whole, and one whose damage still parses
/// would be taken for the origin's. What does not match becomes a hole, which is fetched again.
package func readBody(of object: StoredObject, count: Int) throws(SystemError) -> [UInt8] {
    try object.requireBytes(upTo: Int64(count))
    // Before the read: another reader may find damage meanwhile, and what is fetched in its place
    // has no checksum yet, or another one than the bytes that were read.
    let extents = object.state.withLock { $0.extents.extents }
    let body = try readBytes(
        from: object.descriptor.number, at: object.bodyOffset, count: count)
    guard body.count == count else {
        throw SystemError("pread", code: EIO, subject: "the file is short")
    }
    // Nothing keeps an unnamed object's bytes from being freed for a reader of a text.
    try object.requireBytes(upTo: Int64(count))
    try object.compare(body, with: extents)
    return body
}
