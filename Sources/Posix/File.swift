// Files by descriptor: positional reads and writes, reservation, sync, rename.
import CLinux
import Glibc

/// Opens a file (open(2), O_CLOEXEC); may block on the disk.
package func openFile(
    _ path: String, flags: CInt, mode: UInt32 = 0o600
) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", path) { clinux_open(path, flags, mode) })
}

/// Opens an existing file like `openFile`; if this user owns it, reads do not update its access
/// time (open(2), O_NOATIME).
///
/// Otherwise the first read after a write changes the inode, which the file system then writes to
/// the disk.
package func openQuietly(_ path: String, flags: CInt) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", path) { clinux_open_quietly(path, flags) })
}

/// Opens an unnamed file in a folder (open(2), O_TMPFILE); it disappears with its last descriptor.
package func openUnnamedFile(in folder: String) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(taking: try check("open", folder) { clinux_open_unnamed(folder, 0o600) })
}

/// Opens a file that nobody else finds in a folder, also where the file system has no O_TMPFILE, as
/// NFS, SMB, FUSE and older overlays: there it has a name for two system calls.
///
/// - Parameters:
///   - folder: the folder.
///   - name: that name; no file in the folder may have it.
///   - unnamed: opens a file without a name.
/// - Returns: the file, for reading and writing.
/// - Throws: `SystemError` if no file can be created there.
package func openNamelessFile(
    in folder: String, name: @autoclosure () -> String,
    unnamed: (String) throws(SystemError) -> OwnedDescriptor = openUnnamedFile(in:)
) throws(SystemError) -> OwnedDescriptor {
    do throws(SystemError) {
        return try unnamed(folder)
    } catch {
        guard error.code == EOPNOTSUPP || error.code == EISDIR || error.code == EINVAL else {
            throw error
        }
    }
    let path = "\(folder)/\(name())"
    let file = try openFile(path, flags: O_RDWR | O_CREAT | O_EXCL)
    try removeFile(path)
    return file
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
/// - Returns: the number of bytes written; fewer than all if a size limit is reached.
package func writeOnce(
    _ bytes: UnsafeRawBufferPointer, to file: CInt, at offset: Int64
) throws(SystemError) -> Int {
    try check("pwrite") { pwrite(file, bytes.baseAddress, bytes.count, off_t(offset)) }
}

/// Returns the file size limit of this process (getrlimit(2), RLIMIT_FSIZE); nil if it has none.
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
/// From a local file, returns fewer bytes than the buffer's size only at the end of the file.
package func readOnce(
    into buffer: UnsafeMutableRawBufferPointer, from file: CInt, at offset: Int64
) throws(SystemError) -> Int {
    try check("pread") { pread(file, buffer.baseAddress, buffer.count, off_t(offset)) }
}

/// Reserves disk blocks without changing the file's size (fallocate(2)).
///
/// - Returns: false if the file system cannot reserve; a lack of space then shows when writing.
package func reserve(_ file: CInt, offset: Int64, length: Int64) throws(SystemError) -> Bool {
    if clinux_reserve(file, off_t(offset), off_t(length)) == 0 { return true }
    if errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR { return false }
    throw SystemError("fallocate", code: errno)
}

/// Frees a range of a file on the disk; reads of it return zeros (fallocate(2)).
package func punchHole(_ file: CInt, offset: Int64, length: Int64) {
    // A file system without holes keeps the bytes until the file is deleted, which only costs
    // space.
    _ = clinux_punch_hole(file, off_t(offset), off_t(length))
}

/// Waits until the file's data is on the disk (fdatasync(2)); blocks.
package func syncData(_ file: CInt) throws(SystemError) {
    _ = try check("fdatasync") { fdatasync(file) }
}

/// Starts writing a file's data to the disk without waiting for it (sync_file_range(2)).
///
/// Called for many files before their `syncData`, it lets one journal commit serve them all.
package func startWriteback(_ file: CInt) {
    // Only a hint: a later `syncData` reports errors.
    _ = clinux_start_writeback(file, 0, 0)
}

/// Waits until everything on an open file's file system is on the disk, names included (syncfs(2));
/// blocks.
///
/// For many files this is one wait instead of one per file.
package func syncFileSystem(of file: CInt) throws(SystemError) {
    _ = try check("syncfs") { clinux_sync_file_system(file) }
}

/// Waits until a folder's names are on the disk (fsync(2)); blocks.
package func syncFolder(_ path: String) throws(SystemError) {
    let folder = try openFile(path, flags: O_RDONLY | O_DIRECTORY)
    _ = try check("fsync", path) { fsync(folder.number) }
}

/// Renames a file within one file system, replacing an existing one (rename(2)).
package func renameFile(_ from: String, to path: String) throws(SystemError) {
    _ = try check("rename", path) { rename(from, path) }
}

/// Exchanges two names of one file system atomically (renameat2(2)).
///
/// On a file system without this call it takes three renames; see `exchangeByRenames`.
///
/// - Returns: the name of what was `one`: nearly always `other`.
@discardableResult
package func exchangeFiles(_ one: String, _ other: String) throws(SystemError) -> String {
    if clinux_exchange(one, other) == 0 { return other }
    guard errno == EINVAL || errno == ENOSYS else {
        throw SystemError("renameat2", code: errno, subject: one)
    }
    return try exchangeByRenames(one, other)
}

/// Exchanges two names of one file system by three renames (rename(2)); `one` is missing meanwhile.
///
/// - Parameters:
///   - one: a name.
///   - other: another name; the same with `.old` is used meanwhile.
///   - rename: renames a file; replaced by tests.
/// - Returns: the name of what was `one`: `other`, or that with `.old` if only the last one failed.
/// - Throws: `SystemError` if nothing was exchanged.
package func exchangeByRenames(
    _ one: String, _ other: String,
    rename: (String, String) throws(SystemError) -> Void = renameFile(_:to:)
) throws(SystemError) -> String {
    let old = other + ".old"
    try rename(one, old)
    do throws(SystemError) {
        try rename(other, one)
    } catch {
        // Nobody looks for it under this name.
        try? rename(old, one)
        throw error
    }
    do throws(SystemError) {
        try rename(old, other)
    } catch {
        return old
    }
    return other
}

/// Creates a hard link to a file on the same file system (link(2)).
package func linkFile(_ path: String, as name: String) throws(SystemError) {
    _ = try check("link", path) { link(path, name) }
}

/// Removes an empty folder; ignores a missing one (rmdir(2)).
package func removeFolder(_ path: String) throws(SystemError) {
    if rmdir(path) == 0 || errno == ENOENT { return }
    throw SystemError("rmdir", code: errno, subject: path)
}

/// Removes a file name; ignores a missing one (unlink(2)).
package func removeFile(_ path: String) throws(SystemError) {
    if unlink(path) == 0 || errno == ENOENT { return }
    throw SystemError("unlink", code: errno, subject: path)
}

/// Creates a folder and its parents, private to this user unless `mode` says more, which the umask
/// restricts; ignores an existing one (mkdir(2)).
package func makeFolder(_ path: String, mode: UInt32 = 0o700) throws(SystemError) {
    if mkdir(path, mode) == 0 || errno == EEXIST { return }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
        throw SystemError("mkdir", code: errno, subject: path)
    }
    try makeFolder(String(path[..<slash]), mode: mode)
    if mkdir(path, mode) == 0 || errno == EEXIST { return }
    throw SystemError("mkdir", code: errno, subject: path)
}

/// Returns the size of an open file in bytes (fstat(2)).
package func fileSize(_ file: CInt) throws(SystemError) -> Int64 {
    var found = stat()
    _ = try check("fstat") { fstat(file, &found) }
    return Int64(found.st_size)
}

/// Which file of the machine a path or descriptor means, whatever its names are.
package struct FileIdentity: Sendable, Equatable {
    private let device: dev_t
    private let inode: ino_t

    private init(_ found: stat) { (device, inode) = (found.st_dev, found.st_ino) }

    /// Identifies the file at a path; nil if there is none (stat(2)).
    package init?(at path: String) {
        var found = stat()
        guard stat(path, &found) == 0 else { return nil }
        self.init(found)
    }

    /// Identifies an open file; nil if the descriptor is not open (fstat(2)).
    package init?(of file: CInt) {
        var found = stat()
        guard fstat(file, &found) == 0 else { return nil }
        self.init(found)
    }

    /// True if both are on one mounted file system; false without another file.
    package func isOnDisk(of other: FileIdentity?) -> Bool { device == other?.device }
}

/// What is free for this user on a file system.
package struct FreeRoom: Sendable, Equatable {
    package var bytes: Int64
    /// The number of files that can still be made (inodes); nil if the file system counts none.
    package var files: Int64?

    package init(bytes: Int64, files: Int64? = nil) {
        self.bytes = bytes
        self.files = files
    }
}

/// Returns what is free for this user on a path's file system; nil if unknown (statvfs(3)).
package func freeRoom(at path: String) -> FreeRoom? {
    var free = clinux_free()
    guard clinux_free(path, &free) == 0, free.bytes >= 0 else { return nil }
    return FreeRoom(bytes: free.bytes, files: free.files < 0 ? nil : free.files)
}

/// Returns the bytes free for this user on a path's file system; nil if unknown (statvfs(3)).
package func freeBytes(at path: String) -> Int64? { freeRoom(at: path)?.bytes }

/// True on file systems that may report the space of deleted files as free only later: XFS frees it
/// in the background, Btrfs and ZFS with their next transaction, and networks and overlays hide them.
///
/// Only ext2 to ext4 and tmpfs are known to report it at once (statfs(2), `f_type`).
package func reportsFreedSpaceLate(at path: String) -> Bool {
    let prompt: Set<Int64> = [0xEF53, 0x0102_1994]
    return !prompt.contains(clinux_file_system(path))
}

/// An entry of a folder.
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
/// - Returns: false if another process, or another open of the file in this process, holds the
///   lock.
package func lockExclusively(_ file: CInt) throws(SystemError) -> Bool {
    if clinux_lock_exclusive(file) == 0 { return true }
    if errno == EAGAIN || errno == EACCES { return false }
    throw SystemError("fcntl", code: errno)
}

/// Returns true if another open of a file has a lock on it (fcntl(2), F_OFD_GETLK).
package func isLocked(_ file: CInt) throws(SystemError) -> Bool {
    try check("fcntl") { clinux_is_locked(file) } != 0
}
