/// A small file system of its own, for stories in which a disk is full or read-only; needs root.
package final class MountedDisk: Sendable {
    package let path: String
    private let folder: TemporaryFolder

    /// Mounts it; `files` limits the number of files (inodes).
    package init(megabytes: Int = 32, files: Int? = nil) throws {
        folder = try TemporaryFolder()
        path = folder.makeFolder("disk")
        let size = "size=\(megabytes)m" + (files.map { ",nr_inodes=\($0)" } ?? "")
        let mounted = try Tool.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", path])
        guard mounted.status == 0 else { throw ScenarioFailure("cannot mount: \(mounted.stderr)") }
    }

    deinit {
        // Lazily, because a failed story may leave a daemon on it for a moment.
        _ = try? Tool.run(["umount", "-l", path])
    }

    package func remount(_ mode: String) throws {
        let done = try Tool.run(["mount", "-o", "remount,\(mode)", path])
        guard done.status == 0 else { throw ScenarioFailure("cannot remount: \(done.stderr)") }
    }
}
