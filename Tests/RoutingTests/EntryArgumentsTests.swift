import HLS
import HTTP
import Routing
import Testing
import URISyntax

/// The limit of variants in entries.
@Suite struct EntryArgumentsTests {
    private func route(_ target: String) -> Route {
        Router(mounts: []).route(RequestHead(method: .get, target: target))
    }

    private func entry(_ target: String) throws -> Entry {
        guard case .entry(let entry) = route(target) else {
            throw RouteFailure(target: target)
        }
        return entry
    }

    private struct RouteFailure: Error {
        let target: String
    }

    @Test(arguments: [
        ("/height=720/https://h/a?height=9", VariantLimit(height: 720)),
        ("/height=720/https:/h/a?height=9", VariantLimit(height: 720)),
        ("/bandwidth=2500000/https://h/a?height=9", VariantLimit(bandwidth: 2_500_000)),
        (
            "/bandwidth=1/height=2147483648/https://h/a?height=9",
            VariantLimit(height: 1 << 31, bandwidth: 1)
        ),
        ("/proxy?url=https%3A%2F%2Fh%2Fa%3Fheight%3D9&height=720", VariantLimit(height: 720)),
        (
            "/proxy?bandwidth=3&height=2&url=https%3A%2F%2Fh%2Fa%3Fheight%3D9",
            VariantLimit(height: 2, bandwidth: 3)
        ),
        ("/https://h/a?height=9", VariantLimit.none),
        ("/proxy?url=https%3A%2F%2Fh%2Fa%3Fheight%3D9", VariantLimit.none),
    ])
    func `a limit precedes the URL, whose own arguments reach the origin`(
        _ target: String, _ limit: VariantLimit
    ) throws {
        let entry = try entry(target)
        #expect(entry.limit == limit && entry.window == nil)
        #expect(entry.url.text == "https://h/a?height=9")
    }

    @Test func `a URL that is not percent-encoded ends at a limit`() throws {
        let entry = try entry("/proxy?url=https://h/a?x=1&y=2&height=720&bandwidth=9")
        #expect(entry.url.text == "https://h/a?x=1&y=2")
        #expect(entry.limit == VariantLimit(height: 720, bandwidth: 9))
    }

    @Test(arguments: ["/dvr=2h/height=720/https://h/a", "/height=720/dvr=2h/https://h/a"])
    func `arguments precede the URL in any order`(_ target: String) throws {
        let entry = try entry(target)
        #expect(entry.limit == VariantLimit(height: 720) && entry.window == 7_200)
    }

    @Test(arguments: ["", "0", "-1", "+1", "720p", "7.5", "2147483649", "99999999999999999999"])
    func `another value is refused, and the answer names the argument`(_ value: String) {
        for name in ["height", "bandwidth"] {
            for target in [
                "/\(name)=\(value)/https://h/a", "/proxy?url=https%3A%2F%2Fh%2Fa&\(name)=\(value)",
            ] {
                guard case .refused(.badRequest, let reason) = route(target) else {
                    Issue.record("\(target) is not refused")
                    continue
                }
                #expect(reason.hasPrefix("\(name)= is "), "\(target)")
            }
        }
    }

    @Test(arguments: ["/height=720", "/height=720/", "/height=720/x", "/height=720/proxy?url=x"])
    func `a limit without a URL is refused`(_ target: String) {
        guard case .refused(.badRequest, _) = route(target) else {
            return #expect(Bool(false))
        }
    }

    @Test func `no mount hides an argument`() {
        for path in ["/dvr=1h/", "/height=720/", "/bandwidth=/"] {
            #expect(!Router.mayMount(path), "\(path)")
        }
        #expect(Router.mayMount("/heights/") && Router.mayMount("/height/"))
    }
}
