import HLS
import Testing

/// Playlists whose keys only a key system provides.
@Suite struct ContentProtectionTests {
    private func read(_ lines: String...) throws -> ContentProtection.Reading {
        let text = (["#EXTM3U", "#EXT-X-TARGETDURATION:4"] + lines).joined(separator: "\n")
        return try Self.reading(text)
    }

    private static func reading(_ text: String) throws -> ContentProtection.Reading {
        let list = try Playlist(Array(text.utf8), base: nil)
        return ContentProtection.read(try #require(list.media))
    }

    @Test(arguments: [
        (
            "METHOD=SAMPLE-AES,URI=\"skd://k1\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "FairPlay"
        ),
        ("METHOD=SAMPLE-AES,URI=\"skd://k1\"", "FairPlay"),
        (
            "METHOD=SAMPLE-AES-CTR,URI=\"data:text/plain;base64,AA==\",KEYFORMAT=\"urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED\"",
            "Widevine"
        ),
        (
            "METHOD=SAMPLE-AES-CTR,URI=\"data:,x\",KEYFORMAT=\"urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95\"",
            "PlayReady"
        ),
        (
            "METHOD=SAMPLE-AES-CTR,URI=\"https://l/\",KEYFORMAT=\"com.microsoft.playready\"",
            "PlayReady"
        ),
        ("METHOD=SAMPLE-AES-CTR,URI=\"https://l/\",KEYFORMAT=\"org.w3.clearkey\"", "ClearKey"),
        ("METHOD=AES-128,URI=\"https://l/\",KEYFORMAT=\"com.example.drm\"", "com.example.drm"),
        ("METHOD=AES-128,URI=\"widget://1\"", "keys of widget"),
    ])
    func `a key of a key system counts as missing`(key: String, system: String) throws {
        let reading = try read("#EXT-X-KEY:\(key)", "#EXTINF:4,", "a.ts", "#EXTINF:4,", "b.ts")
        #expect(reading.protection?.systems == [system])
        #expect(reading.protection?.missingKeys == 1)
        #expect(reading.foreignKeyLines == [3])
    }

    @Test(arguments: [
        "METHOD=NONE", "METHOD=AES-128,URI=\"k\"", "METHOD=AES-128,URI=\"https://h/k\"",
        "METHOD=SAMPLE-AES,URI=\"k\",KEYFORMAT=\"identity\"",
        "METHOD=AES-128,URI=\"data:;base64,AA\"",
    ])
    func `a key that HTTP can fetch protects nothing`(key: String) throws {
        let reading = try read("#EXT-X-KEY:\(key)", "#EXTINF:4,", "a.ts")
        #expect(reading.protection == nil && reading.foreignKeyLines.isEmpty)
    }

    @Test func `one fetchable key beside those of key systems suffices`() throws {
        let reading = try read(
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://k\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"https://h/k\"", "#EXTINF:4,", "a.ts")
        #expect(reading.protection == nil)
        #expect(reading.foreignKeyLines == [3])
    }

    @Test func `all key systems of a segment are named, and each key counts once`() throws {
        let reading = try read(
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://1\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI=\"data:,1\",KEYFORMAT=\"com.widevine\"",
            "#EXTINF:4,", "a.ts",
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://1\",KEYFORMAT=\"com.apple.streamingkeydelivery\"",
            "#EXTINF:4,", "b.ts")
        #expect(reading.protection?.text == "encrypted with FairPlay, Widevine; keys missing")
        #expect(reading.protection?.missingKeys == 2)
    }

    @Test func `a key without a segment protects nothing`() throws {
        let reading = try read(
            "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://1\"", "#EXT-X-KEY:METHOD=NONE", "#EXTINF:4,",
            "a.ts")
        #expect(reading.protection == nil)
    }

    @Test func `many key formats take linear time, and few are named`() throws {
        var lines: [String] = []
        for number in 0..<20_000 {
            lines.append(
                "#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"x:\(number)\",KEYFORMAT=\"f\(number)\"")
            lines.append("#EXTINF:4,\ns\(number).ts")
        }
        let text = "#EXTM3U\n" + lines.joined(separator: "\n")
        let reading = try Self.reading(text)
        #expect(reading.protection?.missingKeys == 20_000)
        #expect(reading.protection?.systems.count == 8)
    }
}
