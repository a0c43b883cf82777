import ArgumentParser
import Model
import Posix
import Routing
import Testing

@testable import DaemonService

/// The options of `serve` as values, and as the arguments of another process.
@Suite struct ServeOptionsTests {
    @Test func `options passed to another process are parsed as they were given`() throws {
        let given = [
            "--port", "1234", "--allow-private", "--tcp-fast-open", "--bind", "127.0.0.1", "--bind",
            "::1", "--origin-cert", "*=a,b", "--config", "/tmp/x y.json", "--token", "a b c d e f",
        ]
        let options = try ServeOptions.parse(given)
        let again = try ServeOptions.parse(options.arguments)
        #expect(again.scalars == options.scalars && options.scalars.count == 4)
        #expect(again.lists == options.lists && options.lists["bind"] == ["127.0.0.1", "::1"])
        #expect(again.config == "/tmp/x y.json")
    }

    @Test func `every switch is listed as one, and nothing else is`() throws {
        let options = try ServeOptions.parse(
            ServeOptions.switchNames.sorted().map { "--\($0)" })
        #expect(Set(options.scalars.keys) == ServeOptions.switchNames)
        for name in Set(ServeOptions.names).subtracting(ServeOptions.switchNames) {
            #expect(throws: (any Error).self, "\(name)") { try ServeOptions.parse(["--\(name)"]) }
        }
    }

    @Test func `every option has a name in the configuration file`() {
        let help = ServeOptions.helpMessage(columns: 1_000)
        let options = Set(
            help.matches(of: /^ +--([a-z-]+)/.anchorsMatchLineEndings()).map { String($0.1) })
        #expect(options.count > 70)
        #expect(options.subtracting(ServeOptions.names) == ["config"])
    }

    @Test func `no shared store is used if it is off`() async throws {
        let configuration = try await DaemonConfiguration(
            scalars: ["shared-store": "off"], lists: [:], file: nil)
        #expect(configuration.proxy.sharedStore == nil)
    }

    @Test func `programs of this machine reach a daemon bound to all addresses over loopback`()
        async throws
    {
        let configuration = try await DaemonConfiguration(
            scalars: ["port": "9001", "allow-remote": "true"],
            lists: ["bind": ["0.0.0.0", "::"]], file: nil)
        let bases = configuration.localListeners.map(\.base)
        #expect(bases == ["http://127.0.0.1:9001", "http://[::1]:9001"])
        let own = try await DaemonConfiguration(scalars: ["port": "9001"], lists: [:], file: nil)
        #expect(own.localListeners.map(\.base) == ["http://127.0.0.1:9001"])
        let free = try await DaemonConfiguration(scalars: ["port": "0"], lists: [:], file: nil)
        #expect(free.localListeners.isEmpty)
    }

    /// The error of settings; empty without one.
    private func fault(
        _ scalars: [String: String], _ lists: [String: [String]] = [:]
    ) async -> String {
        do {
            _ = try await DaemonConfiguration(scalars: scalars, lists: lists, file: nil)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func `of the limits of hosts the most specific is the first`() async throws {
        let given = ["*.test=3", "Panel.TEST:8080=2", "*=256"]
        let configuration = try await DaemonConfiguration(
            scalars: [:], lists: ["origin-limit": given], file: nil)
        let limits = configuration.fixedSettings["origin-limit"]
        #expect(limits == #"["panel.test:8080=2", "*.test=3", "*=256"]"#)
    }

    @Test(arguments: [
        ("panel", "origin-limit is written HOST=N"), ("=2", "origin-limit is written HOST=N"),
        ("panel=0", "1...256"), ("panel=257", "1...256"), ("panel=two", "1...256"),
        ("a/b=2", "an origin is a host"),
    ])
    func `a limit of a host that is none is an error`(text: String, words: String) async {
        let error = await fault([:], ["origin-limit": [text]])
        #expect(error.contains(words), "\(error)")
    }

    @Test(arguments: [
        (["127.0.0.1", "localhost"], "bind names 127.0.0.1 twice"),
        (["127.0.0.1", "0.0.0.0"], "bind names 0.0.0.0, which includes 127.0.0.1"),
        (["::", "[::1]"], "bind names ::, which includes ::1"),
    ])
    func `addresses that take each other's port are an error`(
        binds: [String], words: String
    ) async {
        let text = await fault(["allow-remote": "true"], ["bind": binds])
        #expect(text.contains(words), "\(text)")
        let free = await fault(["allow-remote": "true", "port": "0"], ["bind": binds])
        #expect(free.isEmpty, "\(free)")
        let families = await fault(["allow-remote": "true"], ["bind": ["::", "127.0.0.1"]])
        #expect(families.isEmpty, "\(families)")
    }

    @Test(arguments: [
        "doh-url", "cors-origin", "allow-host", "host-name", "origin-policy", "key-rule", "resolve",
        "base-path", "mount", "origin-proxy", "pace", "only-origin",
    ])
    func `an error shows no password of a URL in a setting`(name: String) async {
        let value = "https://u:pAssw0rd@h.example/x"
        let isList = ServeOptions.listNames.contains(name)
        let text = await fault(isList ? [:] : [name: value], isList ? [name: [value]] : [:])
        #expect(text.contains(name) && !text.contains("pAssw0rd"), "\(text)")
    }

    @Test(arguments: [
        ("/own/=s3cret", "mount-header is written PATH=NAME: VALUE"),
        ("/none/=X-Api-Key: s3cret", "mount-header names '/none/', and no mount has this path"),
        ("/own/=Cookie: s3cret", "mount-header for /own/: the header Cookie cannot be the same"),
        ("/adm/=Authorization: s3cret", "mount-header for /adm/: its URL has user information"),
    ])
    func `an error of a mount's header names the option and shows no value`(
        header: String, words: String
    ) async {
        let mounts = ["/own/=https://h.example/", "/adm/=https://ann:pw@h.example/"]
        let text = await fault([:], ["mount": mounts, "mount-header": [header]])
        #expect(text.contains(words) && !text.contains("s3cret"), "\(text)")
    }

    @Test func `a mount that is refused is the only error, though it has a header`() async {
        let text = await fault(
            [:], ["mount": ["/m/=https://h.example/"], "mount-header": ["/m/=X-Api-Key: a"]])
        #expect(text.contains("'/m/'") && !text.contains("no mount has this path"), "\(text)")
    }

    @Test func `the headers of a mount are those with its path`() async throws {
        let configuration = try await DaemonConfiguration(
            scalars: [:],
            lists: [
                "mount": ["/own/=https://h.example/", "/own/b/=https://h.example/"],
                "mount-header": ["/own/=X-Api-Key: a", "/own/b=X-Api-Key: b", "/own=Referer: c"],
            ], file: nil)
        let headers = configuration.proxy.mounts.map { $0.headers.map(\.value) }
        #expect(headers == [["a", "c"], ["b"]])
    }

    @Test func `an error shows no query of a server's URL`() async {
        let text = await fault(["doh-url": "http://d.example/q?key=hidden"])
        #expect(text.contains("'http://d.example/q?***'"), "\(text)")
    }

    @Test(arguments: [
        ("read-ahead", "1KB", "1MB to 1000TB"), ("cache-size", "2000TB", "1MB to 1000TB"),
        ("min-free", "-1", "0 to 1000TB"), ("download-rate", "much", "1KB to 1000TB"),
    ])
    func `the error of a size names its range`(name: String, value: String, range: String) async {
        let text = await fault([name: value])
        #expect(text.contains("\(name) is a size from \(range), "), "\(text)")
    }

    @Test(
        arguments: [
            ("off", nil), ("1h", 3_600), ("30d", 2_592_000), ("8w", 4_838_400),
        ] as [(String, Int64?)])
    func `max-unused is off or a time`(text: String, seconds: Int64?) async throws {
        let configuration = try await DaemonConfiguration(
            scalars: ["max-unused": text], lists: [:], file: nil)
        #expect(configuration.maxUnused == seconds.map { Interval.seconds($0) })
    }

    @Test(arguments: ["30", "59m", "0s", "-1d", "1.5d", "100001w", "30 d", ""])
    func `a time in max-unused that is too short, or none, is an error`(text: String) async {
        let error = await fault(["max-unused": text])
        #expect(error.contains("max-unused is off or a time of at least 1h"), "\(error)")
    }

    @Test(arguments: [
        ("download-rate", "5Mb"), ("download-rate", "500kb"), ("pace", "2Mb"),
        ("cache-size", "10Gib"), ("read-ahead", "64000000b"),
    ])
    func `a size in bits is an error that names the units`(name: String, value: String) async {
        let text = await fault([name: value])
        #expect(text.contains("'\(value)'; units are KB, MB, "), "\(text)")
        let bytes = await fault([name: "\(value.dropLast())B"])
        #expect(bytes.isEmpty, "\(bytes)")
    }
}
