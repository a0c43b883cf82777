// MACs of handles and digests of names, on OpenSSL's libcrypto.
import COpenSSL
import Store

/// Signs handles with a key that never leaves the process; HMAC-SHA-256 (RFC 2104).
package struct Signer: Sendable {
    private let key: [UInt8]

    /// A key derived from the access token, so that what is signed outlives a restart; each purpose has
    /// another.
    package init(token: String, for purpose: String = "handle") {
        key = SHA256Digest.of("sluice \(purpose) key " + token)
    }

    /// The MAC of `bytes`: 32 bytes.
    package func sign(_ bytes: [UInt8]) -> [UInt8] {
        var mac = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        _ = HMAC(EVP_sha256(), key, CInt(key.count), bytes, bytes.count, &mac, &length)
        return mac
    }

    /// Compares two texts without telling by its time where they differ.
    package static func isEqual(_ a: String, _ b: String) -> Bool {
        let left = SHA256Digest.of(a), right = SHA256Digest.of(b)
        return CRYPTO_memcmp(left, right, left.count) == 0
    }
}
