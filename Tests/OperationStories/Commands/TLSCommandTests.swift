import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// `sluice tls`: other programs accept the certificates that it makes.
extension Stories {
    @Suite(.tags(.crowded)) struct TLSCommandTests {}
}

extension Stories.TLSCommandTests {
    @Test
    func `curl accepts a server with the certificate, by name and by address, and no other name`()
        throws
    {
        let folder = try TemporaryFolder()
        let made = try sluice(
            "tls", "init", "--folder", folder.path, "localhost", "127.0.0.1", "*.home.arpa")
        #expect(made.status == 0, "\(made.stderr)")
        #expect(made.stdout.contains("--tls-cert \(folder.file("server.pem"))"))
        let authority = folder.file("authority.pem")
        for name in ["localhost", "tv.home.arpa"] {
            let checked = try Tool.run([
                "openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", authority,
                "-verify_hostname", name, folder.file("server.pem"),
            ])
            #expect(checked.status == 0, "\(name): \(checked.stderr)")
        }
        let server = try SecureServer(folder)
        for host in ["localhost", "127.0.0.1"] {
            let answer = try server.get(host, authority: authority)
            #expect(
                answer.status == 0 && answer.stdout.hasPrefix("HTTP/1.0 200 ok"), "\(answer.stderr)"
            )
        }
        // 60: the peer's certificate cannot be authenticated (curl(1)).
        #expect(try server.get("tv.example", authority: authority).status == 60)
        let other = try TemporaryFolder()
        #expect(try sluice("tls", "init", "--folder", other.path, "localhost").status == 0)
        #expect(try server.get("localhost", authority: other.file("authority.pem")).status == 60)
    }

    @Test func `a second run adds a name under the same authority`() throws {
        let folder = try TemporaryFolder()
        #expect(try sluice("tls", "init", "--folder", folder.path, "a.test").status == 0)
        let authority = try readFile(folder.file("authority.pem"))
        let second = try sluice("tls", "init", "--folder", folder.path, "a.test", "b.test")
        #expect(second.status == 0 && second.stdout.contains("kept authority"))
        #expect(try readFile(folder.file("authority.pem")) == authority)
        let shown = try sluice("tls", "show", folder.file("server.pem")).stdout
        #expect(shown.contains("a.test, b.test") && shown.contains("(395 days left)"))
        let digest = try Tool.run([
            "openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in",
            folder.file("server.pem"),
        ]).stdout
        let fingerprint = try #require(digest.split(separator: "=").last).prefix { $0 != "\n" }
        #expect(shown.contains(fingerprint))
    }

    @Test func `files are written to the user's configuration folder by default`() throws {
        let folder = try TemporaryFolder()
        let made = try sluice("tls", "init", environment: ["XDG_CONFIG_HOME=\(folder.path)"])
        #expect(made.status == 0, "\(made.stderr)")
        let shown = try sluice("tls", "show", folder.file("sluice/server.pem")).stdout
        #expect(shown.contains("localhost, 127.0.0.1, ::1"))
    }

    @Test func `a wrong name, an unusable folder and a file without certificates are reported`()
        throws
    {
        let folder = try TemporaryFolder()
        let wrong = try sluice("tls", "init", "--folder", folder.path, "http://nas/")
        #expect(
            wrong.status == 64 && wrong.stderr.contains("neither a host name nor an IP address"))
        #expect(listFolder(folder.path).isEmpty)
        #expect(try sluice("tls", "init", "--folder", "/proc/sluice").status == 1)
        try writeFile(folder.file("text"), Array("no certificate".utf8))
        let shown = try sluice("tls", "show", folder.file("text"))
        #expect(shown.status == 1 && shown.stderr.contains("no PEM certificate in"))
    }
}

/// `openssl s_server` on a free port of loopback, answering each request with a page.
private final class SecureServer {
    private let child: ChildProcess
    private let port: UInt16

    init(_ folder: TemporaryFolder) throws {
        // With port 0 it prints the port that it was given.
        child = try ChildProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert",
            folder.file("server.pem"), "-key", folder.file("server.key"),
        ])
        var found: UInt16?
        let isReady = eventually { [child] in
            let text = String(decoding: child.standardOutput, as: UTF8.self)
            let line = text.split(separator: "\n").first { $0.hasPrefix("ACCEPT ") }
            found = line?.split(separator: ":").last.flatMap { UInt16($0) }
            return found != nil
        }
        guard isReady, let found else { throw ScenarioFailure("openssl s_server does not start") }
        port = found
    }

    deinit {
        child.kill(SIGTERM)
        _ = child.waitForExit()
    }

    func get(_ host: String, authority: String) throws -> Tool.Result {
        try Tool.run([
            "curl", "--silent", "--show-error", "--include", "--noproxy", "*", "--cacert",
            authority,
            "--resolve", "\(host):\(port):127.0.0.1", "https://\(host):\(port)/",
        ])
    }
}
