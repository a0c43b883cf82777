import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Commands whose daemon ends, or is another, while they are at work.
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
