// Files by descriptor: positional reads and writes, reservation, sync, rename.
import CLinux
import Glibc

/// Opens a file (open(2), O_CLOEXEC); may block on the disk.
package func openFile(
    _ path: String, flags: CInt, mode: UInt32 = 0o600
) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", path) { clinux_open(path, flags, mode) })
}

/// As `openFile`, of a file that is there; where the file is ours, reading leaves its access time as
/// it is (open(2), O_NOATIME).
///
/// Without that the first read after a write changes the inode, which the file system then writes.
package func openQuietly(_ path: String, flags: CInt) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", path) { clinux_open_quietly(path, flags) })
}

/// Opens a file without a name in a folder (open(2), O_TMPFILE): gone when closed, whatever happens.
package func openUnnamedFile(in folder: String) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", folder) { clinux_open_unnamed(folder, 0o600) })
}

/// Writes all bytes at an offset (pwrite(2)); may block on the disk.
package func writeAll(
    _ bytes: UnsafeRawBufferPointer, to file: CInt, at offset: Int64
) throws(SystemError) {
    var done = 0
    while done < bytes.count {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
        done += try check("pwrite") {
            pwrite(file, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
        }
    }
}

/// Writes once at an offset (pwrite(2)); may block on the disk.
///
/// - Returns: how many of the bytes were written: fewer than all where a limit is met.
package func writeOnce(
    _ bytes: UnsafeRawBufferPointer, to file: CInt, at offset: Int64
) throws(SystemError) -> Int {
    try check("pwrite") { pwrite(file, bytes.baseAddress, bytes.count, off_t(offset)) }
}

/// How long a file of this process may be (getrlimit(2), RLIMIT_FSIZE); nil where only the file
/// system says.
package func fileSizeLimit() -> Int64? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0,
        limit.rlim_cur <= UInt(Int64.max)
    else { return nil }
    return Int64(limit.rlim_cur)
}

/// Reads up to the buffer's size at an offset (pread(2)); fewer bytes only at the end of the file.
package func readAll(
    into buffer: UnsafeMutableRawBufferPointer, from file: CInt, at offset: Int64
) throws(SystemError) -> Int {
    var done = 0
    while done < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
        let count = try check("pread") {
            pread(file, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
        }
        if count == 0 { break }
        done += count
    }
    return done
}

/// Reads once at an offset (pread(2)).
///
/// Fewer bytes than the buffer has room for come from a local file only at its end.
package func readOnce(
    into buffer: UnsafeMutableRawBufferPointer, from file: CInt, at offset: Int64
) throws(SystemError) -> Int {
    try check("pread") { pread(file, buffer.baseAddress, buffer.count, off_t(offset)) }
}

/// Reserves disk blocks without changing the file's size (fallocate(2)).
///
/// - Returns: false where the file system cannot reserve; the write itself will then tell.
package func reserve(_ file: CInt, offset: Int64, length: Int64) throws(SystemError) -> Bool {
    if clinux_reserve(file, off_t(offset), off_t(length)) == 0 { return true }
    if errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR { return false }
    throw SystemError("fallocate", code: errno)
}

/// Gives a stretch of a file back to the disk; reads of it yield zeros (fallocate(2)).
package func punchHole(_ file: CInt, offset: Int64, length: Int64) {
    // A file system without holes keeps the bytes until the file closes: no harm but space.
    _ = clinux_punch_hole(file, off_t(offset), off_t(length))
}

/// Waits until the file's data is on the disk (fdatasync(2)); blocks.
package func syncData(_ file: CInt) throws(SystemError) {
    _ = try check("fdatasync") { fdatasync(file) }
}

/// Starts to write a file's data to the disk and does not wait for it (sync_file_range(2)).
///
/// Before a row of `syncData` calls it lets one journal commit serve them all.
package func startWriteback(_ file: CInt) {
    // Only a hint: `syncData` is what counts.
    _ = clinux_start_writeback(file, 0, 0)
}

/// Waits until everything on an open file's file system is on the disk, names too (syncfs(2));
/// blocks.
///
/// For many files that is one wait instead of one each.
package func syncFileSystem(of file: CInt) throws(SystemError) {
    _ = try check("syncfs") { clinux_sync_file_system(file) }
}

/// Waits until a folder's names are on the disk (fsync(2)); blocks.
package func syncFolder(_ path: String) throws(SystemError) {
    let folder = try openFile(path, flags: O_RDONLY | O_DIRECTORY)
    _ = try check("fsync", path) { fsync(folder.number) }
}

/// Renames within one file system, replacing what is there (rename(2)).
package func renameFile(_ from: String, to path: String) throws(SystemError) {
    _ = try check("rename", path) { rename(from, path) }
}

/// Exchanges what two names of one file system stand for, at once (renameat2(2)).
///
/// Some file systems cannot; there it takes three renames, and the first name is missing in between.
package func exchangeFiles(_ one: String, _ other: String) throws(SystemError) {
    if clinux_exchange(one, other) == 0 { return }
    guard errno == EINVAL || errno == ENOSYS else {
        throw SystemError("renameat2", code: errno, subject: one)
    }
    try renameFile(one, to: other + ".old")
    try renameFile(other, to: one)
    try renameFile(other + ".old", to: other)
}

/// Gives a file a second name on its file system (link(2)).
package func linkFile(_ path: String, as name: String) throws(SystemError) {
    _ = try check("link", path) { link(path, name) }
}

/// Removes an empty folder; a missing one is fine (rmdir(2)).
package func removeFolder(_ path: String) throws(SystemError) {
    if rmdir(path) == 0 || errno == ENOENT { return }
    throw SystemError("rmdir", code: errno, subject: path)
}

/// Removes a name; a missing one is fine (unlink(2)).
package func removeFile(_ path: String) throws(SystemError) {
    if unlink(path) == 0 || errno == ENOENT { return }
    throw SystemError("unlink", code: errno, subject: path)
}

/// Makes a folder, mode 0700, with its parents; an existing one is fine (mkdir(2)).
package func makeFolder(_ path: String) throws(SystemError) {
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
        throw SystemError("mkdir", code: errno, subject: path)
    }
    try makeFolder(String(path[..<slash]))
    if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
    throw SystemError("mkdir", code: errno, subject: path)
}

/// The size of an open file in bytes (fstat(2)).
package func fileSize(_ file: CInt) throws(SystemError) -> Int64 {
    var found = stat()
    _ = try check("fstat") { fstat(file, &found) }
    return Int64(found.st_size)
}

/// Bytes free for us on the file system of a path, or nil if it cannot be asked (statvfs(3)).
package func freeBytes(at path: String) -> Int64? {
    let bytes = clinux_free_bytes(path)
    return bytes < 0 ? nil : bytes
}

/// One name in a folder.
package struct FolderEntry: Sendable, Equatable {
    package let name: String
    package let isFolder: Bool
}

/// Lists a folder, without `.` and `..` (readdir(3)); blocks on the disk.
package func listFolder(_ path: String) throws(SystemError) -> [FolderEntry] {
    final class Found { var entries: [FolderEntry] = [] }
    let found = Found()
    let context = Unmanaged.passUnretained(found).toOpaque()
    let status = clinux_list_folder(path, context) { context, name, isFolder in
        guard let context else { return }
        Unmanaged<Found>.fromOpaque(context).takeUnretainedValue().entries.append(
            FolderEntry(name: String(cString: name), isFolder: isFolder))
    }
    guard status == 0 else { throw SystemError("readdir", code: errno, subject: path) }
    return found.entries
}

/// Takes an exclusive lock on an open file, without waiting (fcntl(2), F_OFD_SETLK).
///
/// - Returns: false when another process, or another descriptor of ours, holds it.
package func lockExclusively(_ file: CInt) throws(SystemError) -> Bool {
    if clinux_lock_exclusive(file) == 0 { return true }
    if errno == EAGAIN || errno == EACCES { return false }
    throw SystemError("fcntl", code: errno)
}
