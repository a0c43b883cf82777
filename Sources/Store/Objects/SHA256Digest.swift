import COpenSSL

/// SHA-256 (FIPS 180-4), through libcrypto.
package enum SHA256Digest {
    /// Returns the 32 bytes of the digest of a text's UTF-8 bytes.
    package static func of(_ text: String) -> [UInt8] { of(Array(text.utf8)) }

    /// Returns the 32 bytes of the digest.
    package static func of(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { digest, count in
            bytes.withUnsafeBytes { write(of: $0, into: UnsafeMutableRawBufferPointer(digest)) }
            count = 32
        }
    }

    /// Writes the digest to a buffer of at least 32 bytes.
    static func write(
        of bytes: UnsafeRawBufferPointer, into digest: UnsafeMutableRawBufferPointer
    ) {
        precondition(digest.count >= 32, "a digest has 32 bytes")
        let start = digest.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard EVP_Digest(bytes.baseAddress, bytes.count, start, nil, method, nil) == 1 else {
            preconditionFailure("libcrypto has no SHA-256, or no memory for it")
        }
    }

    /// Fetched once: a fetch costs more than the digest of a small header (EVP_MD_fetch(3)).
    // A fetched method is immutable, and libcrypto itself shares it between threads.
    nonisolated(unsafe) private static let method = EVP_MD_fetch(nil, "SHA256", nil)
}
