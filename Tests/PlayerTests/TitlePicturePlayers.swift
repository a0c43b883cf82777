// Pictures of titles: made by ffmpeg from stored fixtures, and by programs that fail.
import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.crowded), .grouped)
struct TitlePictureTests {
    fileprivate static let on = ["--title-pictures", "on"]

    /// Stores a stream, and returns the path of its title's picture.
    fileprivate static func keep(_ stream: Stream, _ stage: Stage) throws -> String {
        try stage.keepWhole(stage.through(stream))
        var path: String?
        _ = try eventually {
            let text = try ScriptedPlayer(stage.daemon.baseURL).get("/api/titles").text
            let id = text.firstRange(of: "{\"id\":\"").map { text[$0.upperBound...].prefix(12) }
            path = id.map { "/api/titles/\($0)/picture" }
            return path != nil && text.contains("\"whole\":true")
        }
        return try #require(path)
    }

    /// A daemon whose ffmpeg is a script.
    private func stage(_ folder: TemporaryFolder, _ script: String?) throws -> Stage {
        if let script {
            let path = folder.file("ffmpeg")
            try writeFile(path, Array("#!/bin/sh\n\(script)\n".utf8))
            #expect(chmod(path, 0o755) == 0)
        }
        return try Stage(Self.on, environment: [("PATH", folder.path)])
    }

    @Test(
        .enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"),
        arguments: [Stream.transportStream, .fragmentedMP4, .byteRanges])
    func `a stored title has a picture without origin requests`(_ stream: Stream) throws {
        let stage = try Stage(Self.on)
        let path = try Self.keep(stream, stage)
        let before = stage.cdn.requests.count
        let player = ScriptedPlayer(stage.daemon.baseURL, deadline: .seconds(60))
        let picture = try player.get(path)
        #expect(picture.status == 200, "\(picture.text)")
        #expect(picture["Content-Type"] == "image/jpeg")
        #expect(picture["Cache-Control"] == "private, max-age=600")
        #expect(picture["X-Content-Type-Options"] == "nosniff")
        #expect(picture["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(picture.body.starts(with: [0xFF, 0xD8, 0xFF]))
        #expect(picture.body.count < 200_000)
        #expect(try player.get(path).body == picture.body)
        #expect(stage.cdn.requests.count == before)
        #expect(try player.get(path, method: "POST").status == 405)
        #expect(eventually { stage.daemon.standardError.contains("ffmpeg makes pictures") })
        let log = stage.daemon.standardError
        #expect(log.contains("install bubblewrap") != Tool.exists("bwrap"), "\(log)")
    }

    @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
    func `encrypted, audio and unknown titles have no picture`() throws {
        for stream in [Stream.rotatedKey, .packedAudio] {
            let stage = try Stage(Self.on)
            let answer = try ScriptedPlayer(stage.daemon.baseURL).get(Self.keep(stream, stage))
            #expect(answer.status == 404, "\(stream)")
        }
        let stage = try Stage(Self.on)
        let none = try ScriptedPlayer(stage.daemon.baseURL)
            .get("/api/titles/0123456789ab/picture")
        #expect(none.status == 404 && none.text.contains("no title 0123456789ab"))
    }

    @Test(.enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"))
    func `a file whose movie box stands last has a picture`() throws {
        let folder = try TemporaryFolder()
        let film = folder.file("film.mp4")
        let made = try Tool.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=640x360:d=3"]
                + ["-pix_fmt", "yuv420p", film])
        #expect(made.status == 0, "\(made.stderr)")
        let bytes = try readFile(film)
        let media = try #require(bytes.firstRange(of: Array("mdat".utf8)))
        let movie = try #require(bytes.firstRange(of: Array("moov".utf8)))
        #expect(media.lowerBound < movie.lowerBound)
        let stage = try Stage(Self.on)
        stage.cdn.put("/film.mp4", bytes)
        let player = ScriptedPlayer(stage.daemon.baseURL, deadline: .seconds(60))
        #expect(try player.get(stage.through(stage.cdn.url("/film.mp4"))).body == bytes)
        var path: String?
        _ = try eventually {
            let text = try player.get("/api/titles").text
            let id = text.firstRange(of: "{\"id\":\"").map { text[$0.upperBound...].prefix(12) }
            path = id.map { "/api/titles/\($0)/picture" }
            return path != nil
        }
        let picture = try player.get(try #require(path))
        #expect(picture.status == 200 && picture["Content-Type"] == "image/jpeg", "\(picture.text)")
    }

    @Test func `pictures are off by default`() throws {
        let stage = try Stage()
        let answer = try ScriptedPlayer(stage.daemon.baseURL)
            .get(Self.keep(.transportStream, stage))
        #expect(answer.status == 404 && answer.text.contains("--title-pictures on"))
    }

    @Test(arguments: [
        ("exec sleep 600", "longer than 20 s"), ("exec yes", "more than 200000 bytes"),
        ("exit 1", "status 1"), ("kill -9 $$", "a signal"), ("echo rubbish", "no picture"),
    ])
    func `a failing program is reported, and the daemon continues`(
        _ script: String, _ reason: String
    ) throws {
        let folder = try TemporaryFolder()
        let stage = try stage(folder, "PATH=/usr/bin:/bin\n\(script)")
        let path = try Self.keep(.transportStream, stage)
        let player = ScriptedPlayer(stage.daemon.baseURL, deadline: .seconds(120))
        let answer = try player.get(path)
        #expect(answer.status == 404 && answer.text.contains(reason), "\(answer.text)")
        #expect(try player.get("/api/health").status == 200)
        stage.daemon.kill(SIGTERM)
        _ = try stage.daemon.waitForExit()
    }

    @Test func `a daemon without ffmpeg reports it`() throws {
        let folder = try TemporaryFolder()
        let stage = try stage(folder, nil)
        let answer = try ScriptedPlayer(stage.daemon.baseURL)
            .get(Self.keep(.transportStream, stage))
        #expect(answer.status == 404 && answer.text.contains("no ffmpeg is found"))
    }
}

@Suite(.serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped)
struct TitlePicturePlayers {
    @Test(
        .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"),
        .enabled(if: Tool.exists("ffmpeg"), "needs ffmpeg"), arguments: [true, false])
    func `the page shows a picture, or else the initial`(_ isOn: Bool) throws {
        let stage = try Stage(isOn ? TitlePictureTests.on : [])
        _ = try TitlePictureTests.keep(.transportStream, stage)
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        if isOn {
            #expect(
                try browser.comes(
                    "document.querySelector('#titles .frame img')?.naturalWidth === 320"))
        } else {
            #expect(
                try browser.comes(
                    "document.querySelector('#titles .frame .initial')?.innerText.length === 1"))
            #expect(try browser.value("document.querySelectorAll('#titles img').length") == "0")
        }
        try browser.picture("pictures-\(isOn)")
    }
}
