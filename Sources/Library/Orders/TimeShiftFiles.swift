// Snapshots of time shift windows on disk, so that they survive a restart.
//
// One file for each window, replaced as a whole: a first line that identifies the format, then the
// result of `TimeShift.snapshot`. Damaged files are set aside, so that no new window replaces them.
import DurableState
import Glibc
package import HLS
package import Logging
import Model
import Numbers
package import Posix
import Routing
import Store

/// The folder of snapshots.
package struct TimeShiftFiles: Sendable {
    /// The most bytes of all snapshots together; the oldest are deleted first.
    ///
    /// Default 1 GB: a day of segments of two seconds takes about 7 MB.
    package static let mostBytes: Int64 = 1_000_000_000
    /// How long a snapshot that cannot be read is waited for, if other work goes on meanwhile.
    package static let patience = Interval.seconds(30 as Int64)
    /// The largest snapshot; a window of many days is smaller.
    private static let mostOfOne = PlaylistLimits.own.byteCount
    private static let firstLine = Array("SLUICE WINDOW 1\n".utf8)
    /// The errors of what this program did not write: too long, or no regular file.
    private static let foreign: Set<CInt> = [EFBIG, EINVAL, ELOOP, ENXIO]
    /// Added to the name of a snapshot that could not be read.
    private static let asideSuffix = ".unread"

    package let folder: String

    private let log: Logger

    package init(folder: String, log: Logger) {
        self.folder = folder
        self.log = log
    }

    /// Returns the snapshots of recordings, which stay; `folder` is that of the store.
    package static func ofRecordings(in folder: String, log: Logger) -> TimeShiftFiles {
        TimeShiftFiles(folder: recordings(in: folder), log: log)
    }

    private static func recordings(in folder: String) -> String { folder + "/recordings/windows" }

    /// Returns the snapshot of a recording's window, for whoever only looks at it: one that cannot
    /// be read stays where it is.
    ///
    /// - Parameters:
    ///   - name: the name of the window.
    ///   - folder: the folder of the store.
    ///   - limits: the limits of the window.
    /// - Returns: the window; nil if there is none, or none that can be read.
    package static func recorded(
        _ name: WindowName, in folder: String, limits: TimeShift.Limits
    ) -> TimeShift? {
        let path = "\(recordings(in: folder))/\(name.fileName)"
        guard let bytes = try? readWhole(path, atMost: mostOfOne), bytes.starts(with: firstLine)
        else { return nil }
        return try? TimeShift(snapshot: Array(bytes[firstLine.count...]), limits: limits)
    }

    private func path(_ name: WindowName) -> String { "\(folder)/\(name.fileName)" }

    /// Returns when each snapshot was saved, by the name of its file; blocks on the disk.
    package func saved() -> [String: WallTime] {
        var found: [String: WallTime] = [:]
        // Those that were set aside, or are being written, have an extension.
        for file in (try? listFolder(folder)) ?? []
        where !file.isFolder && !file.name.contains(".") {
            var status = stat()
            guard stat("\(folder)/\(file.name)", &status) == 0 else { continue }
            found[file.name] = WallTime(seconds: Int64(status.st_mtim.tv_sec))
        }
        return found
    }

    /// Returns when the snapshot of a window was saved; nil without one; blocks on the disk.
    package func savedTime(of name: WindowName) -> WallTime? {
        var status = stat()
        guard stat(path(name), &status) == 0 else { return nil }
        let seconds = WallTime(seconds: Int64(status.st_mtim.tv_sec))
        return seconds + Interval(nanoseconds: Int64(status.st_mtim.tv_nsec))
    }

    /// Loads the snapshot of a window; nil without one.
    ///
    /// Blocks on the disk. A damaged or foreign snapshot is set aside.
    ///
    /// - Throws: what keeps the snapshot from being read now, such as a lack of descriptors: it
    ///   stays as it is, and must not be replaced.
    package func load(
        _ name: WindowName, limits: TimeShift.Limits
    ) throws(SystemError) -> TimeShift? {
        try load(file: name.fileName, limits: limits)
    }

    /// As `load`, for the name of a file.
    func load(file: String, limits: TimeShift.Limits) throws(SystemError) -> TimeShift? {
        let path = "\(folder)/\(file)"
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try readWhole(path, atMost: Self.mostOfOne)
        } catch {
            if error.code == ENOENT { return nil }
            guard Self.foreign.contains(error.code) else { throw error }
            setAside(path, "\(error)")
            return nil
        }
        guard bytes.starts(with: Self.firstLine) else {
            setAside(path, "it is not of this version's format")
            return nil
        }
        do {
            let shift = try TimeShift(
                snapshot: Array(bytes[Self.firstLine.count...]), limits: limits)
            return shift.segments.isEmpty ? nil : shift
        } catch {
            setAside(path, "\(error)")
            return nil
        }
    }

    /// Sets the snapshot of a window aside that could not be read for too long.
    package func setAside(_ name: WindowName) {
        setAside(path(name), "it could not be read for too long")
    }

    /// Reports that a snapshot could not be read for too long; what it names is not spared.
    func noteGivenUp(_ file: String, _ reason: SystemError) {
        log.error(
            "a saved window cannot be read; segments that only it names may be removed",
            metadata: ["path": "\(folder)/\(file)", "reason": "\(reason)"])
    }

    /// Renames a snapshot that cannot be read, so that it is not replaced by the new window.
    private func setAside(_ path: String, _ reason: String) {
        let aside = path + Self.asideSuffix
        let isAside = (try? renameFile(path, to: aside)) != nil
        log.error(
            "a saved window cannot be read; the window begins anew",
            metadata: ["path": "\(isAside ? aside : path)", "reason": "\(reason)"])
    }

    /// Replaces the snapshot of a window; blocks on the disk.
    ///
    /// Throws `EFBIG` if it would be too long to be loaded, and keeps the former one.
    ///
    /// - Returns: its length in bytes.
    @discardableResult
    package func save(_ shift: TimeShift, _ name: WindowName) throws(SystemError) -> Int {
        let path = path(name)
        let bytes = Self.firstLine + shift.snapshot()
        guard bytes.count <= Self.mostOfOne else {
            throw SystemError("write", code: EFBIG, subject: path)
        }
        try makeFolder(folder)
        try replaceFile(path, with: bytes, in: folder)
        return bytes.count
    }

    /// Deletes the snapshot of a window, also one that was set aside.
    package func remove(_ name: WindowName) {
        let path = path(name)
        try? removeFile(path)
        try? removeFile(path + Self.asideSuffix)
    }

    /// Deletes snapshots that are too old for any window, and the oldest beyond a limit; blocks on
    /// the disk.
    ///
    /// - Parameters:
    ///   - now: the time; nil to delete none for its age, since the clock is not trusted.
    ///   - loaded: the windows in memory, whose snapshots stay, but count.
    ///   - mostBytes: the most bytes of all snapshots together.
    package func clean(
        now: WallTime?, besides loaded: [WindowName], mostBytes: Int64 = TimeShiftFiles.mostBytes
    ) {
        guard let files = try? listFolder(folder) else { return }
        let kept = Set(loaded.map(\.fileName))
        var bytes: Int64 = 0
        var found: [(path: String, bytes: Int64, changed: Int64)] = []
        for file in files where !file.isFolder {
            let path = "\(folder)/\(file.name)"
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            let size = Int64(status.st_size)
            if kept.contains(file.name) {
                bytes = bytes.addingSaturated(size)
            } else {
                found.append((path, size, Int64(status.st_mtim.tv_sec)))
            }
        }
        var (count, excess) = (0, 0 as Int64)
        for file in found.sorted(by: { $0.changed > $1.changed }) {
            let age = now?.seconds.subtractingSaturated(file.changed) ?? 0
            if age > 2 * Int64(WindowLength.longest) || file.path.hasSuffix(".new") {
                try? removeFile(file.path)
                continue
            }
            bytes = bytes.addingSaturated(file.bytes)
            guard bytes > mostBytes else { continue }
            try? removeFile(file.path)
            count += 1
            excess = excess.addingSaturated(file.bytes)
        }
        guard count > 0 else { return }
        log.warning(
            "the saved windows exceeded their limit; the oldest were deleted and begin anew",
            metadata: ["windows": "\(count)", "bytes": "\(excess)", "limit": "\(mostBytes)"])
    }
}
