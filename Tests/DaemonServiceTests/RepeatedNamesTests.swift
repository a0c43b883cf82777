import Posix
import Testing

@testable import DaemonService

/// Settings that a configuration file gives more than once.
struct RepeatedNamesTests {
    @Test func `a list that is written as a repeated name is told how to be written`() {
        let faults = RepeatedNames.faults(
            in: Array(#"{"mount": "/a=http://a.example/", "port": 1, "mount": "x"}"#.utf8))
        #expect(faults == [#"names 'mount' twice; write a list: "mount": ["A", "B"]"#])
    }

    @Test func `a name that is given three times is one error`() {
        let text = #"{"cache-size": "1GB", "cache-size": "2GB", "cache\u002dsize": "3GB"}"#
        #expect(
            RepeatedNames.faults(in: Array(text.utf8))
                == ["names 'cache-size' twice; keep one of them"])
    }

    @Test func `origins and their settings are looked through`() {
        let text = #"""
            {"origins": {
                "a.example": {"policy": "rfc", "keys": "off", "policy": "media"},
                "b.example": {"policy": "rfc"}, "b.example": {"keys": "off"}}}
            """#
        #expect(
            RepeatedNames.faults(in: Array(text.utf8)) == [
                "names 'b.example' twice in 'origins'; keep one of them",
                "names 'policy' twice in 'a.example'; keep one of them",
            ])
    }

    @Test(arguments: ["", "[1, 1]", #"{"port": 1, "Port": 2}"#, #"{"a": {"port": 1}, "port": 2}"#])
    func `other texts have none`(text: String) {
        #expect(RepeatedNames.faults(in: Array(text.utf8)).isEmpty)
    }

    @Test(arguments: ["", "\u{FEFF}"])
    func `a file with a repeated name is refused`(mark: String) async throws {
        let folder = try makeTemporaryFolder("repeated-names-tests")
        defer { removeTree(folder) }
        let path = folder + "/c.json"
        let text = mark + #"{"cache-size": "1GB", "cache-size": "2GB"}"#
        try replaceFile(path, with: Array(text.utf8), in: folder)
        let error = await #expect(throws: ConfigurationError.self) {
            try await DaemonConfiguration(scalars: [:], lists: [:], file: path)
        }
        let fault = "the file \(path) names 'cache-size' twice; keep one of them"
        #expect(error?.faults == [fault])
    }
}
