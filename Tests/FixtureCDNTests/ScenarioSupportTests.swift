// The tools of the scenarios work, so that a failing scenario points to the daemon.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ScenarioSupportTests {
    @Test func `an origin follows its script and a player sees it`() throws {
        let origin = try ScriptedOrigin()
        let both = Barrier("both asked")
        origin.connection(
            .expect("GET", "/a"), .hold(until: both),
            .respond(200, [("X", "1")], Array("hello".utf8)),
            .expect("GET", "/b?c=d"), .cut(afterBytes: 2), .respond(200, [], Array("hello".utf8)))
        let player = ScriptedPlayer(origin.baseURL)
        let stream = try player.open("/a")
        #expect(eventually { origin.requestCount("/a") == 1 })
        both.arrive()
        #expect(try stream.readHead()["x"] == "1")
        #expect(try stream.readRest() == Array("hello".utf8))
        let cut = try player.get("/b?c=d")
        #expect(cut.reusedConnection)
        #expect(!cut.complete && cut.text == "he")
        try origin.verify()
        origin.stop()
    }

    @Test func `answers are found by path on any connection, resets and raw bytes included`() throws
    {
        let origin = try ScriptedOrigin()
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
        origin.answer("/reset", .reset)
        origin.answer("/raw", .send(Array(chunks.utf8)))
        origin.answer("/raw", .respond(404))
        let player = ScriptedPlayer(origin.baseURL)
        #expect(try player.get("/raw").text == "ab")
        #expect(try player.get("/raw").status == 404)
        player.keepsAlive = false
        #expect(throws: ScenarioFailure.self) { try player.get("/reset") }
        try origin.verify()
        origin.stop()
    }

    @Test func `a missed step fails with the received text`() throws {
        let origin = try ScriptedOrigin()
        origin.connection(.expect("GET", "/wanted"), .respond(200))
        _ = try? ScriptedPlayer(origin.baseURL).get("/other")
        let failure = #expect(throws: ScenarioFailure.self) { try origin.verify() }
        #expect(failure?.message == "expected GET /wanted, got GET /other HTTP/1.1")
        #expect(failure?.transcript.contains("GET /other HTTP/1.1") == true)
        origin.stop()
    }

    @Test func `an unplayed script fails at the deadline`() throws {
        let origin = try ScriptedOrigin()
        origin.answer("/never", .respond(200))
        #expect(throws: ScenarioFailure.self) { try origin.verify(within: .milliseconds(50)) }
        origin.stop()
    }

    @Test func `a player stops at its deadline`() throws {
        let origin = try ScriptedOrigin()
        origin.answer("/silent", .stall)
        let player = ScriptedPlayer(origin.baseURL, deadline: .milliseconds(100))
        #expect(throws: ScenarioFailure.self) { try player.get("/silent") }
        origin.stop()
    }

    @Test func `a slow player takes its time`() throws {
        let origin = try ScriptedOrigin()
        origin.answer("/a", .respond(200, [], [UInt8](repeating: 7, count: 1000)))
        let begin = ContinuousClock.now
        let stream = try ScriptedPlayer(origin.baseURL).open("/a")
        #expect(try stream.readRest(bytesPerSecond: 5000).count == 1000)
        #expect(ContinuousClock.now - begin >= .milliseconds(180))
        origin.stop()
    }

    @Test func `a daemon is started, measured and ended`() throws {
        let folder = try TemporaryFolder()
        let program = folder.file("daemon")
        let script = """
            #!/bin/sh
            trap 'echo bye >&2; exit 3' TERM
            echo "sluice ready http://127.0.0.1:$1"
            while :; do sleep 0.01; done

            """
        try writeFile(program, script.utf8)
        chmod(program, 0o755)
        let daemon = try DaemonProcess(["8099"], binary: program)
        #expect(daemon.baseURL == "http://127.0.0.1:8099")
        #expect(daemon.rssBytes > 100_000)
        #expect(daemon.descriptorCount >= 3)
        #expect(try daemon.terminate() == .code(3))
        #expect(daemon.standardError == "bye\n")
        #expect(!daemon.isRunning)
    }

    @Test func `a daemon that ends before it is ready is reported with its output`() throws {
        let failure = #expect(throws: ScenarioFailure.self) {
            try DaemonProcess(["-c", "echo no such option >&2; exit 2"], binary: "/bin/sh")
        }
        #expect(failure?.transcript.contains("no such option") == true)
    }

    @Test func `output written before an observed event is available`() throws {
        let folder = try TemporaryFolder()
        let gate = Barrier("the collecting thread may go on")
        let script = "echo first >&2; until [ -e $0/go ]; do :; done; echo second >&2; echo done"
        let child = try ChildProcess(["sh", "-c", script, folder.path]) { output, piece in
            guard output == .error, piece.starts(with: Array("first".utf8)) else { return }
            _ = folder.makeFolder("go")
            try? gate.wait()
        }
        let isDone = eventually { child.standardOutput == Array("done\n".utf8) }
        #expect(isDone)
        #expect(child.standardError == Array("first\nsecond\n".utf8))
        gate.arrive()
    }

    @Test func `a killed process is reported as killed`() throws {
        let child = try ChildProcess(["sleep", "60"])
        child.kill(SIGKILL)
        #expect(child.waitForExit() == .signal(SIGKILL))
    }

    @Test func `a tool that hangs is killed at the deadline`() throws {
        #expect(throws: Tool.TookTooLong.self) {
            try Tool.run(["sleep", "60"], within: .milliseconds(50))
        }
        #expect(try Tool.run(["sh", "-c", "echo a; echo b >&2; exit 4"]).status == 4)
    }

    @Test func `a temporary folder is removed with its content`() throws {
        var folder: TemporaryFolder? = try TemporaryFolder()
        let path = try #require(folder?.path)
        _ = folder?.makeFolder("deep")
        try writeFile(path + "/deep/file", [1])
        #expect(listFolder(path) == ["deep"])
        folder = nil
        #expect(access(path, F_OK) != 0)
    }
}
