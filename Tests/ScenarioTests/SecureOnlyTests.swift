import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// A daemon that listens for TLS only.
extension Stories {
    @Suite(.tags(.crowded)) struct SecureOnlyTests {}
}

extension Stories.SecureOnlyTests {
    private func start(
        _ identity: Identity, _ folder: TemporaryFolder, _ options: [String] = []
    ) throws -> DaemonProcess {
        try DaemonProcess(
            ["serve", "--port", "off", "--tls-port", "0", "--allow-private", "--cache-dir"]
                + [folder.makeFolder("cache"), "--look-ahead", "off"] + identity.options + options)
    }

    private func curl(_ identity: Identity, _ url: String) throws -> CurlAnswer {
        try CurlAnswer(
            Tool.run(
                ["curl", "--silent", "--noproxy", "*", "--include"]
                    + Carriage.secureHTTP2.options(identity.authority) + [url]))
    }

    @Test(.enabled(if: Tool.exists("ss"), "needs ss of iproute2"))
    func `with the plain port off the daemon listens for TLS only, and links are https`() throws {
        let identity = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let cdn = FixtureCDN(folder: Fixture.path("media"))
        try cdn.start()
        defer { cdn.stop() }
        let daemon = try start(identity, folder, ["--absolute-urls"])
        let ready = daemon.standardOutput.split(separator: "\n")
        #expect(ready.count == 1 && daemon.baseURL.hasPrefix("https://127.0.0.1:"))
        let sockets = try Tool.run(["ss", "--no-header", "-lntp"]).stdout.split(separator: "\n")
        let own = Set(
            sockets.filter { $0.contains("pid=\(daemon.pid),") }
                .compactMap { $0.split(separator: " ").dropFirst(3).first })
        #expect(own.map { "https://\($0)" } == [daemon.baseURL])
        let list = try curl(identity, "\(daemon.baseURL)/\(cdn.url("/ts/master.m3u8"))")
        #expect(list.status == 200)
        let links = list.text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(!links.isEmpty && links.allSatisfy { $0.hasPrefix("\(daemon.baseURL)/p/") })
        #expect(try curl(identity, String(links[0])).status == 200)
    }

    @Test func `commands use a daemon behind TLS with a given authority`() throws {
        let identity = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let daemon = try start(identity, folder)
        let program = try DaemonProcess.builtBinary()
        let home = ["env", "XDG_CONFIG_HOME=\(folder.makeFolder("none"))"]
        let ask = [program, "stats", "--daemon", daemon.baseURL]
        let refused = try Tool.run(home + ask)
        #expect(refused.status == 5 && refused.stderr.contains("--daemon-ca"), "\(refused.stderr)")
        let authority = identity.authority
        for words in [
            home + ask + ["--daemon-ca", authority],
            home + ["SLUICE_DAEMON_CA=\(authority)"] + ask,
            home + [program, "ls", "--daemon", daemon.baseURL, "--daemon-ca", authority],
        ] {
            let answered = try Tool.run(words)
            #expect(answered.status == 0, "\(words) \(answered.stderr)")
        }
        // The files that `sluice tls init` makes in its default folder.
        _ = folder.makeFolder("config")
        let made = folder.makeFolder("config/sluice")
        try writeFile(made + "/authority.pem", try readFile(authority))
        let own = try Tool.run(["env", "XDG_CONFIG_HOME=\(folder.file("config"))"] + ask)
        #expect(own.status == 0, "\(own.stderr)")
    }

    @Test func `the plain port can be off only beside one for TLS, and check names both`() throws {
        let identity = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let check = [
            try DaemonProcess.builtBinary(), "check", "--cache-dir", folder.path, "--port",
        ]
        let alone = try Tool.run(check + ["off"])
        #expect(alone.status == 78 && alone.stderr.contains("port is off, which needs a tls-port"))
        let secure = ["--tls-port", "9443"] + identity.options
        let off = try Tool.run(check + ["off"] + secure).stdout
        #expect(off.contains(": listen for TLS on 127.0.0.1:9443, cache in"), "\(off)")
        let both = try Tool.run(check + ["9000", "--bind", "::1"] + secure).stdout
        #expect(both.contains(": listen on [::1]:9000, listen for TLS on [::1]:9443, cache in"))
    }
}
