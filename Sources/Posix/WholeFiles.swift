// Small files read and replaced as a whole.
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
    // An array made so with no room writes its count into the one empty array that all threads share.
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

/// Reads a whole file, which is no longer than its writer makes it; blocks on the disk.
///
/// Throws EFBIG for a longer one, before any of it is read, and EINVAL for what is no plain file.
package func readWhole(_ path: String, atMost limit: Int) throws(SystemError) -> [UInt8] {
    let (file, size) = try openPlainFile(path)
    guard size <= limit else { throw SystemError("read", code: EFBIG, subject: path) }
    return try readBytes(from: file.number, at: 0, count: Int(size))
}

/// Reads the first bytes of a file; blocks on the disk.
///
/// Throws EINVAL for what is no plain file.
package func readStart(_ path: String, atMost limit: Int) throws(SystemError) -> [UInt8] {
    let (file, size) = try openPlainFile(path)
    return try readBytes(from: file.number, at: 0, count: Int(min(size, Int64(limit))))
}

/// Opens a file to be read, and never waits for the other end of a pipe.
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

/// Replaces a file so that after a crash either the former or the new content is found, and once
/// this returns the new one: a new file is written and synced, renamed, and the folder is synced
/// (rename(2), fsync(2)).
///
/// The file is its owner's only unless `mode` is given; then it has exactly that mode, whatever the
/// umask is and whatever an interrupted earlier call has left (fchmod(2)).
package func replaceFile(
    _ path: String, with bytes: [UInt8], in folder: String, mode: UInt32? = nil
) throws(SystemError) {
    let new = path + ".new"
    do {
        let file = try openFile(new, flags: O_WRONLY | O_CREAT | O_TRUNC)
        if let mode {
            let number = file.number
            _ = try check("fchmod", new) { fchmod(number, mode) }
        }
        try write(bytes, to: file.number, at: 0)
        try syncData(file.number)
    }
    try renameFile(new, to: path)
    try syncFolder(folder)
}
