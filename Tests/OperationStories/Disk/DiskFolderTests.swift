import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A cache folder that was moved, partly deleted, is read-only, foreign, or of a newer version.
///
/// The message is clear, nothing is damaged, and if the daemon runs the player gets its bytes.
extension Stories {
    @Suite(.tags(.timed)) struct DiskFolderTests {
        @Test func `a folder moved away under the daemon stops no player`() throws {
            let folder = try TemporaryFolder()
            let (path, elsewhere) = (folder.makeFolder("cache"), folder.file("moved"))
            let story = try Story(cacheFolder: path)
            defer { withExtendedLifetime(folder) { story.stop() } }
            let known = (0..<6).map { segment("known\($0)", 200_000) }
            for path in known { _ = try story.get(path) }
            #expect(rename(path, elsewhere) == 0)
            for path in known + (0..<6).map({ segment("new\($0)", 200_000) }) {
                #expect(isContent(try story.get(path).body, of: path), "\(path)")
            }
            #expect(story.daemon.isRunning && !story.daemon.standardError.isEmpty)
            story.stop()
            // Nothing was created at the folder's path that would prevent moving it back.
            #expect(rename(elsewhere, path) == 0)
            try story.restart()
            story.cdn.stop()
            let answers = try known.map { try story.get($0) }
            #expect(zip(answers, known).allSatisfy { isContent($0.body, of: $1) })
        }

        @Test(arguments: ["objects", "new", "index.sqlite", "state.sqlite", "format", "lock", ""])
        func `a folder that is half deleted under the daemon stops no player`(part: String) throws {
            let story = try Story()
            let known = (0..<12).map { segment("known\($0)", 100_000) }
            for path in known { _ = try story.get(path) }
            let broken = story.cacheFolder + (part.isEmpty ? "" : "/" + part)
            #expect(try Tool.run(["rm", "-rf", broken]).status == 0)
            if part.hasSuffix(".sqlite") {
                for suffix in ["-wal", "-shm"] { unlink(broken + suffix) }
            }
            let new = (0..<6).map { segment("new\($0)", 100_000) }
            for path in known + new + known {
                let answers = try inParallel(2) { _ in try story.get(path) }
                #expect(answers.allSatisfy { isContent($0.body, of: path) }, "\(path)")
            }
            #expect(story.daemon.isRunning)
            story.stop()
            if (try? story.restart()) == nil {
                // A folder without its format file could be foreign, and is rejected.
                #expect(part == "format")
                #expect(try Tool.run(["rm", "-rf", story.cacheFolder]).status == 0)
                try story.restart()
            }
            for path in known { #expect(isContent(try story.get(path).body, of: path)) }
        }

        @Test func `objects deleted one by one are fetched again`() throws {
            let story = try Story()
            let paths = (0..<20).map { segment("taken\($0)", 80_000) }
            for path in paths { _ = try story.get(path) }
            try story.restart()
            for (index, file) in storedFiles(story.cacheFolder).enumerated() where index % 2 == 0 {
                unlink(file)
            }
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            try story.restart()
            story.cdn.stop()
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            let files = storedFiles(story.cacheFolder).count
            #expect(try story.settled("stored_objects") { $0 == files } == files)
        }

        @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
        func `a read-only folder is refused with a clear message and not changed`() throws {
            let disk = try MountedDisk()
            let story = try Story(["--min-free", "0"], cacheFolder: disk.path)
            let path = segment("kept", 200_000)
            _ = try story.get(path)
            story.stop()
            let before = try listing(disk.path)
            try disk.remount("ro")
            let (exit, words) = try Self.refusal(disk.path)
            #expect(exit == .code(4) && words.contains(disk.path))
            #expect(words.contains("Read-only file system") && words.contains("ReadWritePaths="))
            #expect(try listing(disk.path) == before)
            try disk.remount("rw")
            try story.restart()
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
            story.stop()
        }

        @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
        func `the empty folder below a lost disk is not used, and the disk is once it is back`()
            throws
        {
            let (disk, folder) = (try MountedDisk(megabytes: 64), try TemporaryFolder())
            let path = folder.makeFolder("cache")
            func mount() throws {
                #expect(try Tool.run(["mount", "--bind", disk.path, path]).status == 0)
            }
            func unmount() throws { #expect(try Tool.run(["umount", "-l", path]).status == 0) }
            try mount()
            defer {
                withExtendedLifetime((disk, folder)) {
                    _ = try? Tool.run(["umount", "-l", path])
                }
            }
            let story = try Story(["--min-free", "0"], cacheFolder: path)
            defer { story.stop() }
            let known = segment("known", 200_000)
            _ = try story.get(known)
            var count = 0
            // The folder is looked for while there is work.
            func isLogged(_ text: String) throws -> Bool {
                try eventually(pausing: .milliseconds(100)) {
                    count += 1
                    let new = segment("new\(count)", 1_000)
                    let answer = try story.get(new)
                    #expect(isContent(answer.body, of: new))
                    return story.daemon.standardError.contains(text)
                }
            }
            try unmount()
            #expect(try isLogged("the disk of the cache folder is not mounted"))
            try mount()
            #expect(try isLogged("the cache folder is back"))
            #expect(!story.daemon.standardError.contains("a new cache folder is used"))
            let late = segment("late", 200_000)
            // The failures on the way have suspended storing for some seconds.
            #expect(
                try eventually(pausing: .milliseconds(100)) {
                    try story.get(late)["Cache-Status"]?.contains("hit") == true
                })
            story.stop()
            try story.restart()
            story.cdn.stop()
            for path in [known, late] { #expect(isContent(try story.get(path).body, of: path)) }
            story.stop()
            try unmount()
            #expect(listFolder(path).isEmpty)
        }

        @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
        func `a daemon starts on a disk that something else has filled`() throws {
            let disk = try MountedDisk(megabytes: 64)
            let story = try Story(["--min-free", "0"], cacheFolder: disk.path)
            let (path, other) = (segment("kept", 200_000), segment("other", 200_000))
            _ = try story.get(path)
            story.stop()
            let filler = disk.path + "/filler"
            let filled = try Tool.run(["dd", "if=/dev/zero", "of=\(filler)", "bs=64k"])
            #expect(filled.status != 0, "the disk is full")
            // Twice: the room is given back once.
            for isFirst in [true, false] {
                try story.restart()
                let isTold = story.daemon.standardError.contains("the disk is full")
                #expect(isTold == isFirst, "\(story.daemon.standardError)")
                #expect(isContent(try story.get(path).body, of: path))
                #expect(isContent(try story.get(other).body, of: other))
            }
            unlink(filler)
            try story.restart()
            #expect(isContent(try story.get(path).body, of: path))
            story.stop()
        }

        @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
        func `a stop on a disk that something else has filled saves with the room kept for it`()
            throws
        {
            let disk = try MountedDisk(megabytes: 64)
            let story = try Story(["--min-free", "0"], cacheFolder: disk.path)
            let path = segment("kept", 200_000)
            _ = try story.get(path)
            let filler = disk.path + "/filler"
            let filled = try Tool.run(["dd", "if=/dev/zero", "of=\(filler)", "bs=4k"])
            #expect(filled.status != 0, "the disk is full")
            for _ in 1...2 {
                story.stop()
                let words = story.daemon.standardError
                #expect(words.contains("the room that is kept for a stop"), "\(words)")
                #expect(!words.contains("state of this run is lost"), "\(words)")
                // For the next stop.
                #expect(access(disk.path + "/reserve-stop", F_OK) == 0)
                try story.restart()
                #expect(isContent(try story.get(path).body, of: path))
            }
            story.stop()
        }

        @Test(.enabled(if: geteuid() == 0, "mounting needs root"))
        func `a disk out of inodes evicts old objects, and a daemon starts on it`() throws {
            let disk = try MountedDisk(megabytes: 64, files: 500)
            let story = try Story(["--min-free", "0"], cacheFolder: disk.path)
            let paths = (0..<300).map { segment("i\($0)", 1_000) }
            let player = story.player()
            for path in paths { _ = try player.get(story.url(path)) }
            let last = try #require(paths.last)
            #expect(try story.get(last)["Cache-Status"]?.contains("hit") == true)
            #expect(try story.stat("evictions_total") > 0)
            #expect(try story.stat("storage_failures_total") == 0)
            story.stop()
            // Something else takes the rest.
            let taken = try Tool.run([
                "sh", "-c", "i=0; while : > \(disk.path)/f$i; do i=$((i+1)); done",
            ])
            #expect(taken.status != 0)
            let told = try sluice("doctor", "--port", "0", "--cache-dir", disk.path)
            #expect(told.stdout.contains("inodes") && !told.stdout.contains("chown"))
            try story.restart()
            #expect(try story.get(last)["Cache-Status"]?.contains("hit") == true)
            let words = story.daemon.standardError
            #expect(words.contains("inodes") && !words.contains("the disk is full"), "\(words)")
            story.stop()
        }

        @Test func `a folder of a newer version is refused with a clear message and not changed`()
            throws
        {
            let story = try Story()
            let path = segment("kept", 200_000)
            _ = try story.get(path)
            story.stop()
            let format = story.cacheFolder + "/format"
            let now = try readFile(format)
            try writeFile(format, Array("SLUICE STORE 99\n".utf8))
            let before = try listing(story.cacheFolder)
            let (exit, words) = try Self.refusal(story.cacheFolder)
            #expect(exit == .code(78) && words.contains("99") && words.contains(story.cacheFolder))
            #expect(try listing(story.cacheFolder) == before)
            try writeFile(format, now)
            try story.restart()
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
        }

        @Test(.enabled(if: Tool.exists("sqlite3"), "needs sqlite3"))
        func `an index of a newer version loses nothing that is stored`() throws {
            let story = try Story()
            let path = segment("kept", 200_000)
            _ = try story.get(path)
            story.stop()
            let index = story.cacheFolder + "/index.sqlite"
            let change =
                "INSERT INTO grdb_migrations VALUES ('99'); ALTER TABLE objects ADD future;"
            #expect(try Tool.run(["sqlite3", index, change]).status == 0)
            if (try? story.restart()) == nil {
                let (exit, words) = try Self.refusal(story.cacheFolder)
                #expect(exit == .code(78) && words.contains("newer"), "\(words)")
                unlink(index)
                try story.restart()
            }
            story.cdn.stop()
            #expect(isContent(try story.get(path).body, of: path))
        }

        /// The exit status and message of the daemon for a folder that it cannot use.
        static func refusal(_ folder: String) throws -> (ChildProcess.Exit?, String) {
            let command = ["serve", "--port", "0", "--cache-dir", folder]
            let child = try ChildProcess([try DaemonProcess.builtBinary()] + command)
            defer { child.end() }
            let exit = child.waitForExit()
            return (exit, String(decoding: child.standardError, as: UTF8.self))
        }
    }
}

/// Names, sizes and times of everything in a folder.
private func listing(_ folder: String) throws -> String {
    try Tool.run(["find", folder, "-printf", "%p %s %T@ %m\n"]).stdout
        .split(separator: "\n").sorted().joined(separator: "\n")
}
