import Glibc
import Synchronization

/// Remembers the content hashes of served files, so that each is read once per change.
final class FileHashes: Sendable {
    static let shared = FileHashes()

    private struct Entry {
        let size: Int
        let inode: UInt64
        let seconds: Int
        let nanoseconds: Int
        let hash: UInt64
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// The hash of the open file; cached while its size, inode and modification time are unchanged.
    func hash(_ descriptor: Int32, _ path: String, _ status: stat) -> UInt64? {
        let size = Int(status.st_size)
        let time = status.st_mtim
        if let entry = entries.withLock({ $0[path] }), entry.size == size,
            entry.inode == UInt64(status.st_ino), entry.seconds == time.tv_sec,
            entry.nanoseconds == time.tv_nsec
        {
            return entry.hash
        }
        var hash = UInt64(size)
        var offset = 0
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while offset < size {
            let count = buffer.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress, $0.count, off_t(offset))
            }
            guard count > 0 else { return nil }
            hash = hash &* 31 &+ Digest.of(Array(buffer[..<count]))
            offset += count
        }
        let entry = Entry(
            size: size, inode: UInt64(status.st_ino), seconds: time.tv_sec,
            nanoseconds: time.tv_nsec, hash: hash)
        entries.withLock { $0[path] = entry }
        return hash
    }
}
