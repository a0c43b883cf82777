import HTTP
import Model
import Routing
@testable import Serving
import Testing
import URISyntax

/// Where COPY and MOVE under a mount lead.
@Suite struct MountDestinationTests {
    /// The destination at the origin, `none`, or the status of the refusal.
    private func outcome(
        _ destinations: [String], method: String = "MOVE", basePath: String = ""
    ) throws -> String {
        let mounts = [
            try Mount("/mt/=https://user:word@origin.test/o/"),
            try Mount("/same/=https://origin.test/s/"),
            try Mount("/other/=http://origin.test/o/"),
        ]
        var request = RequestHead(method: HTTPMethod(method), target: "/mt/a/x.ts?q")
        request.fields.append(.host, "here.test")
        for destination in destinations { request.fields.append("Destination", destination) }
        let destination = MountDestination(
            mount: mounts[0], request: request,
            own: OwnOrigin(request, isEncrypted: false, ProxySettings()), basePath: basePath,
            router: Router(mounts: mounts))
        do throws(ProxyFailure) {
            let url = try destination.url(isOwn: { $0.asciiHost == "also.test" })
            return url?.withoutUserinfo.text ?? "none"
        } catch {
            return "\(error.status.rawValue)"
        }
    }

    @Test(
        arguments: [
            ("http://here.test/mt/b%20c.ts?d=1#e", "https://origin.test/o/b%20c.ts?d=1"),
            ("https://here.test/mt/b.ts", "https://origin.test/o/b.ts"),
            ("http://HERE.test:80/mt/b.ts", "https://origin.test/o/b.ts"),
            ("http://also.test/mt/b.ts", "https://origin.test/o/b.ts"),
            ("/mt/b.ts", "https://origin.test/o/b.ts"), ("b.ts", "https://origin.test/o/a/b.ts"),
            ("/same/b.ts", "https://origin.test/s/b.ts"),
        ] as [(String, String)])
    func `a URL below a mount becomes that of its origin`(given: String, there: String) throws {
        #expect(try outcome([given]) == there)
        #expect(try outcome([given], method: "COPY") == there)
    }

    @Test(arguments: [
        ("https://origin.test/o/b%20c.ts?d=1#e", "https://origin.test/o/b%20c.ts?d=1"),
        ("https://ORIGIN.test:443/s/b.ts", "https://origin.test/s/b.ts"),
        ("https://origin.test/o/", "https://origin.test/o/"),
    ])
    func `a URL that is the origin's already is passed on`(given: String, there: String) throws {
        #expect(try outcome([given]) == there)
    }

    @Test(arguments: [
        "http://else.test/mt/b.ts", "http://here.test:81/mt/b.ts", "http://origin.test/o/b.ts",
        "/other/b.ts", "/b.ts", "/api/stats", "/mt/../b.ts", "https://origin.test/x/b.ts",
        "https://origin.test/o/../b.ts", "https://origin.test/o/%2e%2e/b.ts",
        "https://origin.test:444/o/b.ts",
    ])
    func `a URL anywhere else is refused with 502`(given: String) throws {
        #expect(try outcome([given]) == "502")
    }

    @Test func `a path that is not a URL, or leaves its folder, is refused with 400`() throws {
        for given in [["mailto:a@b"], ["/mt/b", "/mt/c"], ["/mt/%2e%2e/b"]] {
            #expect(try outcome(given) == "400", "\(given)")
        }
    }

    @Test func `the base path of a proxy in front is left out`() throws {
        let there = "https://origin.test/o/b.ts"
        #expect(try outcome(["http://here.test/hls/mt/b.ts"], basePath: "/hls") == there)
        #expect(try outcome(["b.ts"], basePath: "/hls") == "https://origin.test/o/a/b.ts")
    }

    @Test func `the Destination field of other requests is left as it is`() throws {
        #expect(try outcome([]) == "none")
        #expect(try outcome(["http://else.test/"], method: "PUT") == "none")
    }
}
