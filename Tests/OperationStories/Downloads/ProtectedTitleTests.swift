import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Titles whose keys only a key system provides are never called complete, and never exported.
extension Stories.Downloads {
    /// Puts a title whose segments are encrypted as a tag says; returns its multivariant playlist's
    /// URL.
    private func put(_ key: String, _ stage: DownloadStage) -> String {
        var text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n"
        text += "#EXT-X-KEY:\(key)\n"
        for number in 0..<4 { text += "#EXTINF:4,\n/bytes/2000\(number)/drm-\(number).ts\n" }
        stage.cdn.put("/drm/v.m3u8", text: text + "#EXT-X-ENDLIST\n")
        stage.cdn.put(
            "/drm/master.m3u8",
            text: "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=640x360\nv.m3u8\n")
        return stage.cdn.url("/drm/master.m3u8")
    }

    private func sluice(_ stage: DownloadStage, _ words: String...) throws -> Tool.Result {
        let program = try DaemonProcess.builtBinary()
        return try Tool.run([program] + words + ["--daemon", stage.story.daemon.baseURL])
    }

    @Test(arguments: [
        (
            "METHOD=SAMPLE-AES,URI=\"skd://key\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "FairPlay"
        ),
        (
            "METHOD=SAMPLE-AES-CTR,URI=\"data:text/plain;base64,AAAA\",KEYFORMAT=\"urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed\"",
            "Widevine"
        ),
        (
            "METHOD=SAMPLE-AES-CTR,URI=\"/bytes/16/licence\",KEYFORMAT=\"com.microsoft.playready\"",
            "PlayReady"
        ),
        ("METHOD=SAMPLE-AES-CTR,URI=\"/bytes/16/keys\",KEYFORMAT=\"org.w3.clearkey\"", "ClearKey"),
    ])
    func `a title of a key system is reported without keys`(key: String, system: String) throws {
        let stage = try DownloadStage()
        let url = put(key, stage)
        let words = "encrypted with \(system); keys missing"
        let done = try sluice(stage, "download", url)
        #expect(done.status == 1)
        #expect(done.stderr.contains(words) && !done.stdout.contains("complete"))
        let list = try sluice(stage, "download", "list").stdout
        #expect(list.contains(words) && !list.contains("100 %") && list.contains("99 %"))
        let titles = try sluice(stage, "ls").stdout
        #expect(titles.contains(words) && !titles.contains("100 %"))
        let json = try stage.ask("GET", "/api/titles/\(DownloadStage.encoded(url))").text
        #expect(json.contains("\"systems\":[\"\(system)\"]") && json.contains("\"whole\":false"))
        #expect(json.contains("\"missing_keys\":1"))
        // Unplayable media is not requested.
        #expect(stage.cdn.requestCount("/bytes/16/licence") == 0)
        #expect(stage.cdn.requestCount("/bytes/16/keys") == 0)
    }

    @Test(arguments: ["", "/film.mp4"])
    func `a title of a key system is not exported`(name: String) throws {
        let stage = try DownloadStage()
        let url = put("METHOD=SAMPLE-AES,URI=\"skd://key\"", stage)
        _ = try sluice(stage, "download", url)
        let folder = try TemporaryFolder()
        let target = name.isEmpty ? folder.file("out") : folder.path + name
        let done = try sluice(stage, "export", url, target)
        #expect(done.status == 1)
        #expect(done.stderr.contains("encrypted with FairPlay; keys missing"))
        #expect(listFolder(folder.path).isEmpty)
    }

    @Test(arguments: [
        "METHOD=AES-128,URI=\"/bytes/16/key\"",
        "METHOD=SAMPLE-AES,URI=\"/bytes/16/key\",KEYFORMAT=\"identity\"",
    ])
    func `a title whose key can be fetched is complete`(key: String) throws {
        let stage = try DownloadStage()
        let url = put(key, stage)
        #expect(try sluice(stage, "download", url).status == 0)
        #expect(try sluice(stage, "ls").stdout.contains("100 %"))
        let folder = try TemporaryFolder()
        #expect(try sluice(stage, "export", url, folder.file("out")).status == 0)
        #expect(stage.cdn.requestCount("/bytes/16/key") == 1)
    }
}
