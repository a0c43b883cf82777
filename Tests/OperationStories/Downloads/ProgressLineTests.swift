import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// The progress that commands show: one line on a terminal, or plain lines in a file.
extension Stories.Downloads {
    /// The output to a terminal of this many columns for a download whose origin is gone.
    private func shown(columns: Int, _ stage: DownloadStage, _ url: String) throws -> String {
        let program = try DaemonProcess.builtBinary()
        let command =
            "stty cols \(columns) rows 24; timeout -s INT 4 \(program) download '\(url)'"
            + " --daemon \(stage.story.daemon.baseURL)"
        return try Tool.run(["script", "-qec", command, "/dev/null"]).stdout
    }

    @Test(.enabled(if: Tool.exists("script"), "a terminal is made by script(1)"))
    func `progress is one line of the terminal's width, rewritten in place`() throws {
        let stage = try DownloadStage()
        let url = stage.cdn.url("/a-folder-with-a-long-name/and-another-one/master.m3u8")
        stage.cdn.stop()
        let text = try shown(columns: 50, stage, url)
        let lines = text.split(separator: "\r").map {
            String($0).replacing("\u{1B}[K", with: "").filter { $0 != "\n" }
        }
        #expect(lines.count > 2, "\(text)")
        #expect(lines.allSatisfy { $0.count < 50 }, "\(text)")
        #expect(lines.contains { $0.contains("waiting: ") }, "\(text)")
        #expect(text.filter { $0 == "\n" }.count <= 1, "\(text)")
    }

    @Test func `progress without a terminal is a few plain lines`() throws {
        let stage = try DownloadStage()
        let url = stage.title()
        stage.cdn.hold("/bytes/film-v2-4/20000")
        let program = try DaemonProcess.builtBinary()
        let run = Background { [base = stage.story.daemon.baseURL] in
            try Tool.run([program, "download", url, "--audio", "none", "--daemon", base])
        }
        #expect(eventually { stage.cdn.requestCount("/bytes/film-v2-4/20000") > 0 })
        let stats = try stage.ask("GET", "/api/downloads").text
        #expect(stats.contains("running"))
        stage.cdn.release("/bytes/film-v2-4/20000")
        let done = try run.value()
        #expect(done.status == 0)
        #expect(done.stderr.split(separator: "\n").allSatisfy { $0.hasPrefix("[") })
        #expect(!done.stderr.contains("\r") && !done.stderr.contains("\u{1B}"))
        #expect((1...5).contains(done.stderr.split(separator: "\n").count), "\(done.stderr)")
    }
}
