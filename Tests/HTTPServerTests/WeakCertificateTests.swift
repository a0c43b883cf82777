// Certificates that OpenSSL reads, but does not accept for a server.
import COpenSSL
import Posix
import TLS
import Testing

struct WeakCertificateTests {
    private static func write(_ path: String, _ body: (OpaquePointer) -> CInt) throws {
        let file = try #require(BIO_new_file(path, "w"))
        defer { BIO_free(file) }
        try #require(body(file) == 1)
    }

    /// Writes a self-signed certificate and its RSA key of a number of bits.
    private static func make(bits: String, in folder: String) throws -> TLSFiles {
        let context = try #require(EVP_PKEY_CTX_new_from_name(nil, "RSA", nil))
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        try #require(EVP_PKEY_keygen_init(context) == 1)
        try #require(EVP_PKEY_CTX_ctrl_str(context, "rsa_keygen_bits", bits) == 1)
        try #require(EVP_PKEY_generate(context, &made) == 1)
        let key = try #require(made)
        defer { EVP_PKEY_free(key) }
        let certificate = try #require(X509_new())
        defer { X509_free(certificate) }
        X509_gmtime_adj(X509_getm_notBefore(certificate), 0)
        X509_gmtime_adj(X509_getm_notAfter(certificate), 3_600)
        try #require(X509_set_pubkey(certificate, key) == 1)
        try #require(X509_sign(certificate, key, EVP_sha256()) > 0)
        let files = TLSFiles(
            certificate: "\(folder)/\(bits).pem", key: "\(folder)/\(bits).key")
        try write(files.certificate) { PEM_write_bio_X509($0, certificate) }
        try write(files.key) { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
        return files
    }

    @Test func `a key that is too short is refused when the certificate is read`() throws {
        let folder = try makeTemporaryFolder("sluice-weak")
        defer { removeTree(folder) }
        _ = try TLSCertificates([try Self.make(bits: "2048", in: folder)])
        // Too short at every level of security but 0 (SSL_CTX_set_security_level(3)).
        let weak = try Self.make(bits: "512", in: folder)
        let error = #expect(throws: TLSConfigurationError.self) {
            _ = try TLSCertificates([weak])
        }
        guard case .refused(let path, let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(path == weak.certificate && !reason.isEmpty)
    }
}
