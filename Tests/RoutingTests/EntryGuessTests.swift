import Routing
import Testing
import URISyntax

/// The URL that an unknown path was probably meant to be.
struct EntryGuessTests {
    @Test(arguments: [
        ("/cdn.example.com/x.m3u8", "https://cdn.example.com/x.m3u8"),
        ("//cdn.example.com/x.m3u8", "https://cdn.example.com/x.m3u8"),
        ("/192.0.2.1:8080/a/b.ts", "https://192.0.2.1:8080/a/b.ts"),
        ("/localhost/a.m3u8", "https://localhost/a.m3u8"),
        ("//http://a.example/b", "http://a.example/b"),
        ("/http:a.example/b", "http://a.example/b"),
        ("///HTTPS:/a.example/b", "https://a.example/b"),
        ("/http%3A%2F%2Fa.example%2Fb", "http://a.example/b"),
    ])
    func `a path that begins with a host, or with a misplaced scheme, suggests a URL`(
        path: String, url: String
    ) {
        #expect(EntryGuess.url(in: path)?.text == url)
    }

    @Test(arguments: [
        "", "/", "//", "/a", "/a/b.ts", "/api/x", "/1.2/x", "/a..b/x", "/http:", "/https:///",
        "/user:pw@h.example/x", "/http:/user:pw@h.example/x", "/h.example:99999/x",
        "/http:/h.example/<script>", "/h.example/\"x\"", "/.example/x",
        "/http%3A%2F%2Fh.example%2F%0D%0A",
    ])
    func `other paths suggest nothing`(path: String) {
        #expect(EntryGuess.url(in: path) == nil)
    }

    @Test
    func `only the beginning of a very long path is examined`() {
        #expect(EntryGuess.url(in: "/h.example/" + String(repeating: "a", count: 3_000)) == nil)
    }
}
