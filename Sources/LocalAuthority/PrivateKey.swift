// Private keys on P-256, and PEM conversion through libcrypto.
import COpenSSL

/// An error of libcrypto: the failed call, and libcrypto's reason (ERR_get_error(3)).
package struct LibcryptoError: Error, Equatable, Sendable, CustomStringConvertible {
    package let call: String
    package let reason: String

    /// Takes the thread's earliest error, and clears the others.
    init(_ call: String) {
        var text = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        ERR_clear_error()
        ERR_error_string_n(code, &text, text.count)
        self.call = call
        reason =
            code == 0
            ? "no reason given"
            : String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package var description: String { "libcrypto: \(call) failed: \(reason)" }
}

/// A private key; libcrypto wipes and frees it with the last reference.
package final class PrivateKey {
    let pointer: OpaquePointer

    init(taking pointer: OpaquePointer) { self.pointer = pointer }

    deinit { EVP_PKEY_free(pointer) }

    /// Creates a key on P-256 (FIPS 186-5), which every TLS client supports.
    package static func make() throws(LibcryptoError) -> PrivateKey {
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else {
            throw LibcryptoError("EVP_PKEY_CTX_new_from_name")
        }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1,
            EVP_PKEY_generate(context, &key) == 1, let key
        else { throw LibcryptoError("EVP_PKEY_generate") }
        return PrivateKey(taking: key)
    }

    /// Reads a key without a passphrase from PEM; nil for anything else.
    package init?(pem: [UInt8]) {
        // Without this callback libcrypto would prompt for a passphrase on the terminal.
        let key = PEM.read(pem) { PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }
        ERR_clear_error()
        guard let key else { return nil }
        pointer = key
    }

    /// Returns the key as PKCS #8 in PEM (RFC 5958, RFC 7468).
    package func pem() throws(LibcryptoError) -> [UInt8] {
        let bytes = PEM.written {
            PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil) == 1
        }
        guard let bytes else { throw LibcryptoError("PEM_write_bio_PKCS8PrivateKey") }
        return bytes
    }
}

/// Buffers in memory that libcrypto reads from and writes to (BIO_s_mem(3)).
enum PEM {
    static func read<Value>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Value?) -> Value? {
        bytes.withUnsafeBytes { buffer in
            guard let count = CInt(exactly: buffer.count), count > 0,
                let bio = BIO_new_mem_buf(buffer.baseAddress, count)
            else { return nil }
            defer { BIO_free(bio) }
            return body(bio)
        }
    }

    /// Returns the bytes that `body` writes; nil if it fails or memory is short.
    static func written(_ body: (OpaquePointer) -> Bool) -> [UInt8]? {
        guard let bio = BIO_new(BIO_s_mem()) else { return nil }
        defer { BIO_free(bio) }
        guard body(bio), let count = CInt(exactly: BIO_ctrl_pending(bio)) else { return nil }
        guard count > 0 else { return [] }
        var isWhole = false
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
            isWhole = BIO_read(bio, buffer.baseAddress, count) == count
            filled = isWhole ? Int(count) : 0
        }
        return isWhole ? bytes : nil
    }
}
