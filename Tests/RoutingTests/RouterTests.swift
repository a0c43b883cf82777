import HLS
import HTTP
import Routing
import Testing
import URISyntax

/// Request targets become routes.
@Suite struct `The router` {
    let router: Router

    init() throws {
        router = Router(mounts: [
            try Mount("/demo/=https://cdn.example.com/vod/"),
            try Mount("/demo/deep/=https://deep.example.com/"),
        ])
    }

    private func route(_ target: String) -> Route {
        router.route(RequestHead(method: .get, target: target))
    }

    /// What a route plays; `-` for none.
    private func shown(_ route: Route) -> String {
        switch route {
        case .entry(let entry): entry.url.text
        case .rewritten(let link): "\(link.sealed ?? "") \(link.handle) \(link.fileName)"
        case .mount(let mount, let url): "\(mount.path) \(url.text)"
        case .forChild, .own, .refused: "-"
        }
    }

    @Test(arguments: [
        ("/hls/https://h/hls/a.m3u8?x=1", "https://h/hls/a.m3u8?x=1"),
        ("/hls/proxy?url=http%3A%2F%2Fh%2Fa", "http://h/a"),
        ("/hls/dvr=2h/https://h/a", "https://h/a"),
        ("/hls/s/handle/a.ts?u=x", " handle a.ts"),
        ("/hls/c/seal/s/handle/a.ts", "seal handle a.ts"),
        ("/hls/demo/a.ts", "/demo/ https://cdn.example.com/vod/a.ts"),
        ("/https://h/a", "https://h/a"), ("/s/handle/a.ts", " handle a.ts"),
        // A mount with the name of the base path.
        ("/hls/b.ts", "/hls/ https://hls.example.com/b.ts"),
        ("/hlsx/https://h/a", "-"), ("/other/https://h/a", "-"),
    ])
    func `a URL of the daemon has the base path in front, or not`(
        _ path: String, _ expected: String
    ) throws {
        let mounts = [
            try Mount("/demo/=https://cdn.example.com/vod/"),
            try Mount("/hls/=https://hls.example.com/"),
        ]
        let router = Router(mounts: mounts, basePath: "/hls")
        let url = try AbsoluteURL("http://localhost:9000" + path)
        #expect(shown(router.route(given: url)) == expected)
    }

    @Test func `a mount's URLs have a stand-in for its user information`() throws {
        let mount = try Mount("/adm/=https://ann:s3cret@h:8443/x/")
        #expect(mount.userinfo == "ann:s3cret")
        #expect(mount.origin.text == "https://mount*%2Fadm%2F@h:8443/x/")
        #expect(try mount.url(for: "a?b").text == "https://mount*%2Fadm%2F@h:8443/x/a?b")
        let plain = try Mount("/pub/=https://h/x/")
        #expect(plain.userinfo == nil && plain.origin.text == "https://h/x/")
    }

    @Test(arguments: [
        "/https://mount*%2Fadm%2F@h/a", "/proxy?url=https%3A%2F%2Fmount*x%40h%2Fa",
        "/dvr=2h/https://mount*x@h/a", "/o/s/https://mount*x@h/a",
    ])
    func `no client may name a stand-in`(_ target: String) {
        guard case .refused(let status, let reason) = route(target) else {
            Issue.record("\(shown(route(target)))")
            return
        }
        #expect(status == .badRequest && reason.contains("stands for that of a mount"))
    }

    @Test func `without its base path, a target loses segments of its path only`() {
        #expect(Router.targets(of: "/a/b?c=/d") == ["/a/b?c=/d", "/b?c=/d"])
        #expect(Router.targets(of: "/a#/b") == ["/a#/b"])
        #expect(Router.targets(of: "") == [])
        let deep = String(repeating: "/a", count: 10_000)
        #expect(Router.targets(of: deep).count == 9)
    }

    private func childURL(_ target: String) -> String? {
        guard case .forChild(let role, let url) = route(target) else { return nil }
        return "\(role) \(url.text)"
    }

    @Test(arguments: [
        ("/o/s/https://h/a//b.ts?x=1&y=%2F", "segment https://h/a//b.ts?x=1&y=%2F"),
        ("/o/p/http://h:8080/l.m3u8?_HLS_msn=3", "playlist http://h:8080/l.m3u8?_HLS_msn=3"),
        ("/o/k/https:/h/key", "key https://h/key"),
        ("http://parent/o/s/https://h/a.ts?x=1", "segment https://h/a.ts?x=1"),
        ("/o/x/https://h/a", nil), ("/o/s/", nil), ("/o/s", nil), ("/o/", nil), ("/o/s/h/a", nil),
        ("/o/s/https://", nil), ("/o//https://h/a", nil), ("/s/o/https://h/a", nil),
    ])
    func `a child requests a role and a whole URL`(_ target: String, _ url: String?) {
        #expect(childURL(target) == url)
    }

    @Test(arguments: [
        ("/c/abc/s/handle/a.ts", "abc handle a.ts"),
        ("/c/abc/p/handle/a.m3u8?u=x&_HLS_msn=3", "abc handle a.m3u8"),
        ("http://localhost/c/abc/s/handle/a.ts", "abc handle a.ts"),
        ("/c//s/handle/a.ts", " handle a.ts"),
        ("/c/abc/x/handle/a.ts", nil), ("/c/abc/s/", nil), ("/c/abc/", nil), ("/c/abc", nil),
        ("/c/", nil), ("/c/abc?/s/handle/a.ts", nil), ("/c/abc/c/abc/s/handle/a.ts", nil),
    ])
    func `a link may carry a sealed session in front`(_ target: String, _ parts: String?) {
        guard case .rewritten(let link) = route(target) else { return #expect(parts == nil) }
        #expect("\(link.sealed ?? "-") \(link.handle) \(link.fileName)" == parts)
    }

    private func entryURL(_ target: String) -> String? {
        guard case .entry(let entry) = route(target) else { return nil }
        return entry.url.text
    }

    @Test(arguments: [
        ("/proxy?url=https%3A%2F%2Fh%2Fa.m3u8%3Fx%3D1%26y%3D2", "https://h/a.m3u8?x=1&y=2"),
        ("/proxy?url=https://h/a.m3u8", "https://h/a.m3u8"),
        // Encoded except for `:` and `/`; not so if `?` is part of a file name.
        ("/proxy?url=https://h/a.m3u8%3Fx%3D1%26y%3D2", "https://h/a.m3u8?x=1&y=2"),
        ("/proxy?url=https://h/a%2520b%3fx%3d1&token=t", "https://h/a%20b?x=1"),
        ("/proxy?url=https://h/what%3F.m3u8", "https://h/what%3F.m3u8"),
        ("/proxy?url=https://h/a%3Fb?c%3Dd", "https://h/a%3Fb?c%3Dd"),
        // The path contains an encoded URL.
        ("/proxy?url=https://h/get/o%3A80%3Ft%3D1", "https://h/get/o%3A80%3Ft%3D1"),
        ("/proxy?url=https://h/get/o%2fa%3Ft%3D1", "https://h/get/o%2fa%3Ft%3D1"),
        ("/https://h/a.m3u8?x=1&y=2", "https://h/a.m3u8?x=1&y=2"),
        ("/http://h:8080/", "http://h:8080/"),
        ("/https:/h/a.m3u8", "https://h/a.m3u8"),
        ("/https%3A%2F%2Fh%2Fa.m3u8", "https://h/a.m3u8"),
        ("/HTTP%3a%2F%2fh%2Fa.m3u8", "HTTP://h/a.m3u8"),
        ("/http:/h", "http://h"),
        ("http://proxy:80/https://h/a.m3u8?x=1&y=2", "https://h/a.m3u8?x=1&y=2"),
        ("HTTP://proxy/https%3A%2F%2Fh%2Fa.m3u8", "https://h/a.m3u8"),
        ("http://proxy/proxy?url=https://h/a.m3u8", "https://h/a.m3u8"),
        ("http://proxy/dvr=2h/https://h/a.m3u8?x=1", "https://h/a.m3u8?x=1"),
        ("http://h/a.m3u8", nil),
        ("/http:///h", nil),
        ("/HTTPS://h/a.m3u8", "HTTPS://h/a.m3u8"),
        ("/Http:/h/a.m3u8", "Http://h/a.m3u8"),
        ("/http:", nil),
        ("/httpx://h/", nil),
    ])
    func `all forms of an entry give the same URL`(_ target: String, _ url: String?) {
        #expect(entryURL(target) == url)
    }

    // A query cut at its first ampersand.
    @Test func `an unencoded URL keeps its own arguments`() {
        #expect(entryURL("/proxy?url=https://h/a?x=1&y=2&h_Referer=z") == "https://h/a?x=1&y=2")
        #expect(entryURL("/proxy?url=https://h/a?x&y&z=&token=t&w") == "https://h/a?x&y&z=")
        #expect(entryURL("/proxy?dvr=1h&url=https://h/a?x&y") == "https://h/a?x&y")
        var daemon = router
        daemon.keepsTokens = true
        let target = "/proxy?url=https://h/a?x&token=t&y=3&h_Referer=z"
        guard case .entry(let entry) = daemon.route(RequestHead(method: .get, target: target))
        else { return #expect(Bool(false)) }
        #expect(entry.url.text == "https://h/a?x&token=t&y=3" && entry.token == nil)
        #expect(entry.headers.map(\.name) == ["Referer"])
    }

    @Test func `a plus in an entry stays a plus`() {
        #expect(entryURL("/proxy?url=https%3A%2F%2Fh%2Fa+b") == "https://h/a+b")
    }

    @Test func `session headers are parsed and decoded`() {
        guard
            case .entry(let entry) = route(
                "/proxy?url=https%3A%2F%2Fh%2F&h_Referer=https%3A%2F%2Fr%2F&h_X-A=b%20c")
        else { return #expect(Bool(false)) }
        #expect(
            entry.headers == [
                .init(name: "Referer", value: "https://r/"), .init(name: "X-A", value: "b c"),
            ])
    }

    @Test(arguments: [
        "h_X=a%0D%0AEvil:%201", "h_A%20B=c", "h_Host=evil", "h_=x", "h_Content-Length=3",
    ])
    func `a header that would change the framing of a request is rejected`(_ argument: String) {
        guard case .refused(let status, _) = route("/proxy?url=https%3A%2F%2Fh%2F&\(argument)")
        else {
            return #expect(Bool(false))
        }
        #expect(status == .badRequest)
    }

    @Test(arguments: [
        "/proxy?url=file%3A%2F%2F%2Fetc%2Fpasswd", "/proxy?url=ftp%3A%2F%2Fh%2F", "/proxy",
        "/proxy?url=",
    ])
    func `a URL that is not http or https is rejected`(_ target: String) {
        guard case .refused(let status, _) = route(target) else { return #expect(Bool(false)) }
        #expect(status == .badRequest)
    }

    @Test func `the longer mount path wins`() {
        guard case .mount(_, let url) = route("/demo/deep/a/b.ts?q=1") else {
            return #expect(Bool(false))
        }
        #expect(url.text == "https://deep.example.com/a/b.ts?q=1")
    }

    @Test(arguments: ["/demo/../secret", "/demo/%2e%2e/secret", "/demo/a/..%2fb/../../x"])
    func `a path cannot leave its mount`(_ target: String) {
        guard case .refused(.badRequest, _) = route(target) else { return #expect(Bool(false)) }
    }

    @Test func `of a rewritten URL's query only delivery directives count`() {
        guard
            case .rewritten(let link) = route("/p/AbC/x.m3u8?_HLS_msn=3&foo=bar&_HLS_part=1")
        else { return #expect(Bool(false)) }
        #expect(link.role == .playlist && link.pathway == nil)
        #expect(link.handle == "AbC")
        #expect(link.directives.map(\.rawName) == ["_HLS_msn", "_HLS_part"])
    }

    @Test(arguments: [
        ("/s/AbC", "AbC", 0), ("/s/AbC/x.ts#_HLS_msn=1", "AbC", 0), ("/s/AbC?_HLS_msn=1", "AbC", 1),
        ("/s/AbC/x.ts?_HLS_msn=1#?_HLS_part=1", "AbC", 1),
        ("http://proxy:80/s/AbC/x.ts?_HLS_msn=1", "AbC", 1),
    ])
    func `text behind the path of a link is rejected`(
        _ target: String, _ handle: String, _ count: Int
    ) {
        guard case .rewritten(let link) = route(target) else { return #expect(Bool(false)) }
        #expect(link.handle == handle && link.directives.count == count)
    }

    @Test(arguments: ["/s/", "/s//x.ts", "/s/?a=b", "http://proxy/s/"])
    func `a link without its handle is rejected`(_ target: String) {
        guard case .refused(.notFound, _) = route(target) else { return #expect(Bool(false)) }
    }

    @Test(arguments: [
        "/proxy/=https://h/", "/api/=https://h/", "/s/=https://h/", "nopath", "/a", "/x/=ftp://h/",
    ])
    func `an invalid mount is rejected`(_ text: String) {
        #expect(throws: Mount.Fault.self) { try Mount(text) }
    }

    @Test(arguments: ["/aa/../", "/./", "/aa/%2E./b/", "/aa/%2e/", "/aa?b/", "/aa#b/"])
    func `a mount that no client can ask for is rejected`(_ path: String) {
        #expect(throws: Mount.Fault.changing(path)) { try Mount("\(path)=https://h/") }
    }

    @Test(arguments: ["/..aa/", "/a.b/", "/aa/.../", "/%2Faa/"])
    func `dots in a name are no reason to reject a mount`(_ path: String) throws {
        #expect(try Mount("\(path)=https://h/").path == path)
    }

    @Test(arguments: ["/http:/", "/https:/x/", "/console/"])
    func `the error of a mount names the daemon's own paths, of which it has one`(_ path: String) {
        let own = path.split(separator: "/")[0]
        do throws(Mount.Fault) {
            _ = try Mount("\(path)=https://h/")
            #expect(Bool(false), "\(path) is taken")
        } catch {
            #expect("\(error)".contains("/\(own)"), "\(error)")
        }
    }
}
