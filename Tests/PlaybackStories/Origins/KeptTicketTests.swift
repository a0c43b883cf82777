import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// TLS sessions with origins that survive restarts, if the user consents.
extension Stories {
    @Suite(.tags(.timed), .enabled(if: NginxFront.isAvailable, "needs nginx and openssl"))
    struct KeptTickets {
        private func play(_ story: Story, _ front: NginxFront, _ name: String) throws {
            let path = segment(name, 9_000)
            let body = try story.player().get(story.url(for: front.url(path))).body
            #expect(isContent(body, of: path))
        }

        @Test(arguments: ["TLSv1.2", "TLSv1.3"], [true, false])
        func `the first connection after a restart resumes a session`(
            version: String, isKept: Bool
        ) throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn), protocols: version)
            defer { front.stop() }
            let story = try Story(
                ["--ca-file", front.caFile] + (isKept ? ["--keep-tls-tickets"] : []))
            try play(story, front, "a")
            try story.restart()
            let file = story.cacheFolder + "/tls-sessions"
            var status = stat()
            #expect((stat(file, &status) == 0) == isKept)
            if isKept { #expect(status.st_mode & 0o777 == 0o600) }
            try play(story, front, "b")
            #expect(eventually { front.handshakes == (isKept ? (1, 1) : (2, 0)) })
            #expect(try story.stat("origin_tls_resumed_total") == (isKept ? 1 : 0))
        }

        @Test func `a file that cannot be read costs a line in the log`() throws {
            let cdn = FixtureCDN()
            try cdn.start()
            defer { cdn.stop() }
            let front = try NginxFront(.proxy(cdn))
            defer { front.stop() }
            let story = try Story(["--ca-file", front.caFile, "--keep-tls-tickets"])
            try play(story, front, "a")
            let file = story.cacheFolder + "/tls-sessions"
            for bytes in [Array("\u{0}odd".utf8), [UInt8](repeating: 0x41, count: 9 << 20)] {
                // A daemon that stops writes the file.
                story.stop()
                try writeFile(file, bytes)
                try story.restart()
                try play(story, front, "after\(bytes.count)")
                #expect(
                    eventually {
                        story.daemon.standardError.contains("kept TLS sessions are ignored")
                    })
            }
        }
    }
}
