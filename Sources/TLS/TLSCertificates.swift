// The certificates and keys of the listeners, read and checked before they are used.
import COpenSSL
import Glibc
import Posix

/// Why a certificate or its key cannot be used.
package enum TLSConfigurationError: Error, Equatable, CustomStringConvertible {
    /// The file cannot be read.
    case unreadable(path: String, reason: String)
    /// The file holds no certificate in PEM form.
    case noCertificate(path: String)
    /// The file holds no private key in PEM form, or one that needs a passphrase.
    case noKey(path: String)
    /// The file ends within a certificate, or holds one that cannot be decoded.
    case damagedChain(path: String)
    /// The key does not belong to the certificate.
    case mismatch(certificate: String, key: String)
    /// OpenSSL rejects the content.
    case refused(path: String, reason: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "\(path) cannot be read: \(reason)"
        case .noCertificate(let path):
            "\(path) holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
        case .noKey(let path):
            "\(path) holds no private key in PEM form; one with a passphrase is not supported"
        case .damagedChain(let path):
            "\(path) holds a certificate that is cut off or damaged; copy it anew"
        case .mismatch(let certificate, let key):
            "the key in \(key) does not belong to the certificate in \(certificate)"
        case .refused(let path, let reason): "\(path) is refused by OpenSSL: \(reason)"
        }
    }
}

/// The files of one certificate.
package struct TLSFiles: Sendable, Equatable {
    /// The path of the certificate, followed by its chain of intermediate certificates; PEM.
    package let certificate: String
    /// The path of its private key; PEM, without a passphrase.
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// The certificates of the listeners; each client gets the one that matches the requested name
/// (SNI, RFC 6066 section 3), or the first if none matches.
package struct TLSCertificates: Sendable {
    /// One certificate, its chain and its key, as the bytes of their files.
    struct Identity: Sendable {
        let files: TLSFiles
        let chain: [UInt8]
        let key: [UInt8]
    }

    let identities: [Identity]

    /// Reads and checks the files; blocks on the disk.
    ///
    /// - Parameter files: at least one.
    /// - Throws: `TLSConfigurationError` for the first that cannot be used.
    package init(_ files: [TLSFiles]) throws(TLSConfigurationError) {
        precondition(!files.isEmpty, "a listener needs a certificate")
        var identities: [Identity] = []
        for pair in files {
            let identity = Identity(
                files: pair, chain: try Self.read(pair.certificate), key: try Self.read(pair.key))
            // Loaded once as a check, so that errors show at start and not at the first client.
            _ = try TLSCredentials(identity)
            identities.append(identity)
        }
        self.identities = identities
        // OpenSSL decides in a context whether it accepts a certificate: by its level of security,
        // not with a short key, nor signed with SHA-1.
        _ = try TLSContext(self, keys: TicketKeys())
    }

    /// More than any chain or key takes.
    private static let mostBytes = 1 << 20

    private static func read(_ path: String) throws(TLSConfigurationError) -> [UInt8] {
        do throws(SystemError) {
            return try readWhole(path, atMost: mostBytes)
        } catch {
            throw .unreadable(path: path, reason: String(cString: strerror(error.code)))
        }
    }
}

/// One certificate with its chain and key, in OpenSSL's form.
final class TLSCredentials {
    let certificate: OpaquePointer
    let chain: [OpaquePointer]
    let key: OpaquePointer

    init(_ identity: TLSCertificates.Identity) throws(TLSConfigurationError) {
        ERR_clear_error()
        var (certificates, isWhole) = Self.certificates(in: identity.chain)
        guard isWhole else {
            for certificate in certificates { X509_free(certificate) }
            throw .damagedChain(path: identity.files.certificate)
        }
        guard !certificates.isEmpty else {
            throw .noCertificate(path: identity.files.certificate)
        }
        guard let key = Self.key(in: identity.key) else {
            for certificate in certificates { X509_free(certificate) }
            throw .noKey(path: identity.files.key)
        }
        certificate = certificates.removeFirst()
        chain = certificates
        self.key = key
        guard X509_check_private_key(certificate, key) == 1 else {
            throw .mismatch(certificate: identity.files.certificate, key: identity.files.key)
        }
    }

    deinit {
        X509_free(certificate)
        for certificate in chain { X509_free(certificate) }
        EVP_PKEY_free(key)
    }

    /// True if the certificate is valid for a host name (RFC 9525), wildcards included.
    func isFor(_ name: UnsafePointer<CChar>) -> Bool {
        X509_check_host(certificate, name, 0, 0, nil) == 1
    }

    /// Returns the certificates of a file, and whether it ends behind one: it may be in the middle of
    /// being copied.
    private static func certificates(in bytes: [UInt8]) -> ([OpaquePointer], isWhole: Bool) {
        reading(bytes) { source in
            var found: [OpaquePointer] = []
            // A chain has a few certificates; thousands mean that it is another kind of file.
            while found.count < 32, let next = PEM_read_bio_X509(source, nil, noPassphrase, nil) {
                found.append(next)
            }
            let code = ERR_peek_last_error()
            // No further block is an error too; the low bits of a code are its reason (err.h).
            return (found, code == 0 || CInt(code & 0x7F_FFFF) == PEM_R_NO_START_LINE)
        }
    }

    private static func key(in bytes: [UInt8]) -> OpaquePointer? {
        reading(bytes) { PEM_read_bio_PrivateKey($0, nil, noPassphrase, nil) }
    }

    private static func reading<Result>(
        _ bytes: [UInt8], _ body: (OpaquePointer?) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { buffer in
            let source = BIO_new_mem_buf(buffer.baseAddress, CInt(clamping: buffer.count))
            defer {
                BIO_free(source)
                ERR_clear_error()
            }
            return body(source)
        }
    }

}

/// A callback without a passphrase; by default OpenSSL would prompt for one on the terminal.
private func noPassphrase(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isWriting: CInt,
    _ argument: UnsafeMutableRawPointer?
) -> CInt { 0 }
