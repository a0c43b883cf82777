import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Foreign files in the cache folder.
extension Stories {
    @Suite(.tags(.timed)) struct StateFileTests {
        private static let names = [
            "downloads/00000000000a", "downloads/day", "recordings/00000000000a", "probation",
        ]

        @Test func `state files of gigabytes take no memory and do not prevent a start`() throws {
            let story = try Story()
            let path = segment("kept", 300_000)
            _ = try story.get(path)
            story.stop()
            for folder in ["downloads", "recordings"] {
                mkdir(story.cacheFolder + "/" + folder, 0o700)
            }
            for name in Self.names + ["pins", "format", "clean", "purge"] {
                try lengthen(story.cacheFolder + "/" + name)
            }
            try story.restart()
            #expect(try story.get(path)["Cache-Status"]?.contains("hit") == true)
            #expect(try peakMegabytes(of: story.daemon.pid) < 400)
            for name in Self.names {
                #expect(eventually { tells(story, name, "longer than any") }, "\(name)")
            }
            let log = story.daemon.standardError
            #expect(log.contains("the file of pins was damaged"))
            #expect(log.contains("order of an unfinished purge is damaged"))
            try story.restart()
            #expect(try story.get(path)["Cache-Status"]?.contains("hit") == true)
        }

        @Test func `a pipe in place of a state file does not block`() throws {
            let story = try Story()
            story.stop()
            for folder in ["downloads", "recordings"] {
                mkdir(story.cacheFolder + "/" + folder, 0o700)
            }
            for name in Self.names {
                unlink(story.cacheFolder + "/" + name)
                #expect(mkfifo(story.cacheFolder + "/" + name, 0o600) == 0)
            }
            try story.restart()
            for name in Self.names {
                #expect(eventually { tells(story, name, "no plain file") }, "\(name)")
            }
        }

        @Test(arguments: [true, false])
        func `a start tells that the state database is lost`(isEmpty: Bool) throws {
            let story = try Story()
            let line = "the state database of the cache folder is missing or empty"
            _ = try story.get(segment("kept", 10_000))
            #expect(!story.daemon.standardError.contains(line), "nothing is lost at a first start")
            try story.restart()
            #expect(!story.daemon.standardError.contains(line))
            story.stop()
            let path = story.cacheFolder + "/state.sqlite"
            #expect(isEmpty ? truncate(path, 0) == 0 : unlink(path) == 0)
            try story.restart()
            #expect(eventually { story.daemon.standardError.contains(line) })
            #expect(try story.get(segment("kept", 10_000))["Cache-Status"]?.contains("hit") == true)
            try story.restart()
            #expect(!story.daemon.standardError.contains(line), "once")
        }

        @Test func `a history of figures that cannot be read at a start is not replaced`() throws {
            let story = try Story()
            _ = try story.get(segment("a", 10_000))
            story.stop()
            let path = story.cacheFolder + "/history.json"
            #expect(rename(path, path + ".kept") == 0)
            // A link to itself cannot be opened, not even by root.
            #expect(symlink(path, path) == 0)
            try story.restart()
            _ = try story.get(segment("b", 10_000))
            story.stop()
            var target: [CChar] = [0]
            #expect(readlink(path, &target, 1) == 1, "it is still there")
        }

        private func tells(_ story: Story, _ name: String, _ reason: String) -> Bool {
            story.daemon.standardError.split(separator: "\n").contains {
                $0.hasSuffix("/\(name)") && $0.contains("left unread") && $0.contains(reason)
            }
        }

        /// Two gigabytes that occupy no disk space.
        private func lengthen(_ path: String) throws {
            let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            defer { close(file) }
            #expect(file >= 0 && ftruncate(file, 2 << 30) == 0)
        }

        private func peakMegabytes(of pid: Int32) throws -> Int {
            let status = try Tool.run(["grep", "VmHWM", "/proc/\(pid)/status"]).stdout
            return Int(status.filter(\.isNumber)).map { $0 / 1_024 } ?? .max
        }
    }
}
