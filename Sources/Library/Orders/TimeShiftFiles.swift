// Snapshots of time shift windows on disk, so that they survive a restart.
//
// One file for each list, replaced as a whole: a first line that identifies the format, then the
// result of `TimeShift.snapshot`. Unreadable files are ignored.
import DurableState
import Glibc
package import HLS
package import Logging
import Model
package import Posix
package import Routing
import Store
package import URISyntax

/// The folder of snapshots.
package struct TimeShiftFiles: Sendable {
    /// The most bytes of all snapshots together; the oldest are deleted first.
    package static let mostBytes: Int64 = 256_000_000
    /// The largest snapshot that is read; a window of many days is smaller.
    private static let mostOfOne = 64 << 20
    private static let firstLine = "SLUICE WINDOW 1"

    package let folder: String

    private let log: Logger

    package init(folder: String, log: Logger) {
        self.folder = folder
        self.log = log
    }

    private func path(_ url: AbsoluteURL, _ session: SessionID) -> String {
        let name = url.withoutDirectives.normalisedForKey
        return "\(folder)/\(ObjectKey(sha256Of: "\(session.text) \(name)").hex.prefix(32))"
    }

    /// Loads the snapshot of a list; nil without one.
    ///
    /// Blocks on the disk.
    package func load(_ url: AbsoluteURL, _ session: SessionID) -> TimeShift? {
        guard
            let bytes = StateFile.read(path(url, session), atMost: Self.mostOfOne, log),
            let end = bytes.firstIndex(of: 0x0A),
            String(decoding: bytes[..<end], as: UTF8.self) == Self.firstLine
        else { return nil }
        let shift = TimeShift(snapshot: Array(bytes[(end + 1)...]))
        return shift.segments.isEmpty ? nil : shift
    }

    /// Replaces the snapshot of a list; blocks on the disk.
    package func save(_ shift: TimeShift, _ url: AbsoluteURL, _ session: SessionID)
        throws(SystemError)
    {
        try makeFolder(folder)
        try replaceFile(
            path(url, session), with: Array((Self.firstLine + "\n").utf8) + shift.snapshot(),
            in: folder)
    }

    /// Deletes the snapshot of a list.
    package func remove(_ url: AbsoluteURL, _ session: SessionID) {
        try? removeFile(path(url, session))
    }

    /// Deletes snapshots that are too old for any window, and the oldest beyond `mostBytes`.
    package func clean(now: WallTime) {
        guard let files = try? listFolder(folder) else { return }
        var found: [(path: String, bytes: Int64, changed: Int64)] = []
        for file in files where !file.isFolder {
            let path = "\(folder)/\(file.name)"
            var status = stat()
            guard stat(path, &status) == 0 else { continue }
            found.append((path, Int64(status.st_size), Int64(status.st_mtim.tv_sec)))
        }
        var bytes: Int64 = 0
        for file in found.sorted(by: { $0.changed > $1.changed }) {
            bytes += file.bytes
            let isOld = now.seconds - file.changed > 2 * Int64(WindowLength.longest)
            if isOld || bytes > Self.mostBytes || file.path.hasSuffix(".new") {
                try? removeFile(file.path)
            }
        }
    }
}
