import Glibc
package import Posix
import Synchronization

/// Bodies that are read in one call instead of by a reader.
extension StoredObject {
    /// True if a fill covers the first missing byte at or after an offset.
    package func isFilling(from offset: Int64) -> Bool {
        firstHole(from: offset)?.fill != nil
    }

    /// Returns the hole at the first missing byte at or after an offset; nil if none is missing.
    package func firstHole(from offset: Int64) -> Hole? {
        guard case .hole(let hole) = state(at: spans.contiguousEnd(from: offset)) else {
            return nil
        }
        return hole
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

    // MARK: Short bodies

    /// The maximum length of a body kept in memory with its object, in bytes: what is sent in one
    /// piece with a response head.
    ///
    /// The number of open objects bounds the memory.
    package static let shortLimit = 1 << 14

    /// Returns a range of the body, from memory or read immediately (pread(2)).
    ///
    /// The body of a complete object of at most `shortLimit` bytes is read once and kept for as
    /// long as the object is open.
    ///
    /// - Parameter range: in bytes of the body.
    /// - Returns: nil if the range is empty or longer than `shortLimit`, or if bytes of it are
    ///   missing or cannot be read.
    package func shortBytes(_ range: Range<Int64>) -> [UInt8]? {
        guard !range.isEmpty, range.count <= Self.shortLimit else { return nil }
        let (content, whole) = state.withLock { state in
            (state.content, state.isComplete ? state.total : nil)
        }
        if let content { return Self.part(range, of: content) }
        guard isPresent(range),
            let bytes = try? readBody(from: range.lowerBound, count: range.count),
            bytes.count == range.count,
            // No reader is registered for these bytes: they may have been freed meanwhile.
            isPresent(range)
        else { return nil }
        if range.lowerBound == 0, range.upperBound == whole { keep(bytes) }
        return bytes
    }

    private func isPresent(_ range: Range<Int64>) -> Bool {
        guard case .present(let count) = state(at: range.lowerBound) else { return false }
        return count >= range.count
    }

    /// Returns a range of a short body from memory; nil if the body is not in memory.
    package func bytesInMemory(_ range: Range<Int64>) -> [UInt8]? {
        state.withLock { $0.content }.flatMap { Self.part(range, of: $0) }
    }

    private static func part(_ range: Range<Int64>, of content: [UInt8]) -> [UInt8]? {
        guard range.upperBound <= Int64(content.count) else { return nil }
        if range.count == content.count { return content }
        return Array(content[Int(range.lowerBound)..<Int(range.upperBound)])
    }

    /// Keeps the whole body in memory, unless some of it was lost meanwhile.
    private func keep(_ bytes: [UInt8]) {
        state.withLock { state in
            guard state.isComplete, state.extents.isProven, state.place == .current else { return }
            state.content = bytes
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
