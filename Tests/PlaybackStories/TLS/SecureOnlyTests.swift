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
        let missing = try Tool.run(home + ask + ["--daemon-ca", folder.file("nofile")])
        #expect(missing.status == 1, "\(missing.stderr)")
        #expect(missing.stderr.contains("the file \(folder.file("nofile")) "), "\(missing.stderr)")
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

    @Test func `doctor and report find a daemon behind TLS or say what they do not trust`() throws {
        let identity = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let cdn = FixtureCDN(folder: Fixture.path("media"))
        try cdn.start()
        defer { cdn.stop() }
        // A daemon that doctor started with these settings would refuse the origin.
        let daemon = try start(identity, folder)
        let port = daemon.baseURL.split(separator: ":").last.map(String.init) ?? ""
        let settings =
            ["--port", "off", "--tls-port", port, "--cache-dir", folder.file("cache")]
            + identity.options
        let program = try DaemonProcess.builtBinary()
        let stranger = ["env", "XDG_CONFIG_HOME=\(folder.makeFolder("none"))"]
        let trusting = stranger + ["SLUICE_DAEMON_CA=\(identity.authority)"]
        let found = try Tool.run(
            trusting + [program, "doctor"] + settings + [cdn.url("/ts/master.m3u8")])
        #expect(found.status == 0, "\(found.stdout)")
        #expect(found.stdout.contains("a daemon of version"))
        #expect(found.stdout.contains("bytes are the same direct and through Sluice"))
        let report = [program, "report", "--force", "--output", folder.file("r.tar.gz")] + settings
        #expect(try Tool.run(trusting + report).stdout.contains("stats.json"))
        let unknown = try Tool.run(stranger + [program, "doctor"] + settings)
        #expect(unknown.stdout.contains("certificate is not trusted"), "\(unknown.stdout)")
        #expect(try Tool.run(stranger + report).stdout.contains("without figures"))
    }

    @Test func `the daemon of a configuration file is asked over TLS if it listens so only`()
        throws
    {
        let identity = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let daemon = try start(identity, folder)
        let port = daemon.baseURL.split(separator: ":").last.map(String.init) ?? ""
        let file = folder.file("sluice.json")
        let names = "\"tls-cert\":[\"\(identity.certificate)\"],\"tls-key\":[\"\(identity.key)\"]"
        try writeFile(file, "{\"port\":\"off\",\"tls-port\":\(port),\(names)}".utf8)
        let listed = try Tool.run([
            "env", "SLUICE_DAEMON_CA=\(identity.authority)", DaemonProcess.builtBinary(), "ls",
            "--json", "--config", file,
        ])
        #expect(listed.status == 0 && listed.stdout.contains("\"titles\""), "\(listed.stderr)")
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
        let unused = try Tool.run(check + ["9000"] + identity.options)
        #expect(unused.status == 0 && unused.stdout.contains("tls-cert has an effect only with"))
        #expect(!both.contains("tls-cert"), "\(both)")
        let same = try Tool.run(check + ["9443"] + secure)
        #expect(same.status == 78, "\(same.stdout)")
        #expect(same.stderr.contains("port and tls-port are both 9443"), "\(same.stderr)")
    }
}
