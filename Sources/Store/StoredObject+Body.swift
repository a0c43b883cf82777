package import Posix

extension StoredObject {
    /// True if a fill covers the first missing byte at or after an offset.
    package func isFilling(from offset: Int64) -> Bool {
        guard case .hole(let hole) = state(at: spans.contiguousEnd(from: offset)) else {
            return false
        }
        return hole.fill != nil
    }
}

/// Reads the beginning of a stored body; blocks on the disk.
package func readBody(of object: StoredObject, count: Int) throws(SystemError) -> [UInt8] {
    let body = try readBytes(
        from: object.descriptor.number, at: object.bodyOffset, count: count)
    guard body.count == count else {
        throw SystemError("pread", code: 5, subject: "the file is short")
    }
    return body
}
