import FixtureCDN
import Glibc
import ScenarioSupport
import Testing

/// Certificates, sessions and rejected connections on the TLS port.
extension Stories {
    @Suite(.tags(.timed)) struct CertificateTests {}
}

// MARK: Certificates

extension Stories.CertificateTests {
    @Test func `each name gets its certificate, other names the first`() throws {
        let one = try Identity("one.test", "127.0.0.1")
        let two = try Identity("*.two.test")
        let stage = try SecureStage([one, two])
        #expect(try stage.verify(one.authority, as: "one.test") == 0)
        #expect(try stage.verify(two.authority, as: "a.two.test") == 0)
        #expect(try stage.verify(one.authority, as: "a.two.test") == 60)
        #expect(try stage.verify(two.authority, as: "one.test") == 60)
        // The first one, which is not for this name.
        #expect(try stage.verify(one.authority, as: "three.test") == 60)
        #expect(try stage.verify(one.authority) == 0)
    }

    @Test(arguments: [Carriage.secure, .secureHTTP2])
    func `after SIGHUP new connections get the new certificate, and a download continues`(
        _ carriage: Carriage
    ) throws {
        let origin = try ScriptedOrigin()
        defer { origin.stop() }
        let body = FixtureCDN.syntheticBytes("a", 0..<400_000)
        let rest = Barrier("the rest of the body")
        let head = "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 400000\r\n\r\n"
        origin.connection(
            .expect("GET", "/a.ts"), .send(Array(head.utf8) + body.prefix(200_000)),
            .hold(until: rest), .send(Array(body.dropFirst(200_000))), .close)
        let old = try Identity("127.0.0.1")
        let other = try Identity("127.0.0.1")
        let before = old.authority
        // The origin sends nothing while connections are tried.
        let stage = try SecureStage([old], ["--stall-timeout", "60"])
        let file = try TemporaryFolder()
        let url = "\(stage.secureURL)/\(origin.url("/a.ts"))"
        let options = carriage.options(before)
        let output = file.file("body")
        let download = Background {
            try Tool.run(
                ["curl", "--silent", "--show-error", "--noproxy", "*", "--no-buffer"]
                    + options + ["--output", output, url])
        }
        #expect(eventually { (try? readFile(output))?.count == 200_000 })
        try old.replace(by: other)
        try stage.reload(untilLogged: "configuration reloaded")
        // The loops switch to it one after the other.
        #expect(try eventually { try stage.verify(other.authority) == 0 })
        let isSettled = try eventually {
            try (0..<8).allSatisfy { _ in try stage.verify(before) == 60 }
        }
        #expect(isSettled)
        rest.arrive()
        let result = try download.value()
        #expect(result.status == 0, "\(result.stderr)")
        #expect(isSame(try readFile(output), body))
    }

    @Test func `a file that is broken at SIGHUP leaves the old certificate in force`() throws {
        let identity = try Identity("127.0.0.1")
        let other = try Identity("127.0.0.1")
        let stage = try SecureStage([identity])
        let key = try readFile(identity.key)
        let faults: [(file: String, bytes: [UInt8], reason: String)] = [
            (identity.certificate, Array("text".utf8), "holds no certificate in PEM form"),
            (identity.key, Array(key.prefix(60)), "holds no private key in PEM form"),
            (identity.key, try readFile(other.key), "does not belong to the certificate"),
        ]
        for fault in faults {
            let good = try readFile(fault.file)
            try writeFile(fault.file, fault.bytes)
            try stage.reload(untilLogged: "configuration not changed")
            let said = stage.story.daemon.standardError
            #expect(said.contains(fault.reason) && said.contains(fault.file), "\(said)")
            for _ in 0..<4 { #expect(try stage.verify(identity.authority) == 0) }
            try writeFile(fault.file, good)
        }
        unlink(identity.key)
        try stage.reload(untilLogged: "configuration not changed")
        #expect(stage.story.daemon.standardError.contains("cannot be read: No such file"))
        #expect(try stage.verify(identity.authority) == 0)
    }

    @Test func `an access log whose folder is gone does not keep a new certificate out`() throws {
        let identity = try Identity("127.0.0.1")
        let other = try Identity("127.0.0.1")
        let folder = try TemporaryFolder()
        let logs = folder.makeFolder("logs")
        let stage = try SecureStage([identity], ["--access-log", logs + "/log"])
        #expect(rename(logs, folder.file("moved")) == 0)
        try identity.replace(by: other)
        try stage.reload(untilLogged: "configuration reloaded")
        #expect(try eventually { try stage.verify(other.authority) == 0 })
        let warning = "the next start of the daemon would fail: access-log \(logs)/log cannot be"
        #expect(eventually { stage.story.daemon.standardError.contains(warning) })
    }

    @Test func `a start with unusable files names them and the reason`() throws {
        let one = try Identity("one.test")
        let two = try Identity("two.test")
        let folder = try TemporaryFolder()
        try writeFile(folder.file("text"), Array("text".utf8))
        let secret = folder.file("sealed.key")
        let sealed = try Tool.run([
            "openssl", "pkey", "-in", one.key, "-out", secret, "-aes256", "-passout", "pass:x",
        ])
        #expect(sealed.status == 0)
        let chain = try readFile(one.certificate) + readFile(one.authority)
        try writeFile(folder.file("cut"), chain.dropLast(100))
        let (weak, weakKey) = (folder.file("weak.pem"), folder.file("weak.key"))
        let made = try Tool.run([
            "openssl", "req", "-x509", "-newkey", "rsa:512", "-nodes", "-subj", "/CN=weak",
            "-out", weak, "-keyout", weakKey,
        ])
        #expect(made.status == 0)
        let faults: [(options: [String], reason: String)] = [
            (["--tls-cert", weak, "--tls-key", weakKey], "\(weak) is refused by OpenSSL: "),
            (
                ["--tls-cert", one.certificate, "--tls-key", two.key],
                "the key in \(two.key) does not belong to the certificate in \(one.certificate)"
            ),
            (
                ["--tls-cert", folder.file("none"), "--tls-key", one.key],
                "\(folder.file("none")) cannot be read: No such file or directory"
            ),
            (["--tls-cert", folder.path, "--tls-key", one.key], "\(folder.path) cannot be read: "),
            (["--tls-cert", folder.file("text"), "--tls-key", one.key], "holds no certificate"),
            (["--tls-cert", folder.file("cut"), "--tls-key", one.key], "cut off or damaged"),
            (["--tls-cert", one.certificate, "--tls-key", folder.file("text")], "no private key"),
            (["--tls-cert", one.certificate, "--tls-key", secret], "passphrase is not supported"),
            (["--tls-cert", one.certificate], "needs a tls-cert and a tls-key for each"),
            (["--tls-key", one.key], "needs a tls-cert and a tls-key for each"),
            ([], "needs a tls-cert and a tls-key for each"),
        ]
        let program = try DaemonProcess.builtBinary()
        let start = [program, "serve", "--port", "0", "--cache-dir", folder.makeFolder("cache")]
        for fault in faults {
            let result = try Tool.run(
                start + ["--tls-port", "0"] + fault.options, within: patience)
            #expect(result.status == 78, "\(fault.options) \(result.status)")
            #expect(result.stderr.contains(fault.reason), "\(fault.options) \(result.stderr)")
        }
        let without = try Tool.run(start + one.options, within: patience)
        #expect(without.status == 78)
        #expect(without.stderr.contains("tls-cert and tls-key need a tls-port"))
    }
}

// MARK: Sessions

extension Stories.CertificateTests {
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a session is resumed, also after SIGHUP`(_ version: String) throws {
        let identity = try Identity("127.0.0.1")
        let stage = try SecureStage([identity], ["--loops", "2"])
        let folder = try TemporaryFolder()
        let ticket = folder.file("ticket")
        let first = try stage.client(version, "-sess_out", ticket)
        #expect(first.stdout.contains("\nNew, TLSv1"), "\(first.stdout) \(first.stderr)")
        #expect(first.stdout.contains("HTTP/1.1 200"))
        for _ in 0..<4 {
            // A client may use a ticket of TLS 1.3 once, and gets a new one each time.
            let next = try stage.client(version, "-sess_in", ticket, "-sess_out", ticket)
            #expect(next.stdout.contains("\nReused, TLSv1"), "\(next.stdout)")
            #expect(next.stdout.contains("HTTP/1.1 200"))
        }
        try identity.replace(by: Identity("127.0.0.1"))
        try stage.reload(untilLogged: "configuration reloaded")
        let isReplaced = try eventually {
            try (0..<8).allSatisfy { _ in try stage.verify(stage.authority) == 60 }
        }
        #expect(isReplaced)
        let resumed = try stage.story.stat("tls_handshakes_resumed_total")
        #expect(resumed == 4)
        let after = try stage.client(version, "-sess_in", ticket)
        #expect(after.stdout.contains("\nReused, TLSv1") && after.stdout.contains("HTTP/1.1 200"))
        #expect(try stage.story.stat("tls_handshakes_resumed_total") == 5)
    }
}

// MARK: What is refused

extension Stories.CertificateTests {
    @Test func `old versions, weak ciphers and unknown protocols are refused`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let refused: [[String]] = [
            ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"],
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384:@SECLEVEL=0"],
            ["-alpn", "spdy/3"],
        ]
        for options in refused {
            let address = String(stage.secureURL.dropFirst("https://".count))
            let result = try Tool.run(["openssl", "s_client", "-connect", address] + options)
            #expect(result.status != 0, "\(options)")
            // The daemon rejects it, by an alert.
            #expect(result.stderr.contains(" alert "), "\(options) \(result.stderr)")
        }
        // openssl(1) cannot offer RC4 any more: ECDHE-ECDSA, ECDHE-RSA and RSA with RC4 and SHA-1.
        let ciphers: [UInt8] = [0xC0, 0x07, 0xC0, 0x11, 0x00, 0x05]
        let answer = try stage.strayPlayer().sendRaw(clientHello(ciphers)).readBytes()
        #expect(answer.starts(with: [21, 3, 3, 0, 2, 2]), "\(answer)")
        let figure = try stage.story.settled("tls_handshakes_failed_total") { $0 == 6 }
        #expect(figure == 6)
        #expect(try stage.story.stat("tls_handshakes_full_total") == 0)
    }

    @Test func `a renegotiation in TLS 1 2 is refused`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let address = stage.secureURL.dropFirst("https://".count)
        // openssl s_client(1) starts a renegotiation at a line R.
        let script = "echo R | openssl s_client -connect \(address) -tls1_2"
        let result = try Tool.run(["timeout", "20", "sh", "-c", script])
        #expect(result.stderr.contains("no renegotiation"), "\(result.stderr)")
        #expect(try stage.story.stat("tls_handshakes_full_total") == 1)
    }

    @Test func `a handshake that comes byte by byte ends in time`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")], ["--head-timeout", "1"])
        let slow = try stage.strayPlayer().sendRaw([UInt8]())
        let hello = clientHello([0xC0, 0x2B])
        var sent = 0
        while sent < hello.count, (try? slow.send(hello[sent...sent])) != nil {
            sent += 1
            // The pace of the bytes: each is well within the limit, all of them are not.
            usleep(100_000)
        }
        // If each byte restarted the limit, the handshake would have completed.
        let isEnded = sent < hello.count
        #expect(isEnded)
        #expect(try stage.story.settled("tls_handshakes_failed_total") { $0 == 1 } == 1)
    }

    @Test func `plain HTTP on the TLS port gets an explanation`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")])
        let answer = try stage.strayPlayer().get("/api/health")
        #expect(answer.status == 400 && answer.text.contains("this port speaks TLS"))
        // Counted when the connection is closed, after the response.
        #expect(try stage.story.settled("tls_handshakes_failed_total") { $0 == 1 } == 1)
    }

    @Test func `bytes that are not a handshake, or half of one, hold no resources`() throws {
        let stage = try SecureStage([Identity("127.0.0.1")], ["--head-timeout", "1"])
        #expect(try stage.verify(stage.authority) == 0)
        #expect(try stage.story.settled("connections") { $0 == 1 } == 1)
        let before = stage.story.daemon.descriptorCount
        let hello = clientHello([0xC0, 0x2B])
        var random = SystemRandomNumberGenerator()
        let noise = (0..<5_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        let forms: [[UInt8]] = [
            [], [22], Array(hello.prefix(3)), Array(hello.prefix(hello.count / 2)), [128] + noise,
            [22, 3, 1, 64, 0] + noise, [22, 3, 1, 255, 255] + noise, [23, 3, 3, 0, 1, 0],
            Array(repeating: 0, count: 100),
        ]
        let pieces = repeatElement(forms, count: 5).flatMap(\.self)
        let players = try pieces.map { try stage.strayPlayer().sendRaw($0) }
        for (player, piece) in zip(players, pieces) {
            // Throws if the daemon does not close; it may send an alert before.
            #expect(try player.readBytes().count < 100, "\(piece.prefix(8))")
        }
        let failed = try stage.story.settled("tls_handshakes_failed_total") { $0 == 45 }
        #expect(failed == 45)
        #expect(eventually { stage.story.daemon.descriptorCount <= before })
        #expect(try stage.verify(stage.authority) == 0)
    }

    /// A first message of TLS 1.2 with these ciphers and no extensions (RFC 5246 section 7.4.1.2).
    private func clientHello(_ ciphers: [UInt8]) -> [UInt8] {
        let body: [UInt8] =
            [3, 3] + Array(repeating: 7, count: 32) + [0, 0, UInt8(ciphers.count)] + ciphers + [
                1, 0,
            ]
        let message = [1, 0, 0, UInt8(body.count)] + body
        return [22, 3, 1, 0, UInt8(message.count)] + message
    }
}
