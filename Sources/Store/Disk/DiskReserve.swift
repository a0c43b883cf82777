import Glibc
import Posix

/// Files of the cache folder that keep a little of the disk, for a start and a stop on a full one.
///
/// SQLite writes when it opens a database, so that a daemon could not start, and nothing stored could
/// be played, as soon as something else had filled the disk: with bytes, or with files (inodes). A
/// stop saves state and the windows of recordings, which name what is stored of them.
struct DiskReserve: Sendable {
    /// More than the logs and their indexes that SQLite creates for both databases.
    private static let bytes: Int64 = 2 << 20
    /// As many files, and those that are replaced as a whole: `reserve`, and empty ones beside it.
    private static let files: Int64 = 8

    private let folder: String
    private let room: @Sendable (String) -> FreeRoom?
    private var path: String { folder + "/reserve" }
    private var stopPath: String { path + "-stop" }
    private var emptyPaths: [String] { (1..<Self.files).map { "\(path)-\($0)" } }

    /// - Parameters:
    ///   - folder: the cache folder.
    ///   - room: returns the free room of the disk.
    init(folder: String, room: @escaping @Sendable (String) -> FreeRoom? = { freeRoom(at: $0) }) {
        self.folder = folder
        self.room = room
    }

    /// Takes the room, unless the disk is nearly full or cannot reserve; blocks on the disk.
    func fill() {
        guard let free = room(folder) else { return }
        // Only where the file system limits the number of files.
        if let files = free.files, files > 16 * Self.files { makeFiles() }
        guard free.bytes > 16 * Self.bytes else { return }
        for path in [path, stopPath] {
            var found = stat()
            if stat(path, &found) == 0, Int64(found.st_blocks) * 512 >= Self.bytes { continue }
            take(Self.bytes, at: path)
        }
    }

    private func take(_ length: Int64, at path: String) {
        guard let file = try? openFile(path, flags: O_RDWR | O_CREAT) else { return }
        if (try? reserve(file.number, offset: 0, length: length)) != true { unlink(path) }
    }

    private func makeFiles() {
        for path in emptyPaths where access(path, F_OK) != 0 {
            _ = try? openFile(path, flags: O_RDWR | O_CREAT)
        }
    }

    /// Gives the room for a start back if the disk is full, or that for a stop where that is spent;
    /// blocks on the disk.
    ///
    /// - Returns: true if there is more room than before.
    func spend() -> Bool {
        guard let free = room(folder) else { return false }
        let lacksFiles = lacksFiles(free)
        guard free.bytes < Self.bytes || lacksFiles else { return false }
        var hasMore = unlink(path) == 0 || unlink(stopPath) == 0
        for path in lacksFiles ? emptyPaths : [] where unlink(path) == 0 { hasMore = true }
        return hasMore
    }

    /// Gives the room for a stop back if the disk is full; blocks on the disk.
    ///
    /// Of the files, half are left to the next start.
    ///
    /// - Returns: true if there is more room than before.
    func spendForStop() -> Bool {
        guard let free = room(folder) else { return false }
        var hasMore = free.bytes < Self.bytes && unlink(stopPath) == 0
        let spent = lacksFiles(free) ? emptyPaths.prefix(Int(Self.files / 2)) : []
        for path in spent where unlink(path) == 0 { hasMore = true }
        return hasMore
    }

    /// Names what the disk lacks, for the log; blocks on the disk.
    var shortage: String {
        guard let free = room(folder), free.bytes >= Self.bytes, lacksFiles(free) else {
            return "the disk is full"
        }
        return "the disk is out of files (inodes, df -i)"
    }

    private func lacksFiles(_ free: FreeRoom) -> Bool {
        free.files.map { $0 < Self.files } ?? false
    }

    /// Takes back what a stop spent, for the next one: of bytes half of what is free, at most the
    /// usual room; blocks on the disk.
    ///
    /// The other half is for the start before that.
    func refillAfterStop() {
        guard let free = room(folder) else { return }
        if free.bytes > 1, access(stopPath, F_OK) != 0 {
            take(min(free.bytes / 2, Self.bytes), at: stopPath)
        }
        if (free.files ?? 0) > 0 { makeFiles() }
    }
}
