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

    /// Derives the key of links to a mount's origin from the mount's user information and header
    /// fields, so that they survive a restart and are valid on every node with the same mount.
    ///
    /// By PBKDF2 (RFC 8018), since whoever has a link can try passwords on its signature; takes
    /// some milliseconds.
    init(secret: String, origin: String) {
        let salt = Array("sluice mount link key \(origin)".utf8)
        var made = [UInt8](repeating: 0, count: 32)
        let isMade = PKCS5_PBKDF2_HMAC(
            secret, CInt(secret.utf8.count), salt, CInt(salt.count), 20_000, EVP_sha256(),
            32, &made)
        precondition(isMade == 1, "libcrypto has no memory for a key")
        self.init(key: made)
    }

    /// Returns the MAC of `bytes`: 32 bytes.
    package func sign(_ bytes: [UInt8]) -> [UInt8] {
        var mac = [UInt8](repeating: 0, count: 32)
        var length: UInt32 = 32
        _ = HMAC(EVP_sha256(), key, CInt(key.count), bytes, bytes.count, &mac, &length)
        return mac
    }

    /// Returns the MAC of `bytes` that takes this key and, if there is one, that of `other`.
    package func sign(_ bytes: [UInt8], with other: Signer?) -> [UInt8] {
        let mac = sign(bytes)
        return other?.sign(mac) ?? mac
    }

    /// Compares two texts in constant time.
    package static func isEqual(_ a: String, _ b: String) -> Bool {
        let left = SHA256Digest.of(a), right = SHA256Digest.of(b)
        return CRYPTO_memcmp(left, right, left.count) == 0
    }
}
