// Small files that the daemon stores besides objects, read with a size limit.
import Glibc
package import Logging
import Posix

/// Reads files of the cache folder, which may be damaged or foreign.
package enum StateFile {
    /// Returns the content of a file; nil if it is missing or unreadable.
    ///
    /// Blocks on the disk. A file longer than `limit` is not read. Failures other than a missing
    /// file are logged.
    package static func read(_ path: String, atMost limit: Int, _ log: Logger) -> [UInt8]? {
        do throws(SystemError) {
            return try readWhole(path, atMost: limit)
        } catch {
            guard error.code != ENOENT else { return nil }
            let reason =
                error.code == EFBIG
                ? "it is longer than any that sluice writes"
                : error.code == EINVAL ? "it is no plain file" : "\(error)"
            log.error(
                """
                a file of the cache folder is damaged or not ours, and is left unread; \
                delete it, or put back a copy
                """, metadata: ["path": "\(path)", "reason": "\(reason)", "limit": "\(limit)"])
            return nil
        }
    }
}
