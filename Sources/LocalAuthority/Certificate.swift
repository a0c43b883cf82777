// X.509 certificates (RFC 5280), read and displayed.
import COpenSSL
import Glibc

/// One immutable certificate.
package final class Certificate {
    let pointer: OpaquePointer

    init(taking pointer: OpaquePointer) { self.pointer = pointer }

    deinit { X509_free(pointer) }

    /// The maximum number of certificates read from one file.
    private static let mostInFile = 100

    /// Returns the certificates of a PEM text in order, ignoring other contents; empty if there is
    /// none.
    ///
    /// - Throws: `LibcryptoError` if a certificate is invalid.
    package static func all(inPEM pem: [UInt8]) throws(LibcryptoError) -> [Certificate] {
        var found: [Certificate] = []
        ERR_clear_error()
        _ = PEM.read(pem) { bio -> Bool? in
            while found.count < mostInFile {
                // Prevents libcrypto from prompting for a passphrase on the terminal.
                guard let read = PEM_read_bio_X509(bio, nil, { _, _, _, _ in -1 }, nil) else {
                    break
                }
                found.append(Certificate(taking: read))
            }
            return nil
        }
        let code = ERR_peek_last_error()
        // The end of the text is reported as an error: no further start line.
        if code == 0 || reason(in: code) == PEM_R_NO_START_LINE {
            ERR_clear_error()
            return found
        }
        throw LibcryptoError("PEM_read_bio_X509")
    }

    /// Returns the certificate in PEM (RFC 7468).
    package func pem() throws(LibcryptoError) -> [UInt8] {
        guard let bytes = PEM.written({ PEM_write_bio_X509($0, pointer) == 1 }) else {
            throw LibcryptoError("PEM_write_bio_X509")
        }
        return bytes
    }

    package var subject: String { Self.text(of: X509_get_subject_name(pointer)) }
    package var issuer: String { Self.text(of: X509_get_issuer_name(pointer)) }

    /// The first second of validity, in seconds since 1970.
    package var notBefore: Int64? { Self.seconds(X509_get0_notBefore(pointer)) }
    /// The last second of validity, in seconds since 1970.
    package var notAfter: Int64? { Self.seconds(X509_get0_notAfter(pointer)) }

    /// True if the certificate states that it may sign certificates.
    package var isAuthority: Bool { X509_check_ca(pointer) == 1 }

    /// True if the certificate contains the public key of `key`.
    package func belongs(to key: PrivateKey) -> Bool {
        defer { ERR_clear_error() }
        return X509_check_private_key(pointer, key.pointer) == 1
    }

    /// The SHA-256 of the encoded certificate, in the usual notation: `AB:CD:...`.
    package var fingerprint: String {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: CUnsignedInt = 0
        guard X509_digest(pointer, EVP_sha256(), &digest, &count) == 1 else { return "" }
        return Self.hexadecimal(digest.prefix(Int(count)))
    }

    /// The DNS names and IP addresses of subjectAltName, safe to print on a terminal.
    package var names: [String] {
        guard let raw = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(raw)
        defer { GENERAL_NAMES_free(names) }
        return (0..<OPENSSL_sk_num(names)).compactMap { index in
            var kind: CInt = 0
            guard let name = OPENSSL_sk_value(names, index),
                let value = GENERAL_NAME_get0_value(
                    name.assumingMemoryBound(to: GENERAL_NAME.self), &kind)
            else { return nil }
            return Self.name(kind, value)
        }
    }

    private static func name(_ kind: CInt, _ value: UnsafeMutableRawPointer) -> String? {
        guard kind == GEN_DNS || kind == GEN_IPADD else { return nil }
        let string = value.assumingMemoryBound(to: ASN1_STRING.self)
        let bytes = Array(
            UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
        if kind == GEN_DNS {
            return ServerName.printable(String(decoding: bytes, as: UTF8.self), limit: 253)
        }
        guard bytes.count == 4 || bytes.count == 16 else { return "IP " + hexadecimal(bytes[...]) }
        return ServerName.address(bytes).description
    }

    /// Returns a distinguished name in the form of RFC 2253, with control characters and non-ASCII
    /// bytes escaped.
    private static func text(of name: OpaquePointer?) -> String {
        let flags =
            CUnsignedLong(ASN1_STRFLGS_ESC_2253 | ASN1_STRFLGS_ESC_CTRL | ASN1_STRFLGS_ESC_MSB)
            | CUnsignedLong(ASN1_STRFLGS_UTF8_CONVERT | ASN1_STRFLGS_DUMP_UNKNOWN)
            | CUnsignedLong(ASN1_STRFLGS_DUMP_DER) | CUnsignedLong(XN_FLAG_SEP_CPLUS_SPC)
        let bytes = PEM.written { X509_NAME_print_ex($0, name, 0, flags) >= 0 }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    private static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
        return Int64(timegm(&parts))
    }

    private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return digits.count == 1 ? "0" + digits : digits
        }.joined(separator: ":")
    }

    /// Returns the reason in a packed error code; ERR_GET_REASON(3) is an inline function of C.
    private static func reason(in code: CUnsignedLong) -> CInt { CInt(code & 0x7F_FFFF) }
}
