// A certificate is trusted if it is signed by a known authority.
import Glibc
import Posix
import Testing
import Upstream

/// A TLS server of the openssl program, which answers every request with its own page.
private final class TLSOrigin {
    let port: UInt16
    let folder: String
    private var process = pid_t(0)

    static let isAvailable = access("/usr/bin/openssl", X_OK) == 0

    init(demandsCertificate: Bool = false) throws {
        var template = Array("/tmp/upstream-tls-XXXXXX".utf8CString)
        folder = String(cString: try #require(mkdtemp(&template)))
        let any = try listen(on: SocketAddress(bytes: [127, 0, 0, 1], port: 0), sharingPort: false)
        port = try localAddress(of: any.number).port
        _ = consume any
        var made = try spawn([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate,
        ])
        var status: CInt = 0
        waitpid(made, &status, 0)
        made = try spawn(
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate, "-key", key,
                "-www", "-quiet",
            ] + (demandsCertificate ? ["-Verify", "1"] : []))
        process = made
    }

    var certificate: String { folder + "/certificate.pem" }
    private var key: String { folder + "/key.pem" }

    private func spawn(_ arguments: [String]) throws -> pid_t {
        let texts = (["openssl"] + arguments).map { strdup($0) } + [nil]
        defer { for text in texts { free(text) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for number in [0, 1, 2] as [CInt] {
            posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
        }
        var child = pid_t()
        let status = posix_spawn(&child, "/usr/bin/openssl", &actions, nil, texts, environ)
        try #require(status == 0)
        return child
    }

    func stop() {
        kill(process, SIGKILL)
        var status: CInt = 0
        waitpid(process, &status, 0)
        for path in [certificate, key] { unlink(path) }
        rmdir(folder)
    }
}

@Suite(.enabled(if: TLSOrigin.isAvailable)) struct TLSTests {
    /// Fetches until the server listens.
    private func fetch(_ harness: Harness, _ url: String) throws -> Record {
        var record = try harness.fetch(url)
        try comesTrue(pausing: .milliseconds(20)) {
            if record.failure?.kind == .connect { record = try harness.fetch(url) }
            return record.failure?.kind != .connect
        }
        return record
    }

    @Test func `a certificate is trusted by its authority, for its own name only`() throws {
        let origin = try TLSOrigin()
        let trusted = origin.certificate
        let harness = try Harness { $0.caFile = trusted }
        let record = try fetch(harness, "https://localhost:\(origin.port)/")
        #expect(record.status == 200 && record.failure == nil)
        #expect(try #require(record.timings?.hop[.tls]) > 0)
        let wrongName = try fetch(harness, "https://127.0.0.1:\(origin.port)/")
        #expect(wrongName.failure?.kind == .tls && wrongName.failure?.isRetryable == false)
        harness.stop()
        origin.stop()
    }

    @Test
    func `a handle resumes a session that another handle established`() throws {
        let origin = try TLSOrigin()
        let trusted = origin.certificate
        let harness = try Harness { $0.caFile = trusted }
        let url = "https://localhost:\(origin.port)/"
        #expect(try fetch(harness, url).status == 200)
        // It uses the only idle handle.
        let silent = try TestOrigin {
            $0.holdOpen(); return .close
        }
        let busy = try harness.start(silent.url())
        busy.wait("the start") { $0.starts == 1 }
        let trace = TransferTrace()
        let record = try harness.fetch(url) { $0.trace = trace }
        #expect(record.status == 200)
        let times = try #require(trace.report?.latest)
        #expect(times.connection == .new && times.handshake == .resumed)
        #expect(try #require(harness.figures()).connections.full == 1)
        busy.act { $0.cancel() }
        busy.wait()
        harness.stop()
        silent.stop()
        origin.stop()
    }

    @Test func `a certificate of an unknown authority is rejected with the reason`() throws {
        let origin = try TLSOrigin()
        let harness = try Harness()
        let record = try fetch(harness, "https://localhost:\(origin.port)/secret?token=x")
        #expect(record.failure?.kind == .tls && record.failure?.isRetryable == false)
        let message = record.failure?.message ?? ""
        #expect(message.contains("self-signed") && !message.contains("token"), "\(message)")
        harness.stop()
        origin.stop()
    }

    @Test func `an origin that demands a client certificate is told from a broken connection`()
        throws
    {
        let origin = try TLSOrigin(demandsCertificate: true)
        let trusted = origin.certificate
        let harness = try Harness { $0.caFile = trusted }
        let url = "https://localhost:\(origin.port)/"
        var record = try fetch(harness, url)
        // The alert is lost if the connection ends while the request is still being written.
        for _ in 0..<10 where record.failure?.kind == .reset { record = try fetch(harness, url) }
        let failure = try #require(record.failure)
        #expect(failure.kind == .tls && !failure.isRetryable, "\(failure)")
        #expect(failure.message.contains("certificate required"), "\(failure.message)")
        #expect(failure.advice.contains("--origin-cert localhost=CERT,KEY"), "\(failure.advice)")
        harness.stop()
        origin.stop()
    }
}
