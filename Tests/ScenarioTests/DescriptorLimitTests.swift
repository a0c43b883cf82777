import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Limits of the system on the daemon's open files and sockets.
extension Stories {
    @Suite(.tags(.timed)) struct DescriptorLimitTests {}
}

extension Stories.DescriptorLimitTests {
    @Test(arguments: [16, 24, 40, 64, 128])
    func `a limit too low for a daemon is an explained start-up error`(_ limit: Int) throws {
        let folder = try TemporaryFolder()
        let result = try Tool.run([
            "prlimit", "--nofile=\(limit):\(limit)", try DaemonProcess.builtBinary(), "serve",
            "--port", "0", "--cache-dir", folder.file("cache"),
        ])
        #expect(result.status == 6, "\(result.status) \(result.stderr)")
        #expect(result.stderr.contains("may open \(limit) files and sockets, and needs at least"))
        #expect(!result.stdout.contains("ready"))
    }

    @Test
    func
        `players beyond the limit get 503 immediately, and origins are still reached`()
        throws
    {
        let folder = try TemporaryFolder()
        let cdn = FixtureCDN()
        try cdn.start()
        defer { cdn.stop() }
        let daemon = try DaemonProcess(
            [
                "--nofile=256:256", try DaemonProcess.builtBinary(), "serve", "--port", "0",
                "--cache-dir", folder.file("cache"), "--allow-private", "--look-ahead", "off",
                "--max-connections", "20000",
            ], binary: "prlimit")
        defer { daemon.kill(SIGKILL) }
        #expect(
            eventually { daemon.standardError.contains("max-connections is lowered from 20000") })
        #expect(daemon.standardError.contains("may open 256 files and sockets"))

        // Each keeps its connection, and all are answered: with content, or 503.
        var held: [ScriptedPlayer] = []
        var statuses: [Int: Int] = [:]
        for index in 0..<120 {
            let player = ScriptedPlayer(daemon.baseURL, deadline: .seconds(5))
            let path = segment("crowd\(index)", 2_000)
            let answer = try? player.get("/" + cdn.url(path))
            statuses[answer?.status ?? 0, default: 0] += 1
            if answer?.status == 200 { #expect(isContent(answer?.body ?? [], of: path)) }
            held.append(player)
        }
        let served = statuses[200] ?? 0
        #expect(served >= 8 && served < 120, "\(statuses)")
        #expect(served + (statuses[503] ?? 0) == 120, "\(statuses)")

        held[0].disconnect()
        let path = segment("after", 2_000)
        #expect(
            eventually {
                let answer = try? ScriptedPlayer(daemon.baseURL).get("/" + cdn.url(path))
                return isContent(answer?.body ?? [], of: path)
            })
        #expect(try daemon.terminate() == .code(0))
    }
}
