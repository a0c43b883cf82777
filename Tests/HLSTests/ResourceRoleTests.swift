import HLS
import Testing
import URISyntax

/// Letters and file names of roles.
@Suite struct ResourceRoleTests {
    @Test(arguments: ResourceRole.allCases)
    func `a role is restored from its letter`(role: ResourceRole) {
        #expect(ResourceRole(letter: role.letter) == role)
        #expect(ASCII.isLetter(role.letter))
    }

    @Test func `the letters are those of proxied URLs`() {
        let letters = ResourceRole.allCases.map { String(UnicodeScalar($0.letter)) }
        #expect(letters == ["p", "s", "i", "k", "l", "v", "j", "g", "f"])
        #expect(ResourceRole(letter: 0x78) == nil)
    }

    @Test func `small resources that block playback use the express lane`() {
        #expect(
            ResourceRole.allCases.filter(\.isExpress) == [.playlist, .initialization, .key, .json])
    }

    @Test(
        arguments: [
            (.playlist, "a.m3u8", false, ".m3u8"), (.playlist, "a.M3U", false, ".m3u"),
            (.playlist, "a.php", false, ".m3u8"), (.playlist, "", false, ".m3u8"),
            (.segment, "a.ts", true, ".ts"), (.segment, "a.jpg", false, ".ts"),
            (.segment, "a.html", true, ".m4s"), (.segment, "a", true, ".m4s"),
            (.segment, "a.CMFV", true, ".cmfv"), (.part, "a.png", true, ".m4s"),
            (.initialization, "i", true, ".mp4"), (.initialization, "i.ts", false, ".mp4"),
            (.key, "k.php", false, ".key"), (.key, "k.bin", false, ".bin"),
            (.subtitle, "s", false, ".vtt"), (.subtitle, "s.webvtt", false, ".webvtt"),
            (.json, "steer", false, ".json"), (.image, "t.jpeg", false, ".jpeg"),
            (.image, "t", false, ".jpg"), (.media, "film.mkv", false, ".mkv"),
            (.media, "x.exe", false, ".ts"),
        ] as [(ResourceRole, String, Bool, String)])
    func `the extension matches the role`(
        role: ResourceRole, origin: String, hasMap: Bool, expected: String
    ) {
        #expect(role.safeFileName(for: origin, hasMap: hasMap).hasSuffix(expected))
    }

    @Test(
        arguments: [
            (.segment, "seg-1_a.ts", "seg-1_a.ts"), (.segment, "a%20b c&d+ü.ts", "a_b_c_d___.ts"),
            (.segment, "", "segment.ts"), (.segment, ".ts", "segment.ts"),
            (.segment, "..", "segment.ts"), (.segment, "...hidden.ts", "hidden.ts"),
            (.segment, "video.html", "video.html.ts"), (.segment, "A.TS", "A.ts"),
            (.playlist, "", "index.m3u8"), (.key, "get;key=1", "get_key_1.key"),
            (.segment, "%", "_.ts"), (.segment, "a/../b.ts", "a_.._b.ts"),
        ] as [(ResourceRole, String, String)])
    func `a file name is safe and ends in the extension`(
        role: ResourceRole, origin: String, expected: String
    ) {
        #expect(role.safeFileName(for: origin) == expected)
    }

    @Test(arguments: ResourceRole.allCases)
    func `a long name is truncated before its extension`(role: ResourceRole) {
        let name = role.safeFileName(for: String(repeating: "n", count: 500) + ".webvtt")
        #expect(name.utf8.count <= ResourceRole.maximumFileNameLength)
        #expect(name.hasPrefix("nnn") && name.contains("."))
    }

    @Test func `the name of a URL is derived from its last path segment`() throws {
        var output = Array("x/".utf8)
        let url = try AbsoluteURL("http://h/a/seg.php?f=x.ts")
        ResourceRole.segment.appendSafeFileName(for: url, hasMap: true, to: &output)
        #expect(output == Array("x/seg.php.m4s".utf8))
    }
}
