import Serving
import Testing

@testable import DaemonService

/// The report of a setting: its value, its source and how a change takes effect.
@Suite struct SettingReportTests {
    private func settings(
        _ scalars: [String: String] = [:], _ lists: [String: [String]] = [:]
    ) async throws -> [String: Setting] {
        let configuration = try await DaemonConfiguration(
            scalars: scalars, lists: lists, file: nil)
        return Dictionary(uniqueKeysWithValues: configuration.settings.map { ($0.name, $0) })
    }

    @Test func `every setting is listed once, reloadable ones as such`() async throws {
        let found = try await settings()
        #expect(Set(found.keys) == ServeOptions.names)
        #expect(Set(found.values.filter(\.isReloaded).map(\.name)) == ServeOptions.reloadedNames)
    }

    @Test(arguments: [
        ("port", "9000"), ("bind", "127.0.0.1"), ("cache-size", "10GB"), ("min-free", "512MB"),
        ("read-ahead", "32MB"), ("policy", "media"), ("keys", "standard"),
        ("mount-cache", "gateway"), ("concurrency", "probe"), ("look-ahead", "auto"),
        ("beyond-head", "stream"), ("pace", "off"), ("early-connect", "on"),
        ("log-level", "notice"), ("log-format", "text"), ("connect-timeout", "5"),
        ("allow-private", "false"), ("max-unused", "off"),
    ])
    func `a setting that is not given has its default`(
        name: String, value: String
    ) async throws {
        let found = try await settings()[name]
        #expect(found?.values == [value])
        #expect(found?.source == "default")
    }

    @Test func `a setting without a value or default has no values`() async throws {
        let found = try await settings()
        #expect(found["access-log"]?.values == [])
        #expect(found["mount"]?.values == [])
        // 0 would be any free port.
        #expect(found["tls-port"]?.values == [])
    }

    @Test func `secrets are masked`() async throws {
        let found = try await settings(
            ["token": "very-secret"],
            [
                "origin-proxy": ["*=http://user:pass@proxy.example:3128"],
                "mount": ["/own/=https://h.example/"],
                "mount-header": ["/own/=X-Api-Key: very-secret"],
            ])
        #expect(found["mount-header"]?.values == ["/own/=X-Api-Key: ***"])
        #expect(found["token"]?.values == ["***"])
        #expect(found["origin-proxy"]?.values == ["*=http://***@proxy.example:3128"])
        #expect(found["origin-proxy"]?.source == "flag")
    }
}
