// Small files, read and replaced as a whole.
import Glibc

/// Writes an array at an offset (pwrite(2)); may block on the disk.
package func write(_ bytes: [UInt8], to file: CInt, at offset: Int64) throws(SystemError) {
    var failure: SystemError?
    bytes.withUnsafeBytes { buffer in
        do throws(SystemError) {
            try writeAll(buffer, to: file, at: offset)
        } catch {
            failure = error
        }
    }
    if let failure { throw failure }
}

/// Reads up to `count` bytes at an offset (pread(2)); fewer only at the end of the file.
package func readBytes(
    from file: CInt, at offset: Int64, count: Int
) throws(SystemError) -> [UInt8] {
    // With a count of 0, this initializer writes to the empty array that all threads share.
    guard count > 0 else { return [] }
    var failure: SystemError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        do throws(SystemError) {
            filled = try readAll(
                into: UnsafeMutableRawBufferPointer(buffer), from: file, at: offset)
        } catch {
            failure = error
        }
    }
    if let failure { throw failure }
    return bytes
}

/// Reads a whole file of at most `limit` bytes; blocks on the disk.
///
/// - Throws: EFBIG for a longer file, before reading any of it, and EINVAL unless it is a regular
///   file.
package func readWhole(_ path: String, atMost limit: Int) throws(SystemError) -> [UInt8] {
    let (file, size) = try openPlainFile(path)
    guard size <= limit else { throw SystemError("read", code: EFBIG, subject: path) }
    return try readBytes(from: file.number, at: 0, count: Int(size))
}

/// Reads at most the first `limit` bytes of a file; blocks on the disk.
///
/// - Throws: EINVAL unless it is a regular file.
package func readStart(_ path: String, atMost limit: Int) throws(SystemError) -> [UInt8] {
    let (file, size) = try openPlainFile(path)
    return try readBytes(from: file.number, at: 0, count: Int(min(size, Int64(limit))))
}

extension SystemError {
    /// True if a file that could not be read as a whole (`readWhole`) may be there and sound, as when
    /// descriptors run out: then nothing may take its place.
    ///
    /// False if it is missing, too long, or no regular file.
    package var mayHideSoundFile: Bool { ![ENOENT, EFBIG, EINVAL].contains(code) }
}

/// Opens a regular file for reading, without ever waiting for the other end of a pipe.
private func openPlainFile(
    _ path: String
) throws(SystemError) -> (SharedDescriptor, size: Int64) {
    let file = SharedDescriptor(try openFile(path, flags: O_RDONLY | O_NONBLOCK))
    var found = stat()
    _ = try check("fstat", path) { fstat(file.number, &found) }
    guard found.st_mode & S_IFMT == S_IFREG else {
        throw SystemError("read", code: EINVAL, subject: path)
    }
    return (file, Int64(found.st_size))
}

/// Replaces a file atomically and durably: after a crash it has either the former or the new
/// content, and once this returns the new one.
///
/// Writes and syncs a new file, renames it, and syncs the folder (rename(2), fsync(2)). A new file
/// is readable by its owner only, unless `mode` is given; then it has exactly that mode, regardless
/// of the umask and of leftovers of an interrupted earlier call (fchmod(2)).
///
/// With `keepsAccess`, a file that exists keeps its owner, group and mode, which an administrator
/// may have set for a service; `mode` is that of a new one.
package func replaceFile(
    _ path: String, with bytes: [UInt8], in folder: String, mode: UInt32? = nil,
    keepsAccess: Bool = false
) throws(SystemError) {
    let new = path + ".new"
    do throws(SystemError) {
        try writeSynced(bytes, to: new, inPlaceOf: path, mode, keepsAccess)
        try renameFile(new, to: path)
    } catch {
        // On a full disk a part of it would take the room that the next attempt needs.
        try? removeFile(new)
        throw error
    }
    try syncFolder(folder)
}

/// Writes and syncs the file that is to replace `path`.
private func writeSynced(
    _ bytes: [UInt8], to new: String, inPlaceOf path: String, _ mode: UInt32?,
    _ keepsAccess: Bool
) throws(SystemError) {
    let file = try openFile(new, flags: O_WRONLY | O_CREAT | O_TRUNC)
    if let mode {
        let number = file.number
        var former = stat()
        let isKept =
            keepsAccess && lstat(path, &former) == 0 && former.st_mode & S_IFMT == S_IFREG
            && fchown(number, former.st_uid, former.st_gid) == 0
        let wanted = isKept ? former.st_mode & 0o777 : mode
        _ = try check("fchmod", new) { fchmod(number, wanted) }
    }
    try write(bytes, to: file.number, at: 0)
    try syncData(file.number)
}
