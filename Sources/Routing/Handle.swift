/// The handle in a rewritten URL: session and origin URL in one URL-safe word.
///
/// A handle needs no state to be read back after a restart, except in its short form, which names
/// an entry of a persistent table and is used where the URL itself would be too long for players.
///
///     flags (1 byte) · session (6 bytes) · origin URL without its scheme, or a 16-byte name · MAC
///
/// The MAC (12 bytes) is there only when signing is on.
package import URISyntax

/// What a player started from, as a number of 48 bits.
package struct SessionID: Hashable, Sendable {
    /// 0 to 2^48 - 1.
    package let number: UInt64

    package init(_ number: UInt64) {
        self.number = number & 0xFFFF_FFFF_FFFF
    }

    /// The first 48 bits of a digest.
    package init(digest: [UInt8]) {
        self.init(digest.prefix(6).reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Appends the number as six bytes.
    fileprivate func append(to output: inout [UInt8]) {
        for shift in stride(from: UInt64(40), through: 0, by: -8) {
            output.append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }

    /// Twelve hexadecimal digits.
    package var text: String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 12 - digits.count) + digits
    }
}

/// A handle, decoded.
package struct Handle: Hashable, Sendable {
    /// What the handle leads to.
    package enum Target: Hashable, Sendable {
        case url(AbsoluteURL)
        /// The name of a URL in the persistent table: 16 bytes.
        case name([UInt8])
    }

    /// Why a handle cannot be used.
    package enum Fault: Error, Hashable, Sendable {
        case malformed
        case badSignature
    }

    package let session: SessionID
    package let target: Target

    package init(session: SessionID, target: Target) {
        self.session = session
        self.target = target
    }

    /// Origin URLs longer than this many bytes get the short form, which keeps the proxied URL under 1.5 kB.
    package static let longestURL = 1_000

    private enum Flag {
        static let https: UInt8 = 1
        static let name: UInt8 = 2
        static let signed: UInt8 = 4
        static let known: UInt8 = 7
    }

    /// The number of bytes of a MAC in a handle.
    package static let signatureLength = 12

    /// Appends the handle's text.
    ///
    /// - Parameters:
    ///   - output: where the text goes.
    ///   - sign: gives the MAC of the bytes before it; nil when signing is off.
    package func append(to output: inout [UInt8], sign: (([UInt8]) -> [UInt8])? = nil) {
        var bytes: [UInt8] = []
        var flags: UInt8 = sign == nil ? 0 : Flag.signed
        switch target {
        case .url(let url):
            let scheme = url.scheme.name.utf8.count + 3
            if url.scheme == .https { flags |= Flag.https }
            bytes.reserveCapacity(7 + url.bytes.count + Self.signatureLength)
            bytes.append(flags)
            session.append(to: &bytes)
            bytes.append(contentsOf: url.bytes[scheme...])
        case .name(let name):
            bytes.append(flags | Flag.name)
            session.append(to: &bytes)
            bytes.append(contentsOf: name)
        }
        if let sign { bytes.append(contentsOf: sign(bytes).prefix(Self.signatureLength)) }
        Base64URL.append(bytes, to: &output)
    }

    /// Reads a handle's text.
    ///
    /// - Parameters:
    ///   - text: the handle as it stands in the URL.
    ///   - sign: gives the MAC that the bytes must carry; nil accepts any, as `sluice decode` does.
    ///   - requiresSignature: whether an unsigned handle is refused.
    /// - Throws: `Fault`, telling what cannot be read from what may not be used.
    package init(
        text: some Collection<UInt8>, sign: (([UInt8]) -> [UInt8])? = nil,
        requiresSignature: Bool = false
    ) throws(Fault) {
        guard var bytes = Base64URL.decode(text), let flags = bytes.first, flags & ~Flag.known == 0
        else { throw .malformed }
        if flags & Flag.signed != 0 {
            guard bytes.count > 7 + Self.signatureLength else { throw .malformed }
            let signature = bytes.suffix(Self.signatureLength)
            bytes.removeLast(Self.signatureLength)
            if let sign, !Self.isEqual(sign(bytes).prefix(Self.signatureLength), signature) {
                throw .badSignature
            }
        } else if requiresSignature {
            throw .badSignature
        }
        guard bytes.count > 7 else { throw .malformed }
        session = SessionID(digest: Array(bytes[1..<7]))
        let rest = bytes[7...]
        if flags & Flag.name != 0 {
            guard rest.count == 16 else { throw .malformed }
            target = .name(Array(rest))
            return
        }
        let scheme: Scheme = flags & Flag.https != 0 ? .https : .http
        do throws(URIError) {
            target = .url(try AbsoluteURL(bytes: Array((scheme.name + "://").utf8) + rest))
        } catch {
            throw .malformed
        }
    }

    /// Compares without telling by its time where two MACs differ.
    private static func isEqual(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        guard a.count == b.count else { return false }
        return zip(a, b).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
