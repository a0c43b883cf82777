// A private certificate authority, and the server certificates that it signs (RFC 5280).
import COpenSSL
import Posix

/// A certificate and its private key.
package struct Identity {
    package let certificate: Certificate
    package let key: PrivateKey
}

/// The reason why no certificate was made.
package enum AuthorityError: Error, Equatable, CustomStringConvertible {
    case libcrypto(LibcryptoError)
    /// A certificate or its key cannot be read.
    case unreadable(String)
    case notAnAuthority
    case foreignKey
    case expired

    package var description: String {
        switch self {
        case .libcrypto(let error): "\(error)"
        case .unreadable(let what): what
        case .notAnAuthority: "the certificate is no authority's: it may not sign others"
        case .foreignKey: "the key is not the certificate's"
        case .expired: "the authority has expired"
        }
    }
}

/// A certificate authority with its key.
package struct Authority {
    package let identity: Identity

    /// Ten years including leap days, in seconds.
    package static let lifetime: Int64 = 3652 * day
    /// In seconds: Apple's systems accept at most 398 days from any authority; one day less is a
    /// margin for leap seconds and the like.
    package static let serverLifetime: Int64 = 397 * day
    /// Certificates are valid this many seconds before their creation, for clients with slow
    /// clocks.
    package static let slack: Int64 = day
    private static let day: Int64 = 86_400

    package var certificate: Certificate { identity.certificate }

    /// Creates an authority that signs server certificates but no further authority.
    ///
    /// - Parameters:
    ///   - name: the name that systems list it under; shortened to the length of a common name.
    ///   - now: seconds since 1970.
    /// - Returns: the authority with its key.
    /// - Throws: `AuthorityError.libcrypto`.
    package static func make(name: String, now: Int64) throws(AuthorityError) -> Authority {
        do throws(LibcryptoError) {
            let key = try PrivateKey.make()
            var draft = try Draft(key: key)
            try draft.setTimes(from: now - slack, through: now - slack + lifetime - 1)
            try draft.setSubject(name)
            try draft.setIssuer(draft.certificate)
            try draft.add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
            try draft.add(NID_key_usage, "critical,keyCertSign")
            try draft.add(NID_subject_key_identifier, "hash")
            try draft.sign(with: key)
            return Authority(identity: Identity(certificate: draft.certificate, key: key))
        } catch {
            throw .libcrypto(error)
        }
    }

    private init(identity: Identity) { self.identity = identity }

    /// Reads an authority from PEM, and checks that it can sign at `now`.
    package init(certificatePEM: [UInt8], keyPEM: [UInt8], now: Int64) throws(AuthorityError) {
        let found: [Certificate]
        do throws(LibcryptoError) {
            found = try Certificate.all(inPEM: certificatePEM)
        } catch {
            throw .unreadable("the certificate cannot be read: \(error)")
        }
        guard let certificate = found.first else { throw .unreadable("there is no certificate") }
        guard let key = PrivateKey(pem: keyPEM) else {
            throw .unreadable("there is no private key without a passphrase")
        }
        guard certificate.isAuthority else { throw .notAnAuthority }
        guard certificate.belongs(to: key) else { throw .foreignKey }
        guard let end = certificate.notAfter, end > now else { throw .expired }
        identity = Identity(certificate: certificate, key: key)
    }

    /// Creates a key and a certificate for a server; the certificate expires no later than the
    /// authority.
    package func issue(for names: ServerNames, now: Int64) throws(AuthorityError) -> Identity {
        let start = now - Self.slack
        guard let end = certificate.notAfter, end > now else { throw .expired }
        do throws(LibcryptoError) {
            let key = try PrivateKey.make()
            var draft = try Draft(key: key)
            try draft.setTimes(from: start, through: min(end, start + Self.serverLifetime - 1))
            try draft.setSubject(names.list[0].description)
            try draft.setIssuer(certificate)
            try draft.add(NID_basic_constraints, "critical,CA:FALSE")
            try draft.add(NID_key_usage, "critical,digitalSignature")
            try draft.add(NID_ext_key_usage, "serverAuth")
            try draft.add(NID_subject_key_identifier, "hash")
            try draft.add(NID_authority_key_identifier, "keyid:always")
            try draft.add(names)
            try draft.sign(with: identity.key)
            return Identity(certificate: draft.certificate, key: key)
        } catch {
            throw .libcrypto(error)
        }
    }
}

/// A certificate under construction.
private struct Draft {
    let certificate: Certificate
    private var issuer: Certificate
    private var pointer: OpaquePointer { certificate.pointer }

    /// Creates a draft of version 3 with a random serial number and a public key.
    init(key: PrivateKey) throws(LibcryptoError) {
        guard let new = X509_new() else { throw LibcryptoError("X509_new") }
        certificate = Certificate(taking: new)
        issuer = certificate
        // 126 random bits (RFC 5280 allows at most 20 bytes and a positive number, browsers require
        // at least 64 bits); the second highest bit is set, so that the length is always the same.
        var serial = [UInt8](repeating: 0, count: 16)
        guard RAND_bytes(&serial, CInt(serial.count)) == 1 else {
            throw LibcryptoError("RAND_bytes")
        }
        serial[0] = serial[0] & 0x3F | 0x40
        guard let number = BN_bin2bn(serial, CInt(serial.count), nil) else {
            throw LibcryptoError("BN_bin2bn")
        }
        defer { BN_free(number) }
        guard BN_to_ASN1_INTEGER(number, X509_get_serialNumber(new)) != nil,
            X509_set_version(new, CLong(X509_VERSION_3)) == 1,
            X509_set_pubkey(new, key.pointer) == 1
        else { throw LibcryptoError("X509_set_pubkey") }
    }

    /// Sets the first and the last second of validity, in seconds since 1970.
    func setTimes(from start: Int64, through end: Int64) throws(LibcryptoError) {
        guard let first = ASN1_TIME_set(nil, time_t(start)) else {
            throw LibcryptoError("ASN1_TIME_set")
        }
        defer { ASN1_STRING_free(first) }
        guard let last = ASN1_TIME_set(nil, time_t(end)) else {
            throw LibcryptoError("ASN1_TIME_set")
        }
        defer { ASN1_STRING_free(last) }
        guard X509_set1_notBefore(pointer, first) == 1, X509_set1_notAfter(pointer, last) == 1
        else { throw LibcryptoError("X509_set1_notBefore") }
    }

    func setSubject(_ name: String) throws(LibcryptoError) {
        guard let subject = X509_get_subject_name(pointer) else {
            throw LibcryptoError("X509_get_subject_name")
        }
        // RFC 5280, appendix A.1: 64 characters at most.
        for (field, value) in [("O", "Sluice"), ("CN", String(name.unicodeScalars.prefix(64)))] {
            let bytes = Array(value.utf8)
            guard
                X509_NAME_add_entry_by_txt(
                    subject, field, MBSTRING_UTF8, bytes, CInt(bytes.count), -1, 0) == 1
            else { throw LibcryptoError("X509_NAME_add_entry_by_txt") }
        }
    }

    mutating func setIssuer(_ issuer: Certificate) throws(LibcryptoError) {
        self.issuer = issuer
        guard X509_set_issuer_name(pointer, X509_get_subject_name(issuer.pointer)) == 1 else {
            throw LibcryptoError("X509_set_issuer_name")
        }
    }

    /// Adds an extension in the notation of x509v3_config(5); `value` never contains external text.
    func add(_ kind: CInt, _ value: String) throws(LibcryptoError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer.pointer, pointer, nil, nil, 0)
        guard let made = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
            throw LibcryptoError("X509V3_EXT_conf_nid")
        }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(pointer, made, -1) == 1 else { throw LibcryptoError("X509_add_ext") }
    }

    /// Adds the subjectAltName extension.
    func add(_ names: ServerNames) throws(LibcryptoError) {
        guard let stack = OPENSSL_sk_new_null() else { throw LibcryptoError("OPENSSL_sk_new_null") }
        // Frees the entries too.
        defer { GENERAL_NAMES_free(stack) }
        for name in names.list {
            guard let entry = GENERAL_NAME_new() else { throw LibcryptoError("GENERAL_NAME_new") }
            guard OPENSSL_sk_push(stack, entry) > 0 else {
                GENERAL_NAME_free(entry)
                throw LibcryptoError("OPENSSL_sk_push")
            }
            let (kind, bytes, text) =
                switch name {
                case .host(let host): (GEN_DNS, Array(host.utf8), ASN1_IA5STRING_new())
                case .address(let address): (GEN_IPADD, address, ASN1_OCTET_STRING_new())
                }
            guard let text else { throw LibcryptoError("ASN1_STRING_new") }
            // From here on the entry owns the text.
            GENERAL_NAME_set0_value(entry, kind, text)
            guard ASN1_STRING_set(text, bytes, CInt(bytes.count)) == 1 else {
                throw LibcryptoError("ASN1_STRING_set")
            }
        }
        guard
            X509_add1_ext_i2d(
                pointer, NID_subject_alt_name, UnsafeMutableRawPointer(stack), 0,
                CUnsignedLong(X509V3_ADD_DEFAULT)) == 1
        else { throw LibcryptoError("X509_add1_ext_i2d") }
    }

    func sign(with key: PrivateKey) throws(LibcryptoError) {
        guard X509_sign(pointer, key.pointer, EVP_sha256()) > 0 else {
            throw LibcryptoError("X509_sign")
        }
    }
}
