// MACs of handles, on OpenSSL's libcrypto.
import COpenSSL
import Store

/// Signs handles with a key that never leaves the process; HMAC-SHA-256 (RFC 2104).
package struct Signer: Sendable {
    private let key: [UInt8]
    /// True if signatures stand in front in handles, where balancers skip them.
    package let isInFront: Bool

    /// Derives the key from the access token, so that signatures survive a restart; each purpose
    /// has its own key.
    package init(token: String, for purpose: String = "handle", isInFront: Bool = false) {
        key = SHA256Digest.of("sluice \(purpose) key " + token)
        self.isInFront = isInFront
    }

    /// Makes a signer whose signatures stand in front.
    init(key: [UInt8]) {
        self.key = key
        isInFront = true
    }

    /// Returns the MAC of `bytes`: 32 bytes.
    package func sign(_ bytes: [UInt8]) -> [UInt8] {
        var mac = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        _ = HMAC(EVP_sha256(), key, CInt(key.count), bytes, bytes.count, &mac, &length)
        return mac
    }

    /// Compares two texts in constant time.
    package static func isEqual(_ a: String, _ b: String) -> Bool {
        let left = SHA256Digest.of(a), right = SHA256Digest.of(b)
        return CRYPTO_memcmp(left, right, left.count) == 0
    }
}
