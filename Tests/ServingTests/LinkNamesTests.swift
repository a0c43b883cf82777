import HLS
import HTTP
@testable import Model
import Posix
import Routing
@testable import Serving
import Testing
import URISyntax

/// The names and ports at which links of this daemon are known, in the texts that users give.
@Suite struct LinkNamesTests {
    private static let target = "http://origin.example/f/one.ts"

    /// Returns what texts name for a daemon on port 9000 of this machine that is called
    /// `media.example`; `nothing` for one that is refused.
    private func named(_ texts: [String], hasNodes: Bool = false) throws -> [String] {
        let addresses = OwnAddresses(hostNames: ["media.example"])
        addresses.listen(on: [SocketAddress(bytes: [127, 0, 0, 1], port: 9_000)])
        let stage = try LinksStage(addresses, hasNodes: hasNodes)
        return texts.map { stage.links.originURL($0)?.text ?? "nothing" }
    }

    /// The path of a link to a target.
    private func path(_ target: Handle.Target) throws -> String {
        let session = Session(startingAt: try AbsoluteURL(Self.target)).id
        var text = Array("/s/".utf8)
        Handle(session: session, target: target).append(to: &text, for: .link(.segment))
        return String(decoding: text, as: UTF8.self) + "/one.ts"
    }

    @Test func `a link is known by every name of the daemon, on any port`() throws {
        let link = try path(.url(try AbsoluteURL(Self.target)))
        let places = [
            "http://127.0.0.1:9000", "http://127.0.0.1:9001", "http://localhost",
            "http://media.example", "https://media.example:8443",
        ]
        let found = try named(places.map { $0 + link })
        #expect(found == places.map { _ in Self.target })
        // Its target is not known.
        let short = try path(.name([UInt8](repeating: 1, count: 16)))
        let unknown = try named(places.map { $0 + short })
        #expect(unknown == places.map { _ in "nothing" })
    }

    @Test func `a link at a foreign name is one of another node, if there are any`() throws {
        let link = try path(.url(try AbsoluteURL(Self.target)))
        let url = "http://node-2.example:9000\(link)"
        #expect(try named([url], hasNodes: true) == [Self.target])
        #expect(try named([url]) == [url])
    }

    /// The status of the refusal of a name behind the handle of a link; nil if it is served.
    private func refusal(_ role: String, _ name: String, of url: String) throws -> HTTPStatus? {
        let stage = try LinksStage(OwnAddresses(hostNames: []))
        let target = try AbsoluteURL(url)
        let known = try #require(ResourceRole(letter: role.utf8.first ?? 0))
        var text = Array("/\(role)/".utf8)
        Handle(session: Session(startingAt: target).id, target: .url(target))
            .append(to: &text, for: .link(known))
        let path = String(decoding: text, as: UTF8.self) + name
        guard
            case .rewritten(let link) = stage.links.router.route(
                RequestHead(method: .get, target: path))
        else { return .badRequest }
        do throws(ProxyFailure) {
            _ = try stage.links.lookUp(link)
            return nil
        } catch {
            return error.status
        }
    }

    @Test(arguments: [
        "/7.ts", "/7.m3u8", "/7", "/7.ts?utc=1", "/7.ts|User-Agent=a/5.0", "/", "",
    ])
    func `a link to a file is served without its name and with another ending`(_ name: String)
        throws
    {
        #expect(try refusal("f", name, of: "http://h/live/7") == nil)
    }

    @Test(arguments: ["/seg-1.m4s", "/7-1.m4s", "/71.ts", "/x/7.ts", "/.."])
    func `a name that was resolved against a link to a file is not found`(_ name: String) throws {
        #expect(try refusal("f", name, of: "http://h/live/7") == .notFound)
        #expect(try refusal("s", name, of: "http://h/live/7") == nil)
    }

    @Test func `another server with a name of the daemon is an origin, except for links`() throws {
        let urls = [
            "http://media.example:8080/s/segments/one.ts", "http://media.example/v/1/one.ts",
            "http://127.0.0.1:8080/\(Self.target)", "http://localhost/proxy?url=\(Self.target)",
            "http://127.0.0.1:8080/f/one.ts",
        ]
        #expect(try named(urls, hasNodes: true) == urls)
    }
}
