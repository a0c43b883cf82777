// Replaces a damaged state database with a new one that has the rows which could be read.
//
//     state.sqlite.new     the new one while it is written; ignored and removed by a start
//     state.sqlite.made    the new one, whole and on the disk, until it takes its place
//
// The damaged file stays in place until the new one is whole. So a full disk or the end of the run
// loses no row that the next attempt can read, and no start takes an empty file for all there was.
import GRDB
import Glibc
import Logging
import Posix

extension StateDatabase {
    private static func unfinished(in folder: String) -> String { path(in: folder) + ".new" }
    private static func finished(in folder: String) -> String { path(in: folder) + ".made" }

    /// Puts a new database with the rows that could be read in place of the damaged one, which is
    /// set aside; does not open it.
    ///
    /// If it throws, the damaged one is still in place, or the next start ends the replacement.
    static func replace(
        _ folder: String, _ found: StateContents, _ reason: String, _ log: Logger
    ) throws {
        try make(found, in: folder)
        let aside = try exchange(in: folder)
        let kept = found.rows.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
            .map { "\($0.key): \($0.value.count)" }.joined(separator: ", ")
        log.error(
            """
            the state database was damaged and is set aside: what could be read of sessions, \
            learned key rules, pins, downloads, recordings and feeds counts, and the rest of them \
            is lost; objects are not concerned. Order again what is missing, or stop the daemon and \
            put back a copy of the file
            """,
            metadata: [
                "aside": "\(aside)", "reason": "\(reason)", "unread": "\(found.unreadText)",
                "kept": "\(kept.isEmpty ? "nothing" : kept)",
            ])
        syncNames(in: folder, log)
    }

    private static func syncNames(in folder: String, _ log: Logger) {
        do throws(SystemError) {
            try syncFolder(folder)
        } catch {
            // The new one is in use by now; to throw would stop that, and undo nothing.
            log.error(
                "the disk may forget after a power cut that the state database was replaced",
                metadata: ["error": "\(error)"])
        }
    }

    /// Writes a new database with these rows to the path, where nothing is; does not open it.
    ///
    /// If it throws, nothing is there, or the next start ends it.
    static func restore(_ found: StateContents, in folder: String, _ log: Logger) throws {
        try make(found, in: folder)
        try placeFinished(in: folder)
        syncNames(in: folder, log)
    }

    /// Puts the finished new database to the path, where nothing is.
    private static func placeFinished(in folder: String) throws(SystemError) {
        // SQLite would replay the log of the former one into the new one.
        for suffix in suffixes { try removeFile(path(in: folder) + suffix) }
        try renameFile(finished(in: folder), to: path(in: folder))
    }

    /// Writes the new database, whole and synced.
    private static func make(_ found: StateContents, in folder: String) throws {
        removeUnfinished(in: folder)
        do {
            try write(found, toNew: unfinished(in: folder))
            removeLogs(of: unfinished(in: folder))
            try renameFile(unfinished(in: folder), to: finished(in: folder))
            // Before the damaged one loses its name.
            try syncFolder(folder)
        } catch {
            // A full disk needs the room.
            removeUnfinished(in: folder)
            throw error
        }
    }

    private static func write(_ found: StateContents, toNew path: String) throws {
        let queue = try open(path)
        defer { try? queue.close() }
        try write(found, to: queue)
        // Syncs the file, and leaves nothing in its log, which has another name later.
        try queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }

    /// Renames the damaged database, with SQLite's files next to it, and then the new one.
    ///
    /// - Returns: the path of the damaged one.
    private static func exchange(in folder: String) throws(SystemError) -> String {
        let path = path(in: folder)
        let aside = "\(folder)/\(damagedPrefix)\(WallTime.now().seconds)"
        var moved: [String] = []
        do throws(SystemError) {
            // The database first: a start that still finds it must find its log too.
            for suffix in [""] + suffixes {
                if try isMoved(path + suffix, to: aside + suffix) { moved.append(suffix) }
            }
            try renameFile(finished(in: folder), to: path)
        } catch {
            // In the reverse order, for the same reason.
            for suffix in moved.reversed() { rename(aside + suffix, path + suffix) }
            throw error
        }
        return aside
    }

    /// Renames a file; false if there is none.
    private static func isMoved(_ path: String, to name: String) throws(SystemError) -> Bool {
        do throws(SystemError) {
            try renameFile(path, to: name)
            return true
        } catch {
            guard error.code == ENOENT else { throw error }
            return false
        }
    }

    /// Ends a replacement that an earlier run has begun: puts a whole new database in its place if
    /// nothing is there, and removes any other; blocks on the disk.
    static func endReplacement(in folder: String, _ log: Logger) throws(SystemError) {
        let path = path(in: folder)
        var found = stat()
        let isMissing = lstat(path, &found) != 0 && errno == ENOENT
        if isMissing, lstat(finished(in: folder), &found) == 0 {
            try placeFinished(in: folder)
            try syncFolder(folder)
            log.error(
                """
                the state database was damaged or removed, and an earlier run wrote it anew: what \
                could be read of it counts, and the rest is lost (a damaged one is in \
                \(damagedPrefix)<time>). Order again what is missing
                """, metadata: ["folder": "\(folder)"])
        }
        if access(finished(in: folder), F_OK) == 0 || access(unfinished(in: folder), F_OK) == 0 {
            removeUnfinished(in: folder)
        }
    }

    /// Removes what is left of a replacement that did not get its place.
    private static func removeUnfinished(in folder: String) {
        unlink(finished(in: folder))
        unlink(unfinished(in: folder))
        removeLogs(of: unfinished(in: folder))
    }

    private static func removeLogs(of path: String) {
        for suffix in suffixes { unlink(path + suffix) }
    }
}
