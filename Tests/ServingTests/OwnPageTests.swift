import HTTP
import Testing

@testable import Serving

/// The table of the daemon's own pages.
@Suite struct OwnPageTests {
    @Test func `the help names only paths that have a page`() {
        let words = OwnPage.helpText.split { $0 == " " || $0 == "," || $0 == ";" || $0 == "\n" }
        let paths = words.map { $0.first == "~" ? $0.dropFirst() : $0 }
            .filter { $0.hasPrefix("/api/") || $0.hasPrefix("/metrics") }
            .map { String($0.prefix { $0 != "?" }) }
        #expect(paths.count > 15)
        for path in paths { #expect(OwnPage.find(path)?.access == .token, "\(path)") }
    }

    @Test func `a picture of a title is a page of its own, before the titles`() {
        let picture = OwnPage.find("/api/titles/0123456789ab/picture")
        let title = OwnPage.find("/api/titles/0123456789ab")
        #expect(picture?.methods == OwnPage.reading)
        #expect(title?.access == .token && title?.methods == nil)
    }

    @Test(arguments: ["/", "/api/stats", "/metrics", "/api/titles", "/api/feeds/f", "/nothing"])
    func `a path needs the token, whether or not it has a page`(_ path: String) {
        #expect(OwnPage.access(to: path) == .token)
    }

    @Test func `health needs no token, and only the token begins a session`() {
        #expect(OwnPage.access(to: "/api/health") == .everybody)
        #expect(OwnPage.access(to: "/api/session") == .session)
    }
}
