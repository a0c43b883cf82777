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

        let path = segment("crowd", 16_000_000)
        let idle = ScriptedPlayer(daemon.baseURL)
        #expect(isContent(try idle.get("/" + cdn.url(path)).body, of: path))
        // Each begins to read the stored body, or gets 503.
        var held: [PlayerStream] = []
        var statuses: [Int: Int] = [:]
        for _ in 0..<120 {
            let player = ScriptedPlayer(daemon.baseURL, deadline: .seconds(5))
            player.receiveBuffer = 16_384
            let stream = try player.open("/" + cdn.url(path))
            let status = (try? stream.readHead().status) ?? 0
            statuses[status, default: 0] += 1
            if status == 200 { held.append(stream) }
        }
        let served = statuses[200] ?? 0
        #expect(served >= 8 && served < 120, "\(statuses)")
        #expect(served + (statuses[503] ?? 0) == 120, "\(statuses)")
        #expect(eventually { daemon.standardError.contains("idle ones are closed for new") })

        for stream in held { stream.abort() }
        let other = segment("after", 2_000)
        #expect(
            eventually {
                let answer = try? ScriptedPlayer(daemon.baseURL).get("/" + cdn.url(other))
                return isContent(answer?.body ?? [], of: other)
            })
        #expect(try daemon.terminate() == .code(0))
    }
}
