// Small files that the daemon keeps beside its objects, read with a bound.
import Glibc
package import Logging
import Posix

/// Reads files of the cache folder, which others may have damaged or put there.
package enum StateFile {
    /// The content of a file; nil where there is none that can be read.
    ///
    /// Blocks on the disk. One that is longer than any that this program writes is not read, which the
    /// log tells; the start goes on without it.
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
