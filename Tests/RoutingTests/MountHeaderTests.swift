import Routing
import Testing
import URISyntax

/// Header fields that a mount sends to its origin.
struct MountHeaderTests {
    @Test(arguments: [
        ("/own/=X-Api-Key: s3cret", "/own/", "X-Api-Key", "s3cret"),
        ("/own=X-Api-Key:s3cret", "/own/", "X-Api-Key", "s3cret"),
        ("/=Referer: \thttps://a.example/?b=c ", "/", "Referer", "https://a.example/?b=c"),
        (
            "/a:b/=User-Agent: Mozilla/5.0 (KHTML, like Gecko)", "/a:b/", "User-Agent",
            "Mozilla/5.0 (KHTML, like Gecko)"
        ),
    ])
    func `a field follows the path of its mount`(
        _ text: String, _ path: String, _ name: String, _ value: String
    ) throws {
        let given = try MountHeader(text)
        #expect(given.path == path && given.header.name == name && given.header.value == value)
    }

    @Test(arguments: [
        "", "/own/", "X-Api-Key: s3cret", "/own/=s3cret", "own/=X-Api-Key: s3cret",
        "X-Api-Key: a=b:s3cret", "/own/=: s3cret", "/own/=s3cret s3cret: x", "/a b/=X: s3cret",
        "/own/=\"s3cret\": x", "/own/=\n: s3cret",
    ])
    func `the error of what is no field of a mount quotes nothing of it`(_ text: String) {
        let fault = #expect(throws: MountHeader.Fault.self) { try MountHeader(text) }
        #expect(fault == .syntax)
        #expect(fault?.description.hasPrefix("mount-header is written PATH=NAME: VALUE") == true)
        #expect(fault?.description.contains("s3cret") == false)
    }

    private func fault(_ text: String, in mount: Mount) throws -> String {
        let given = try MountHeader(text)
        var mount = mount
        let fault = #expect(throws: MountHeader.Fault.self) { try mount.add(given.header) }
        return fault?.description ?? ""
    }

    @Test(arguments: [
        "Host", "connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
        "Proxy-Authorization", "Proxy-Connection", "Content-Length", "Expect", "Range", "If-Range",
        "If", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Cookie",
        "Accept-Encoding", "CDN-Loop", "Via", "Icy-MetaData", "Destination", "Max-Forwards",
        "Proxy-Authenticate", "Proxy-Authentication-Info",
    ])
    func `a field that belongs to one request or connection is refused`(_ name: String) throws {
        let text = try fault("/own/=\(name): s3cret", in: try Mount("/own/=https://h/"))
        #expect(text.hasPrefix("mount-header for /own/: the header \(name) "), "\(text)")
        #expect(!text.contains("s3cret"))
    }

    @Test func `a field is refused without a value, with a bad one, and twice`() throws {
        var mount = try Mount("/own/=https://h/")
        try mount.add(Entry.Header(name: "X-Api-Key", value: String(repeating: "a", count: 8_192)))
        let long = String(repeating: "a", count: 8_193)
        for (field, words) in [
            ("X-Empty: ", "the header X-Empty has no value"),
            ("X-Bad: a\r\nHost: b", "the header X-Bad of the mount holds a control character"),
            ("X-Long: \(long)", "the header X-Long of the mount has more than 8192 bytes"),
            ("x-api-key: b", "the header x-api-key is given twice"),
        ] {
            let text = try fault("/own/=\(field)", in: mount)
            #expect(text.contains(words), "\(text)")
        }
        for number in 1..<32 {
            try mount.add(Entry.Header(name: "X-\(number)", value: "1"))
        }
        #expect(try fault("/own/=X-32: 1", in: mount).contains("more than 32 headers"))
    }

    @Test func `user information and Authorization exclude each other`() throws {
        let mount = try Mount("/adm/=https://ann:pw@h/")
        let text = try fault("/adm/=Authorization: Bearer s3cret", in: mount)
        #expect(text.contains("has user information") && !text.contains("s3cret"))
    }

    @Test func `the URLs of a mount with fields have a stand-in for them`() throws {
        var mount = try Mount("/own/=https://h:8443/x/")
        #expect(mount.secret == nil && mount.origin.text == "https://h:8443/x/")
        try mount.add(Entry.Header(name: "X-Api-Key", value: "s3cret"))
        #expect(mount.origin.text == "https://mount*%2Fown%2F@h:8443/x/" && mount.userinfo == nil)
        #expect(try mount.url(for: "a").text == "https://mount*%2Fown%2F@h:8443/x/a")
        var named = try Mount("/adm/=https://ann:pw@h/")
        #expect(named.secret == "ann:pw")
        try named.add(Entry.Header(name: "X-Api-Key", value: "s3cret"))
        #expect(named.origin.text == "https://mount*%2Fadm%2F@h/" && named.userinfo == "ann:pw")
    }
}
