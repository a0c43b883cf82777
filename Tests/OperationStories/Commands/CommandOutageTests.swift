import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Commands whose daemon ends or is restarted while they work, and what they print of its texts.
extension Stories {
    @Suite(.tags(.crowded)) struct CommandOutageTests {}
}

extension Stories.CommandOutageTests {
    private static let running =
        #"{"state":"running","objects":1,"objects_to_check":9,"removed":1,"bytes":10}"#

    /// Answers a page of the API.
    private static func json(_ status: Int, _ text: String) -> AnsweringOrigin.Answer {
        .response(status, [("Content-Type", "application/json")], Array(text.utf8))
    }

    @Test(arguments: [["verify"], ["purge", "http://h.example/a.ts"]])
    func `work that a restarted daemon does not know ends with 5, and says so`(
        _ command: [String]
    ) throws {
        let daemon = try AnsweringOrigin { head, _ in
            head.startLine.hasPrefix("POST ")
                ? Self.json(202, Self.running) : Self.json(200, #"{"state":"none"}"#)
        }
        defer { daemon.stop() }
        let result = try Tool.run(
            [try DaemonProcess.builtBinary()] + command + ["--daemon", daemon.baseURL])
        #expect(result.status == 5, "\(result)")
        #expect(result.stderr.contains("the daemon was restarted meanwhile"), "\(result.stderr)")
        #expect(!result.stderr.contains("version"), "\(result.stderr)")
    }

    @Test func `a daemon that ends while a command waits for it does not lose its folder to it`()
        throws
    {
        let story = try Story()
        story.cdn.put("/a.ts", Array("bytes".utf8))
        _ = try story.get("/a.ts")
        story.stop()
        let ending = Shared<AnsweringOrigin?>(nil)
        let daemon = try AnsweringOrigin { _, _ in
            // The command finds the port closed when it asks for the progress.
            if let daemon = ending.value { daemon.stopListening() }
            return .response(202, [("Connection", "close")], Array(Self.running.utf8))
        }
        defer { daemon.stop() }
        ending.update { $0 = daemon }
        let result = try sluice(
            "verify", "--daemon", daemon.baseURL, "--cache-dir", story.cacheFolder)
        #expect(result.status == 5, "\(result)")
        #expect(result.stderr.contains("no daemon answers at"), "\(result.stderr)")
        #expect(result.stdout.isEmpty)
    }
}

// MARK: Orders

extension Stories.CommandOutageTests {
    private static let download = #"""
        {"id":"7","name":"film","state":"running","streams":[],"pieces":9,"pieces_done":1,
        "percent":11,"bytes":10,"rate":1,"transfers":1}
        """#
    private static let recording = #"""
        {"id":"7","name":"live","state":"recording","reason":"","seconds":4,"segments":1,
        "lost":0,"bytes":10}
        """#

    @Test(arguments: [
        (["download"], "sluice download list", download),
        (["record", "--for", "2h"], "sluice record --list", recording),
    ])
    func `a command that waits for an order says that the daemon continues it later`(
        _ command: [String], _ advice: String, _ answer: String
    ) throws {
        let ending = Shared<AnsweringOrigin?>(nil)
        let daemon = try AnsweringOrigin { _, _ in
            // The command finds the port closed when it asks for the progress.
            if let daemon = ending.value { daemon.stopListening() }
            return .response(201, [("Connection", "close")], Array(answer.utf8))
        }
        defer { daemon.stop() }
        ending.update { $0 = daemon }
        let result = try Tool.run(
            [try DaemonProcess.builtBinary()] + command
                + ["http://h.example/a.m3u8", "--daemon", daemon.baseURL])
        #expect(result.status == 5, "\(result)")
        #expect(result.stderr.contains("no daemon answers at"), "\(result.stderr)")
        #expect(result.stderr.contains("is not lost"), "\(result.stderr)")
        #expect(result.stderr.contains(advice), "\(result.stderr)")
    }
}

extension Stories.CommandOutageTests {
    private static func progress(_ state: String, _ choice: String) -> String {
        """
        {"id":"7","name":"film","state":"\(state)","streams":[],"pieces":9,"pieces_done":9,
        "percent":100,"bytes":10,"rate":0,"transfers":0,"choice":"\(choice)"}
        """
    }

    @Test(arguments: [("from=60.0", 0), ("to=20.0", 1)])
    func `a command reports no download that another order has changed as its own`(
        _ choice: String, _ status: Int32
    ) throws {
        let daemon = try AnsweringOrigin { head, _ in
            head.startLine.hasPrefix("POST ")
                ? Self.json(201, Self.progress("running", "from=60.0"))
                : Self.json(200, Self.progress("complete", choice))
        }
        defer { daemon.stop() }
        let result = try sluice(
            "download", "http://h.example/a.m3u8", "--from", "60", "--daemon", daemon.baseURL)
        #expect(result.status == status, "\(result)")
        #expect(result.stdout.contains("is complete") == (status == 0), "\(result)")
        #expect(result.stderr.contains("another order") == (status == 1), "\(result)")
    }
}

// MARK: Feeds

extension Stories.CommandOutageTests {
    private static let feed = #"""
        {"name":"f","entries":1,"index":0,"direction":"forward","window":[],"fetches":0,
        "bytesFetched":0,"bytesWasted":0,"faults":[]}
        """#

    @Test(arguments: ["PUT ", "DELETE "])
    func `a signal ends a feed's command also if its daemon does not answer`(
        _ unanswered: String
    ) throws {
        let released = Barrier("released")
        let isOrdered = Shared(false)
        let daemon = try AnsweringOrigin { head, _ in
            isOrdered.update { $0 = true }
            guard head.startLine.hasPrefix(unanswered) else { return Self.json(200, Self.feed) }
            try? released.wait(within: .seconds(60))
            return .nothing
        }
        defer {
            released.arrive()
            daemon.stop()
        }
        let folder = try TemporaryFolder()
        let list = folder.file("f.txt")
        try writeFile(list, "http://h.example/m.m3u8\n".utf8)
        // An input that does not end.
        let input = folder.file("input")
        #expect(mkfifo(input, 0o600) == 0)
        let writer = open(input, O_RDWR | O_CLOEXEC)
        defer { close(writer) }
        let command = try ChildProcess([
            "sh", "-c", "exec \"$@\" < \"$0\"", input, DaemonProcess.builtBinary(), "feed", list,
            "--daemon", daemon.baseURL,
        ])
        #expect(eventually(within: .seconds(30)) { isOrdered.value })
        command.kill(SIGTERM)
        #expect(command.waitForExit(seconds: 30) == .signal(SIGTERM))
    }
}

// MARK: Exports

extension Stories.CommandOutageTests {
    /// An export of two segments, as the daemon describes it.
    private static let export = #"""
        {"name":"film","entry":"index.m3u8","files":[
        {"name":"index.m3u8","text":"#EXTM3U\n#EXT-X-TARGETDURATION:4\n","source":"","ranges":[]},
        {"name":"1.ts","source":"/one","ranges":[]},{"name":"2.ts","source":"/two","ranges":[]}]}
        """#

    @Test func `an export that fails removes what it wrote`() throws {
        let daemon = try AnsweringOrigin { head, _ in
            switch head.path {
            case "/api/export": Self.json(200, Self.export)
            case "/one": .response(200, [], Array("segment".utf8))
            default: .nothing
            }
        }
        defer { daemon.stop() }
        let folder = try TemporaryFolder()
        let target = folder.file("film")
        let result = try sluice("export", "1", target, "--daemon", daemon.baseURL)
        #expect(result.status == 1, "\(result)")
        #expect(result.stderr.contains("/film/2.ts cannot be fetched"), "\(result.stderr)")
        #expect(try Tool.run(["ls", "-A", target]).stdout.isEmpty)
    }

    @Test func `an export whose daemon ends meanwhile ends with 5`() throws {
        let ending = Shared<AnsweringOrigin?>(nil)
        let daemon = try AnsweringOrigin { head, _ in
            if head.path == "/api/export" { return Self.json(200, Self.export) }
            // The command finds the port closed when it asks for the next segment.
            if let daemon = ending.value { daemon.stopListening() }
            return .response(200, [("Connection", "close")], Array("segment".utf8))
        }
        defer { daemon.stop() }
        ending.update { $0 = daemon }
        let folder = try TemporaryFolder()
        let target = folder.file("film")
        let result = try sluice("export", "1", target, "--daemon", daemon.baseURL)
        #expect(result.status == 5, "\(result)")
        #expect(listFolder(target).isEmpty)
    }

    /// Starts an export into a folder, under the name `target`, from a daemon that holds the second
    /// segment, and runs `body` once that was requested.
    private func withHeldExport(
        to target: String = "film.mp4", launcher: [String] = [],
        _ body: (ChildProcess, TemporaryFolder) throws -> Void
    ) throws {
        let released = Barrier("released")
        let isRequested = Shared(false)
        let daemon = try AnsweringOrigin { head, _ in
            switch head.path {
            case "/api/export": return Self.json(200, Self.export)
            case "/one": return .response(200, [], Array("segment".utf8))
            default:
                isRequested.update { $0 = true }
                try? released.wait(within: .seconds(60))
                return .nothing
            }
        }
        defer {
            released.arrive()
            daemon.stop()
        }
        let folder = try TemporaryFolder()
        let export = try ChildProcess(
            launcher + [
                DaemonProcess.builtBinary(), "export", "1", folder.file(target), "--daemon",
                daemon.baseURL,
            ])
        #expect(eventually(within: .seconds(30)) { isRequested.value })
        try body(export, folder)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal that ends an export to a file leaves nothing of it`(_ number: CInt) throws {
        try withHeldExport { export, folder in
            #expect(listFolder(folder.path) == ["film.mp4.parts"])
            export.kill(number)
            #expect(export.waitForExit() == .signal(number))
            #expect(listFolder(folder.path).isEmpty)
        }
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal that ends an export to a folder leaves the folder empty`(
        _ number: CInt
    ) throws {
        try withHeldExport(to: "film") { export, folder in
            let target = folder.file("film")
            #expect(listFolder(target) == [".parts"])
            export.kill(number)
            #expect(export.waitForExit() == .signal(number))
            #expect(listFolder(target).isEmpty)
        }
    }

    @Test(arguments: ["film", "film.mp4"])
    func `a second export to one target waits for the first to end or to be killed`(
        _ name: String
    ) throws {
        try withHeldExport(to: name) { export, folder in
            let target = folder.file(name)
            let daemon = try AnsweringOrigin { head, _ in
                head.path == "/api/export" ? Self.json(200, Self.export) : .nothing
            }
            defer { daemon.stop() }
            func repeated() throws -> String {
                try sluice("export", "1", target, "--daemon", daemon.baseURL).stderr
            }
            #expect(try repeated().contains("another export to \(target) runs"))
            export.kill(SIGKILL)
            #expect(export.waitForExit() == .signal(SIGKILL))
            // What that has left is not in the way.
            #expect(try repeated().contains("1.ts cannot be fetched"))
            #expect(listFolder(name == "film" ? target : folder.path).isEmpty)
        }
    }

    @Test func `an export to a file replaces none that was made meanwhile`() throws {
        let folder = try TemporaryFolder()
        let target = folder.file("film.mp4")
        let daemon = try AnsweringOrigin { head, _ in
            switch head.path {
            case "/api/export": return Self.json(200, Self.export)
            case "/two": try? writeFile(target, "another's".utf8)
            default: break
            }
            return .response(200, [], Array("segment".utf8))
        }
        defer { daemon.stop() }
        // Makes its last argument.
        let programs = folder.makeFolder("bin")
        let program = programs + "/ffmpeg"
        try writeFile(program, "#!/bin/sh\nfor made; do :; done\necho film > \"$made\"\n".utf8)
        #expect(chmod(program, 0o755) == 0)
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        let result = try sluice(
            "export", "1", target, "--daemon", daemon.baseURL,
            environment: ["PATH=\(programs):\(path)"])
        #expect(result.status == 1 && result.stderr.contains("exists already"), "\(result)")
        #expect(try readFile(target) == Array("another's".utf8))
    }

    @Test func `an export goes on when its terminal closes if it was started to do so`() throws {
        let launcher = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]
        try withHeldExport(launcher: launcher) { export, _ in
            // Of two signals that wait, the one with the lower number is taken first.
            export.kill(SIGHUP)
            export.kill(SIGTERM)
            #expect(export.waitForExit() == .signal(SIGTERM))
        }
    }
}

// MARK: Texts of others

extension Stories.CommandOutageTests {
    @Test func `what origins write does not act on the terminal`() throws {
        let report = #"""
            {"url":"http://h/a.ts","place":"entry","policy":{"name":"media","from":"default"},
            "key":{"text":"k","digest":"d","mode":"standard","steps":[]},
            "stored":{"status":200,"complete":true,"total":1,"present":1,"spans":[],
            "filling":false,"playlist":false,"title":"t","pinned":false,
            "etag":"\"\u009b31mX\"","cache-control":"max-age=5,x=\u001b[2J"},
            "next":{"outcome":"hit","what":"it is served"}}
            """#
        let daemon = try AnsweringOrigin { head, _ in
            head.path == "/api/why"
                ? Self.json(200, report) : Self.json(409, "refused: \u{1B}[2J\u{9B}1m")
        }
        defer { daemon.stop() }
        let why = try sluice("why", "http://h/a.ts", "--daemon", daemon.baseURL)
        #expect(why.status == 0 && why.stdout.contains("31mX"), "\(why)")
        let other = try sluice("pin", "http://h/a.ts", "--daemon", daemon.baseURL)
        #expect(other.status == 1 && other.stderr.contains("refused:"), "\(other)")
        for scalar in (why.stdout + other.stderr).unicodeScalars where scalar != "\n" {
            #expect(scalar.properties.generalCategory != .control)
        }
    }
}
