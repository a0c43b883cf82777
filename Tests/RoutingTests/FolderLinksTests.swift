import HLS
import HTTP
import Routing
import Testing
import URISyntax

/// Links made from a folder and a name equal those made from a whole URL.
@Suite struct `Links of one folder` {
    private let session = SessionID(0x1234_5678_9abc)

    /// The link made from a whole URL.
    private func link(to url: AbsoluteURL, _ role: ResourceRole, _ epoch: Epoch) -> [UInt8] {
        var output = Array("/base/\(Character(UnicodeScalar(role.letter)))/".utf8)
        Handle(session: session, target: .url(url), epoch: epoch).append(
            to: &output, for: .link(role))
        output.append(0x2F)
        role.appendSafeFileName(for: url, hasMap: false, to: &output)
        return output
    }

    @Test(arguments: [
        "https://cdn.example.com/vod/", "http://h/", "http://h/a/", "http://h/ab/",
        "https://u:p@[2001:db8::1]:8080/x/y/",
    ])
    func `links made from folder and name equal links made from whole URLs`(_ folder: String) throws
    {
        for count in 1..<40 {
            for ending in [".ts", ".M4S", "", ".html?x=1&y=%2F", "ü b.ts"] {
                let name = String(repeating: "n", count: count) + ending
                let document = Array("first.ts".utf8) + Array(name.utf8)
                var memory = FolderMemory(document: document)
                memory.learn(0..<8, as: try AbsoluteURL(folder + "first.ts"))
                let url = try #require(memory.join(8..<document.count))
                for (role, number) in [(ResourceRole.segment, 0), (.part, 7), (.media, 1 << 31)] {
                    let epoch = Epoch(number: UInt32(number))
                    let links = FolderLinks(
                        prefix: Array("/base".utf8), role: role, session: session, epoch: epoch,
                        folder: url.folder)
                    #expect(links.fit(url, role, epoch) && !links.fit(url, .image, epoch))
                    var output: [UInt8] = []
                    links.append(url, hasMap: false, to: &output)
                    #expect(output == link(to: url.url, role, epoch), "\(folder)\(name)")
                }
            }
        }
    }
}

@Suite struct `Moves to a cloned pathway` {
    static let moves = [
        ("", "b.example", "http://b.example:81/v/l.m3u8?q=1"),
        ("", "b.example:8443", "http://b.example:8443/v/l.m3u8?q=1"),
        ("&k=v&_HLS_msn=3", "b.example", "http://b.example:81/v/l.m3u8?q=1&k=v"),
        ("&q=2%2F", "b.example", "http://b.example:81/v/l.m3u8?q=2%2F"),
        ("&CMCD=bl%3D1&e", "[::1]", "http://[::1]:81/v/l.m3u8?q=1&e"),
    ]

    @Test(arguments: moves)
    func `host and parameters of a pathway clone are inserted into the URL`(
        _ query: String, _ host: String, _ expected: String
    ) throws {
        let items = QueryItem.items(of: "_sluice_host=x\(query)")
        let move = try #require(PathwayMove(items))
        let base = try AbsoluteURL("https://m.example/steer")
        let root = try #require(PathwayMove.root(of: Array(host.utf8), base: base))
        let url = try AbsoluteURL("http://u:p@a.example:81/v/l.m3u8?q=1")
        #expect(move.applied(to: url, root: root)?.text == expected)
    }

    @Test func `a clone without a host keeps that of the base, with its user information`() throws {
        let move = try #require(PathwayMove(QueryItem.items(of: "_sluice_params=1&k=v")))
        let url = try AbsoluteURL("http://u:p@a.example/v/l.m3u8")
        #expect(move.applied(to: url, root: nil)?.text == "http://u:p@a.example/v/l.m3u8?k=v")
    }

    @Test(arguments: [
        ("k=v", "http://a.example/v/l.m3u8?user=1&k=v"),
        ("user=2", "http://a.example/v/l.m3u8?user=2"),
        ("", "http://mount*%2Fadm%2F@a.example/v/l.m3u8?user=1"),
    ])
    func `parameters, if there are any, are sent without a mount's user information`(
        _ parameters: String, _ expected: String
    ) throws {
        let items = QueryItem.items(of: "_sluice_params=1&\(parameters)")
        let move = try #require(PathwayMove(items))
        let url = try AbsoluteURL("http://mount*%2Fadm%2F@a.example/v/l.m3u8?user=1")
        #expect(url.hasStandIn && move.applied(to: url, root: nil)?.text == expected)
    }

    @Test(arguments: ["", "k=v", "_HLS_msn=1", "sluice_host=x"])
    func `other queries leave the URL unchanged`(_ query: String) {
        #expect(PathwayMove(QueryItem.items(of: query)) == nil)
    }

    @Test(arguments: ["", "a/b", "u@h", "h?x", "a b", "h:0", "\\h", "h#f"])
    func `text that is not a host has no root`(_ host: String) throws {
        let base = try AbsoluteURL("https://m.example/")
        #expect(PathwayMove.root(of: Array(host.utf8), base: base) == nil)
    }
}
