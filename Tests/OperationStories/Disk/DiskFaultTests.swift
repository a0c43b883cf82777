// A disk that fails in every way under a running daemon: players still get their bytes.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Calls of one kind that fail with one error.
struct DiskFault: Sendable, CustomTestStringConvertible {
    let calls: [DiskRecorder.Fault]
    let error: Int32

    var testDescription: String { "\(calls) with \(String(cString: strerror(error)))" }

    static let all: [DiskFault] = [
        // A full disk or quota.
        DiskFault(calls: [.write], error: ENOSPC), DiskFault(calls: [.reserve], error: ENOSPC),
        DiskFault(calls: [.create, .write, .reserve], error: EDQUOT),
        DiskFault(calls: [.create, .write, .reserve, .rename], error: ENOSPC),
        // A failing disk.
        DiskFault(calls: [.write], error: EIO), DiskFault(calls: [.sync], error: EIO),
        DiskFault(calls: [.rename], error: EIO), DiskFault(calls: [.unlink], error: EIO),
        DiskFault(calls: [.open], error: EIO), DiskFault(calls: [.read], error: EIO),
        DiskFault(
            calls: [.open, .create, .write, .sync, .rename, .unlink, .reserve, .read], error: EIO),
        // A file system that the kernel has made read-only after an error.
        DiskFault(calls: [.create, .write, .rename, .unlink, .reserve], error: EROFS),
        // Too many files.
        DiskFault(calls: [.open, .create], error: EMFILE),
        DiskFault(calls: [.open, .create], error: ENFILE),
        DiskFault(calls: [.create, .rename, .unlink], error: EACCES),
    ]
}

extension Stories {
    @Suite(
        .tags(.crowded),
        .enabled(if: Tool.cCompiler != nil, "faults are made by a library that is built here"))
    struct DiskFaultTests {
        @Test(arguments: DiskFault.all)
        func `players get every byte whatever the disk fails to do`(fault: DiskFault) throws {
            let disk = try FailingDisk()
            let story = disk.story
            let before = (0..<4).map { segment("before\($0)", 150_000) }
            for path in before { _ = try story.get(path) }
            let growing = try disk.openGrowing()
            try disk.fail(fault)
            #expect(try disk.finish(growing))
            // Stored, new, of unknown length, and requested by several at once.
            let during = before + (0..<4).map { segment("during\($0)", 400_000) } + [disk.chunked]
            for path in during {
                let answers = try inParallel(2) { _ in try story.get(path) }
                #expect(answers.allSatisfy { isContent($0.body, of: path) }, "\(path)")
                #expect(try isPart(of: path, story), "\(path)")
            }
            #expect(story.daemon.isRunning)
            try disk.heal()
            try expectStoring(story, known: during)
            try story.restart()
            for path in during { #expect(isContent(try story.get(path).body, of: path)) }
        }

        @Test(arguments: [ENOSPC, EIO, EDQUOT])
        func `a disk that fails at the first byte costs the player none`(error: Int32) throws {
            let disk = try FailingDisk()
            try disk.fail(DiskFault(calls: [.write], error: error))
            let story = disk.story
            for path in [segment("first", 100_000), disk.chunked] {
                let answers = try inParallel(3) { _ in try story.get(path) }
                for answer in answers {
                    #expect(answer.status == 200 && isContent(answer.body, of: path))
                }
            }
        }

        @Test func `stored bytes that cannot be read are fetched again`() throws {
            let disk = try FailingDisk()
            let story = disk.story
            let path = segment("unreadable", 900_000)
            #expect(isContent(try story.get(path).body, of: path))
            try disk.fail(DiskFault(calls: [.send], error: EIO))
            for _ in 0..<3 {
                let answer = try story.get(path)
                #expect(answer.complete && isContent(answer.body, of: path))
            }
            #expect(story.daemon.standardError.contains("stored bytes cannot be read"))
            try disk.heal()
            #expect(isContent(try story.get(path).body, of: path))
            let before = story.cdn.requestCount(path)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == before)
        }

        @Test func `stored bytes for which there is no memory are kept`() throws {
            let disk = try FailingDisk()
            let story = disk.story
            let path = segment("no-memory", 900_000)
            #expect(isContent(try story.get(path).body, of: path))
            try disk.fail(DiskFault(calls: [.send], error: ENOMEM))
            for _ in 0..<3 {
                let answer = try? story.get(path)
                #expect(answer?.complete != true)
            }
            try disk.heal()
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 1)
        }

        @Test(arguments: [EROFS, EIO])
        func `a purge that the disk cannot save is refused, and removes nothing`(
            error: Int32
        ) throws {
            let disk = try FailingDisk()
            let story = disk.story
            let path = segment("kept", 100_000)
            _ = try story.get(path)
            try disk.fail(
                DiskFault(calls: [.create, .write, .rename, .unlink, .reserve], error: error))
            let refused = try story.ask("purge", story.cdn.url(path))
            #expect(refused.status == 1 && refused.stderr.contains("507"), "\(refused)")
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 1)
            try disk.heal()
            #expect(try story.ask("purge", story.cdn.url(path)).status == 0)
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 2)
        }

        @Test func `what a purge on a full disk could not delete is not served by the next run`()
            throws
        {
            let disk = try FailingDisk()
            let story = disk.story
            let path = segment("purged", 100_000)
            _ = try story.get(path)
            // An administration request first has the headers of finished objects written.
            #expect(try story.follow("/api/titles").status == 200)
            try disk.fail(DiskFault(calls: [.write], error: ENOSPC))
            try disk.fail(DiskFault(calls: [.unlink], error: EIO))
            // It makes room, so that it needs no record.
            #expect(try story.ask("purge", story.cdn.url(path)).status == 0)
            try disk.fail(DiskFault(calls: [.write], error: 0))
            story.stop()
            try disk.fail(DiskFault(calls: [.unlink], error: 0))
            try story.restart()
            #expect(isContent(try story.get(path).body, of: path))
            #expect(story.cdn.requestCount(path) == 2)
        }

        /// Nothing but the stored bytes shows that the parts of this body are of one version.
        @Test func `bytes behind a hole that a crash spoiled are fetched again`() throws {
            let story = try Story()
            let path = segment("spoiled", 4_000_000)
            story.cdn.setBehaviour("noetag=1&lastmod=", for: path)
            let part = try story.get(path, range: "bytes=2000000-")
            #expect(isContent(part.body, of: path, from: 2_000_000, count: 2_000_000))
            story.stop()
            unlink(story.cacheFolder + "/clean")
            for name in storedFiles(story.cacheFolder) {
                let file = open(name, O_RDWR)
                let zeros = [UInt8](repeating: 0, count: 64)
                let written = pwrite(file, zeros, zeros.count, 4_096 + 2_000_100)
                #expect(written == zeros.count)
                close(file)
            }
            try story.restart()
            let answer = try story.get(path)
            #expect(answer.complete && isContent(answer.body, of: path))
            // The rest of what was stored is still used.
            #expect(story.cdn.bytesSent(path) < 4_500_000)
        }

        @Test(arguments: [2, 6_000])
        func `a playlist that cannot be read when it was just stored is fetched once more`(
            segments: Int
        ) throws {
            let disk = try FailingDisk()
            let story = disk.story
            let path = "/unreadable/list.m3u8"
            story.cdn.put(path, text: vod((0..<segments).map { "s\($0).ts" }))
            try disk.fail(DiskFault(calls: [.readOne], error: EIO))
            #expect(try story.links(in: path).count == segments)
            #expect(story.cdn.requestCount(path) == 2)
            #expect(story.daemon.standardError.contains("a stored text cannot be read"))
            try disk.heal()
            try story.restart()
            #expect(try story.links(in: path).count == segments)
            #expect(story.cdn.requestCount(path) == 2)
        }

        /// Puts a steering manifest at a path; the first object that is read from now on cannot be
        /// read.
        ///
        /// - Returns: the URL that the manifest names.
        private func putSteering(at path: String, _ disk: FailingDisk) throws -> String {
            let next = disk.story.cdn.url("/unreadable/next")
            disk.story.cdn.setBehaviour("type=application/json", for: path)
            disk.story.cdn.put(
                path,
                text: #"{"VERSION":1,"RELOAD-URI":"\#(next)","PATHWAY-PRIORITY":["a"]}"#)
            try disk.fail(DiskFault(calls: [.readOne], error: EIO))
            return next
        }

        @Test func `JSON of HLS that cannot be read while it arrives is not passed on unchanged`()
            throws
        {
            let disk = try FailingDisk()
            let story = disk.story
            let path = "/unreadable/steer"
            let next = try putSteering(at: path, disk)
            story.cdn.hold(path, afterBytes: 40)
            let head = Barrier("a head is sent")
            let body = Background {
                let stream = try story.open(path)
                _ = try stream.readHead()
                head.arrive()
                return try stream.readRest()
            }
            #expect(!eventually(within: .milliseconds(300)) { head.isOpen }, "before the rest")
            story.cdn.release(path)
            let text = String(decoding: try body.value(), as: UTF8.self)
            #expect(text.contains("RELOAD-URI") && !text.contains(next))
        }

        @Test func `JSON of HLS that cannot be read is never passed on unchanged`() throws {
            let disk = try FailingDisk()
            let story = disk.story
            let path = "/unreadable/steer"
            let next = try putSteering(at: path, disk)
            for round in 0..<2 {
                let answer = try story.get(path)
                #expect(answer.status == 200)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains("RELOAD-URI") && !text.contains(next), "\(round)")
            }
        }

        @Test(arguments: [ENOSPC, EIO])
        func `a complete object is kept although its header could not be written immediately`(
            error: Int32
        ) throws {
            let disk = try FailingDisk()
            let story = disk.story
            let paths = (0..<5).map { segment("whole\($0)", 60_000) }
            // Delayed behind its head, so that the header is written when all bytes have arrived.
            let streams = try paths.map { path in
                story.cdn.hold(path, afterBytes: 30_000)
                let stream = try story.open(path)
                #expect(try stream.read(30_000).count == 30_000)
                return stream
            }
            for path in paths { story.cdn.release(path) }
            for stream in streams { #expect(try stream.readRest().count == 30_000) }
            try disk.fail(DiskFault(calls: [.write], error: error))
            // Nothing is refused if a busy machine has let the store write all of them before.
            _ = eventually(within: .milliseconds(500)) {
                story.daemon.standardError.contains("cannot commit a stored object")
            }
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            try disk.heal()
            try story.restart()
            for path in paths {
                #expect(isContent(try story.get(path).body, of: path))
                #expect(story.cdn.requestCount(path) == 1)
            }
        }

        @Test
        func `objects stored within seconds share one sync, and a kill loses none`()
            throws
        {
            let disk = try FailingDisk(isLogged: true)
            let story = disk.story
            let began = ContinuousClock.now
            let paths = (0..<20).map { segment("shared\($0)", 200_000) }
            for path in paths { _ = try story.get(path) }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            // An administration request first has the headers of finished objects written.
            #expect(try story.follow("/api/titles").status == 200)
            try story.restart(SIGKILL)
            let syncs = try disk.syncsOfObjects()
            #expect(syncs <= Int((.now - began) / .seconds(30)), "each object was waited for")
            for path in paths {
                #expect(isContent(try story.get(path).body, of: path))
                #expect(story.cdn.requestCount(path) == 1)
            }
        }

        @Test func `a file with room for more spans is synced whole before it takes the name`()
            throws
        {
            let disk = try FailingDisk(isLogged: true)
            let path = segment("spans", 6_000_000)
            for first in (0..<150).map({ $0 * 40_000 }) {
                let range = "bytes=\(first)-\(first + 99)"
                #expect(try disk.story.get(path, range: range).status == 206)
            }
            // An administration request first has the headers of finished objects written.
            #expect(try disk.story.follow("/api/titles").status == 200)
            #expect(try eventually { try !disk.replacements().isEmpty })
            #expect(try disk.replacements().allSatisfy { $0 })
        }

        /// A few files are open and synced one by one, many were closed and are synced together.
        @Test(arguments: [6, 700])
        func `objects whose sync fails at a stop are fetched again`(count: Int) throws {
            let disk = try FailingDisk()
            let story = disk.story
            let paths = (0..<count).map { segment("unsynced\($0)", 20_000) }
            for path in paths { _ = try story.get(path) }
            #expect(try story.settled("slots_in_use") { $0 == 0 } == 0)
            // An administration request first has the headers of finished objects written.
            #expect(try story.follow("/api/titles").status == 200)
            try disk.fail(DiskFault(calls: [.sync], error: EIO))
            story.stop()
            try disk.heal()
            try story.restart()
            for path in paths { #expect(isContent(try story.get(path).body, of: path)) }
            #expect(paths.allSatisfy { story.cdn.requestCount($0) == 2 })
        }

        @Test(arguments: [16, 46])
        func `a daemon with hardly any descriptors gives right bytes or says that it cannot`(
            spare: Int
        ) throws {
            let story = try Story()
            let known = segment("known", 50_000)
            _ = try story.get(known)
            let pid = "\(story.daemon.pid)"
            let files = try Tool.run(["ls", "/proc/\(pid)/fd"]).stdout
            let open = files.split(separator: "\n").count
            let limit = "--nofile=\(open + spare):\(open + spare)"
            #expect(try Tool.run(["prlimit", "--pid", pid, limit]).status == 0)
            let wrong = try inParallel(24, within: .seconds(60)) { player in
                (0..<4).contains { round in
                    let path = segment("crowd\(player)-\(round)", 60_000)
                    let hasty = ScriptedPlayer(story.daemon.baseURL, deadline: .seconds(3))
                    guard let answer = try? hasty.get(story.url(path)), answer.complete else {
                        return false
                    }
                    return answer.status == 200 && !isContent(answer.body, of: path)
                }
            }
            #expect(!wrong.contains(true) && story.daemon.isRunning)
            // The other players have left: one player finds descriptors again.
            #expect(eventually { (try? story.get(known))?.complete == true })
            let path = segment("after", 60_000)
            #expect(
                eventually { (try? story.get(path)).map { isContent($0.body, of: path) } ?? false })
        }

        private func isPart(of path: String, _ story: Story) throws -> Bool {
            let answer = try story.get(path, range: "bytes=1000-1999")
            return answer.status == 206 && isContent(answer.body, of: path, from: 1000, count: 1000)
        }

        /// New objects are stored again after the pause, and known ones are correct.
        private func expectStoring(_ story: Story, known: [String]) throws {
            for path in known { #expect(isContent(try story.get(path).body, of: path)) }
            let path = segment("healed", 100_000)
            let isStored = try eventually(within: .seconds(15), pausing: .milliseconds(50)) {
                let answer = try story.get(path)
                return isContent(answer.body, of: path)
                    && answer["Cache-Status"]?.contains("hit") == true
            }
            #expect(isStored)
        }
    }
}

/// A story on a disk that can be made to fail.
private final class FailingDisk {
    let story: Story
    let chunked = segment("chunked", 300_000)
    private let recorder: DiskRecorder
    private let folder: TemporaryFolder
    private let slow = segment("slow", 900_000)
    private var failing: [DiskRecorder.Fault] = []

    init(isLogged: Bool = false) throws {
        folder = try TemporaryFolder()
        recorder = try DiskRecorder()
        let path = folder.makeFolder("cache")
        story = try Story(
            ["--min-free", "0"], cacheFolder: path,
            environment: recorder.environment(path, isLogged: isLogged))
        story.cdn.setBehaviour("chunked=1&norange=1", for: chunked)
    }

    /// A body that is being received when the disk fails.
    func openGrowing() throws -> PlayerStream {
        story.cdn.hold(slow, afterBytes: 300_000)
        let stream = try story.open(slow)
        _ = try stream.read(300_000)
        return stream
    }

    /// How often objects, separately or all together, were synced until now.
    func syncsOfObjects() throws -> Int {
        let log = try recorder.log()
        var objects: Set<UInt64> = []
        var count = 0
        for record in log.records {
            switch record.kind {
            case .create where log.paths(record)[0].contains("/new/"): objects.insert(record.inode)
            case .syncBegin where objects.contains(record.inode): count += 1
            case .allBegin: count += 1
            default: continue
            }
        }
        return count
    }

    /// Returns, for each file that replaced another one of its object, whether all its bytes were
    /// synced before.
    func replacements() throws -> [Bool] {
        let log = try recorder.log()
        var inodes: [String: UInt64] = [:]
        var synced: [UInt64: Bool] = [:]
        var names: Set<String> = []
        var found: [Bool] = []
        for record in log.records {
            switch record.kind {
            case .create: inodes[log.paths(record)[0]] = record.inode
            case .write: synced[record.inode] = false
            case .syncEnd: synced[record.inode] = true
            case .rename:
                let paths = log.paths(record)
                guard paths[1].contains("/objects/"), !names.insert(paths[1]).inserted,
                    let inode = inodes[paths[0]]
                else { continue }
                found.append(synced[inode] ?? false)
            default: continue
            }
        }
        return found
    }

    /// Lets it continue to its end; true if all bytes were correct.
    func finish(_ stream: PlayerStream) throws -> Bool {
        story.cdn.release(slow)
        let rest = try stream.readRest()
        return isContent(rest, of: slow, from: 300_000, count: 600_000)
    }

    func fail(_ fault: DiskFault) throws {
        failing = fault.calls
        for call in fault.calls { try recorder.fail(call, with: fault.error) }
    }

    func heal() throws {
        for call in failing { try recorder.fail(call, with: 0) }
    }
}
