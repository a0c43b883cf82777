// The keys that encrypt session tickets (RFC 5077, RFC 8446 section 4.6.1).
import COpenSSL
import Posix
import Synchronization

/// The keys for session tickets, shared by all loops and kept when certificates change, so that
/// clients can resume their sessions on any loop.
///
/// A key encrypts new tickets for `period` and decrypts old ones for two more. Keys are never
/// stored: a thief of the disk cannot decrypt recorded sessions, and a restart costs each client
/// one full handshake.
package final class TicketKeys: Sendable {
    /// One key, identified by the name in its tickets.
    struct Key {
        let name: [UInt8]
        let cipher: [UInt8]
        let mac: [UInt8]
        let madeAt: Monotonic

        /// - Returns: nil if the system has no random bytes.
        init?(madeAt: Monotonic) {
            var random = [UInt8](repeating: 0, count: 80)
            guard RAND_bytes(&random, 80) == 1 else { return nil }
            name = Array(random[..<16])
            cipher = Array(random[16..<48])
            mac = Array(random[48...])
            self.madeAt = madeAt
        }
    }

    /// How long a key encrypts new tickets.
    static let period = Interval.seconds(12 * 3_600 as Int64)
    private static let kept = 3

    /// Looked up once: `EVP_aes_256_cbc` would look it up for each ticket (crypto(7)).
    ///
    /// Safe to share: libcrypto only reads a cipher, and this one is never freed.
    nonisolated(unsafe) private static let algorithm = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)

    private let keys = Mutex<[Key]>([])

    package init() {}

    /// Returns the key for new tickets at a time; nil if none can be created.
    func sealing(at now: Monotonic) -> Key? {
        keys.withLock { keys in
            if let newest = keys.first, now - newest.madeAt < Self.period { return newest }
            guard let made = Key(madeAt: now) else { return nil }
            keys.insert(made, at: 0)
            keys.removeLast(max(0, keys.count - Self.kept))
            return made
        }
    }

    /// Returns the key of a ticket at a time, and whether the ticket should be replaced; nil if the
    /// key is unknown or too old.
    func opening(_ name: UnsafeBufferPointer<UInt8>, at now: Monotonic) -> (Key, isOld: Bool)? {
        keys.withLock { keys in
            guard let key = keys.first(where: { $0.name.elementsEqual(name) }) else { return nil }
            let age = now - key.madeAt
            guard age < Interval(nanoseconds: Self.period.nanoseconds * Int64(Self.kept)) else {
                return nil
            }
            return (key, age >= Self.period)
        }
    }

    /// Prepares the encryption or decryption of one ticket
    /// (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)).
    ///
    /// - Returns: 1 to continue, 2 to continue and replace the ticket, 0 for a full handshake, -1
    ///   for a failure.
    func prepare(
        name: UnsafeMutablePointer<UInt8>, iv: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer, mac: OpaquePointer, isSealing: Bool, at now: Monotonic
    ) -> CInt {
        let key: Key
        var isOld = false
        if isSealing {
            guard let newest = sealing(at: now), RAND_bytes(iv, 16) == 1 else { return -1 }
            key = newest
            for (index, byte) in key.name.enumerated() { name[index] = byte }
        } else {
            let wanted = UnsafeBufferPointer(start: UnsafePointer(name), count: 16)
            guard let found = opening(wanted, at: now) else { return 0 }
            (key, isOld) = found
        }
        let started =
            isSealing
            ? EVP_EncryptInit_ex(cipher, Self.algorithm, nil, key.cipher, iv)
            : EVP_DecryptInit_ex(cipher, Self.algorithm, nil, key.cipher, iv)
        guard started == 1, sluice_ssl_start_hmac_sha256(mac, key.mac, key.mac.count) == 1 else {
            return -1
        }
        return isOld ? 2 : 1
    }
}
