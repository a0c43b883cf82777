import Model
import Testing

@testable import DaemonService

/// The path before all links.
struct BasePathTests {
    private func path(_ text: String) async throws -> String {
        try await DaemonConfiguration(scalars: ["base-path": text], lists: [:], file: nil)
            .proxy.basePath
    }

    @Test(arguments: [("/hls/", "/hls"), ("/a/b", "/a/b"), ("/", ""), ("/a:b@c", "/a:b@c")])
    func `a path is taken, without the slash at its end`(
        _ text: String, _ taken: String
    ) async throws {
        #expect(try await path(text) == taken)
    }

    @Test(arguments: ["/a?b", "/a#b", "//x", "/a\nb", "/a b", "/a\"b", "a", "http://h/", "/ä"])
    func `what is not a path is refused`(_ text: String) async {
        await #expect(throws: ConfigurationError.self) { try await path(text) }
    }
}
