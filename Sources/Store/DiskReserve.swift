import Glibc
import Posix

/// Files of the cache folder that keep a little of the disk, for a start on a full one.
///
/// SQLite writes when it opens a database, so that a daemon could not start, and nothing stored could
/// be played, as soon as something else had filled the disk: with bytes, or with files (inodes).
struct DiskReserve {
    /// More than the logs and their indexes that SQLite creates for both databases.
    private static let bytes: Int64 = 2 << 20
    /// As many files, and those that are replaced as a whole: `reserve`, and empty ones beside it.
    private static let files: Int64 = 8

    private let folder: String
    private var path: String { folder + "/reserve" }
    private var emptyPaths: [String] { (1..<Self.files).map { "\(path)-\($0)" } }

    init(folder: String) { self.folder = folder }

    /// Takes the room, unless the disk is nearly full or cannot reserve; blocks on the disk.
    func fill() {
        guard let free = freeRoom(at: folder) else { return }
        fillFiles(free)
        var found = stat()
        if stat(path, &found) == 0, Int64(found.st_blocks) * 512 >= Self.bytes { return }
        guard free.bytes > 16 * Self.bytes, let file = try? openFile(path, flags: O_RDWR | O_CREAT)
        else { return }
        if (try? reserve(file.number, offset: 0, length: Self.bytes)) != true { unlink(path) }
    }

    /// Creates the empty files where the file system limits the number of files.
    private func fillFiles(_ free: FreeRoom) {
        guard let files = free.files, files > 16 * Self.files else { return }
        for path in emptyPaths where access(path, F_OK) != 0 {
            _ = try? openFile(path, flags: O_RDWR | O_CREAT)
        }
    }

    /// Gives the room back if the disk is full; blocks on the disk.
    ///
    /// - Returns: true if there is more room than before.
    func spend() -> Bool {
        guard let free = freeRoom(at: folder) else { return false }
        let lacksFiles = free.files.map { $0 < Self.files } ?? false
        guard free.bytes < Self.bytes || lacksFiles else { return false }
        var hasMore = unlink(path) == 0
        for path in lacksFiles ? emptyPaths : [] where unlink(path) == 0 { hasMore = true }
        return hasMore
    }
}
