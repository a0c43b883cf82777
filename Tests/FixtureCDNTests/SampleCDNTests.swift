// The program `sample-cdn`: its ready line, its end, and its messages for invalid arguments.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SampleCDNTests {
    @Test(arguments: [SIGTERM, SIGINT])
    func `the program serves its folder until it is stopped`(signal: Int32) throws {
        let program = try Tool.built("sample-cdn")
        let child = try ChildProcess([program, "--folder", Fixture.path("media")])
        defer { child.kill(SIGKILL) }
        #expect(eventually { child.standardOutput.last == 0x0A })
        let line = String(decoding: child.standardOutput, as: UTF8.self)
        #expect(line.hasPrefix("listening http://127.0.0.1:") && line.hasSuffix("/\n"))
        let player = ScriptedPlayer(String(line.dropFirst(10).dropLast(2)))
        #expect(
            try player.get("/ts/master.m3u8").text == (try Fixture.text("media/ts/master.m3u8")))
        child.kill(signal)
        #expect(child.waitForExit() == .code(0))
    }

    @Test(arguments: [
        (["--port", "0"], 64, "--folder is required"), (["--port", "x"], 64, "--port takes"),
        (["--folder"], 64, "needs a value"), (["--what"], 64, "unknown argument --what"),
        (["--folder", "/nowhere"], 66, "/nowhere is no folder"),
        (["--folder", "/", "--address", "a.b"], 69, "cannot listen"),
    ])
    func `invalid arguments are reported`(arguments: [String], status: Int32, words: String) throws
    {
        let result = try Tool.run([try Tool.built("sample-cdn")] + arguments)
        #expect(result.status == status)
        #expect(result.stderr.contains(words))
    }
}
