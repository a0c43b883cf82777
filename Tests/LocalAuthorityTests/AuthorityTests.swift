// Certificates are verified as a TLS client does, by libcrypto.
import COpenSSL
import Glibc
import LocalAuthority
import Testing

/// Whether libcrypto accepts a PEM chain's first certificate for each of several names, trusting
/// only the first certificate of `authority`.
func isAccepted(
    _ server: [UInt8], for name: String, by authority: [UInt8], at now: Int64
) -> Bool {
    func read(_ pem: [UInt8]) -> OpaquePointer? {
        guard let bio = BIO_new_mem_buf(pem, CInt(pem.count)) else { return nil }
        defer { BIO_free(bio) }
        return PEM_read_bio_X509(bio, nil, nil, nil)
    }
    let leaf = read(server), root = read(authority)
    let store = X509_STORE_new(), context = X509_STORE_CTX_new()
    defer {
        X509_STORE_CTX_free(context)
        X509_STORE_free(store)
        X509_free(leaf)
        X509_free(root)
    }
    X509_STORE_add_cert(store, root)
    X509_STORE_CTX_init(context, store, leaf, nil)
    X509_STORE_CTX_set_default(context, "ssl_server")
    let parameters = X509_STORE_CTX_get0_param(context)
    X509_VERIFY_PARAM_set_time(parameters, time_t(now))
    X509_VERIFY_PARAM_set_flags(parameters, CUnsignedLong(X509_V_FLAG_X509_STRICT))
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, name) != 1 {
        X509_VERIFY_PARAM_set1_host(parameters, name, 0)
    }
    defer { ERR_clear_error() }
    return X509_verify_cert(context) == 1
}

struct AuthorityTests {
    static let now: Int64 = 1_800_000_000
    static let day: Int64 = 86_400

    @Test func `a certificate is accepted for each of its names and for no other`() throws {
        let authority = try Authority.make(name: "test", now: Self.now)
        let names = try ServerNames([
            "nas.home.arpa", "*.tv.home.arpa", "10.1.2.3", "fd00::7", "localhost",
        ])
        let server = try authority.issue(for: names, now: Self.now).certificate.pem()
        let root = try authority.certificate.pem()
        for name in [
            "nas.home.arpa", "NAS.home.arpa", "a.tv.home.arpa", "10.1.2.3", "fd00::7", "localhost",
        ] {
            #expect(isAccepted(server, for: name, by: root, at: Self.now), "\(name)")
        }
        for name in [
            "home.arpa", "a.nas.home.arpa", "a.b.tv.home.arpa", "10.1.2.4", "fd00::8",
            "evil.example",
        ] {
            #expect(!isAccepted(server, for: name, by: root, at: Self.now), "\(name)")
        }
    }

    @Test func `a certificate of another authority is rejected`() throws {
        let names = try ServerNames(["nas"])
        let one = try Authority.make(name: "test", now: Self.now)
        let other = try Authority.make(name: "test", now: Self.now)
        let server = try one.issue(for: names, now: Self.now).certificate.pem()
        #expect(try !isAccepted(server, for: "nas", by: other.certificate.pem(), at: Self.now))
    }

    @Test func `a server certificate cannot sign another`() throws {
        let authority = try Authority.make(name: "test", now: Self.now)
        let server = try authority.issue(for: ServerNames(["nas"]), now: Self.now)
        #expect(!server.certificate.isAuthority)
        #expect(throws: AuthorityError.notAnAuthority) {
            try Authority(
                certificatePEM: server.certificate.pem(), keyPEM: server.key.pem(), now: Self.now)
        }
    }

    @Test
    func
        `validity begins a day early, and lasts 397 days for a server and ten years for an authority`()
        throws
    {
        let authority = try Authority.make(name: "test", now: Self.now)
        let server = try authority.issue(for: ServerNames(["nas"]), now: Self.now).certificate
        #expect(server.notBefore == Self.now - Self.day)
        #expect(server.notAfter == Self.now + 396 * Self.day - 1)
        #expect(authority.certificate.notBefore == Self.now - Self.day)
        #expect(authority.certificate.notAfter == Self.now + 3651 * Self.day - 1)
        let root = try authority.certificate.pem(), leaf = try server.pem()
        for (moment, isGood) in [
            (-Self.day, true), (-Self.day - 1, false), (396 * Self.day - 2, true),
            (396 * Self.day, false),
        ] {
            #expect(
                isAccepted(leaf, for: "nas", by: root, at: Self.now + moment) == isGood, "\(moment)"
            )
        }
    }

    @Test func `a server certificate expires no later than its authority`() throws {
        let authority = try Authority.make(name: "test", now: Self.now)
        let end = Self.now + 3651 * Self.day - 1
        let server = try authority.issue(for: ServerNames(["nas"]), now: end - Self.day)
        #expect(server.certificate.notAfter == end)
        #expect(throws: AuthorityError.expired) {
            _ = try authority.issue(for: ServerNames(["nas"]), now: end)
        }
    }

    @Test func `times after 2049 can be written`() throws {
        let late: Int64 = 2_600_000_000
        let authority = try Authority.make(name: "test", now: late)
        let server = try authority.issue(for: ServerNames(["nas"]), now: late).certificate
        #expect(server.notBefore == late - Self.day)
        #expect(try isAccepted(server.pem(), for: "nas", by: authority.certificate.pem(), at: late))
    }

    @Test
    func `names, subject and issuer are parsed, and two certificates have different digests`()
        throws
    {
        let authority = try Authority.make(name: "authority of näs\u{7}", now: Self.now)
        let names = try ServerNames(["nas", "10.1.2.3", "fd00::7"])
        let first = try authority.issue(for: names, now: Self.now).certificate
        let second = try authority.issue(for: names, now: Self.now).certificate
        #expect(first.names == ["nas", "10.1.2.3", "fd00::7"])
        #expect(first.subject == "O=Sluice, CN=nas")
        #expect(first.issuer == #"O=Sluice, CN=authority of n\C3\A4s\07"#)
        #expect(first.fingerprint.utf8.count == 95 && first.fingerprint != second.fingerprint)
    }

    @Test
    func `a name too long for a common name is still a subject alternative name`()
        throws
    {
        let long = Array(repeating: String(repeating: "a", count: 60), count: 4).joined(
            separator: ".")
        let authority = try Authority.make(name: long, now: Self.now)
        let server = try authority.issue(for: ServerNames([long]), now: Self.now).certificate
        #expect(server.names == [long])
        #expect(
            try isAccepted(server.pem(), for: long, by: authority.certificate.pem(), at: Self.now))
    }

    @Test func `an authority is loaded with its own key only`() throws {
        let one = try Authority.make(name: "test", now: Self.now)
        let other = try Authority.make(name: "test", now: Self.now)
        let certificate = try one.certificate.pem(), key = try one.identity.key.pem()
        let found = try Authority(certificatePEM: certificate, keyPEM: key, now: Self.now)
        #expect(found.certificate.fingerprint == one.certificate.fingerprint)
        #expect(throws: AuthorityError.foreignKey) {
            try Authority(
                certificatePEM: certificate, keyPEM: other.identity.key.pem(), now: Self.now)
        }
        #expect(throws: AuthorityError.expired) {
            try Authority(certificatePEM: certificate, keyPEM: key, now: Self.now + 4000 * Self.day)
        }
        for broken in [[], Array("rubbish".utf8), certificate.dropLast(40).map { $0 }, key] {
            #expect(throws: AuthorityError.self) {
                try Authority(certificatePEM: broken, keyPEM: key, now: Self.now)
            }
        }
        for broken in [[], Array("rubbish".utf8), key.dropLast(40).map { $0 }, certificate] {
            #expect(throws: AuthorityError.self) {
                try Authority(certificatePEM: certificate, keyPEM: broken, now: Self.now)
            }
        }
    }

    @Test func `a key with a passphrase is rejected without a prompt on the terminal`() throws {
        let authority = try Authority.make(name: "test", now: Self.now)
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        let plain = try authority.identity.key.pem()
        let source = BIO_new_mem_buf(plain, CInt(plain.count))
        let key = PEM_read_bio_PrivateKey(source, nil, nil, nil)
        BIO_free(source)
        defer { EVP_PKEY_free(key) }
        PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_256_cbc(), "secret", 6, nil, nil)
        var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(bio)))
        #expect(BIO_read(bio, &bytes, CInt(bytes.count)) == CInt(bytes.count))
        #expect(bytes.starts(with: Array("-----BEGIN ENCRYPTED PRIVATE KEY".utf8)))
        #expect(PrivateKey(pem: bytes) == nil)
    }
}
