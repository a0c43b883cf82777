// The handle in a rewritten URL: session and origin URL, encoded URL-safe.
//
// A handle can be decoded after a restart without stored state, except in its short form, which
// names an entry of a persistent table and is used if the URL itself would be too long for players.
//
//     flags · session (6 bytes) · epoch · target · MAC
//     flags · MAC · session (6 bytes) · epoch · target
//
// The target is an origin URL without its scheme, one whose query is compressed, a 16-byte name of
// one, or the 8-byte name of a live list, whose links contain the origin URL in their query
// (`LivePlace`).
//
// The epoch (4 bytes) is present only if it is not the first, the MAC (12 bytes) only if the handle
// is signed; flags (one byte) tell which. The MAC also covers the use of the handle, so that a link
// signed for one role is not valid under the letter of another. Nodes of a cluster write it in
// front, where a balancer skips it as it skips the session, to hash the origin's path (decision 32).
//
// A URL with the stand-in of a mount's user information is always signed, also with a key that
// follows from the user information: else anybody could write the handle of any URL of that origin.
// Its MAC stands in front.
package import HLS
import Numbers
package import URISyntax

/// The identifier of a session: a number of 48 bits.
package struct SessionID: Hashable, Sendable {
    /// 0 to 2^48 - 1.
    package let number: UInt64

    package init(_ number: UInt64) {
        self.number = number & 0xFFFF_FFFF_FFFF
    }

    /// Takes the first 48 bits of a digest.
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
        String(number, radix: 16, width: 12)
    }

    /// Parses twelve hexadecimal digits, the form of `text`; nil for anything else.
    package init?(text: String) {
        guard text.utf8.count == 12, text.utf8.allSatisfy({ $0 != 0x2B && $0 != 0x2D }),
            let number = ExternalNumber.integer(text, in: 0...UInt64.max, radix: 16)
        else { return nil }
        self.init(number)
    }
}

/// The use that a handle is made for; covered by its signature.
package enum HandleUse: Hashable, Sendable {
    /// A link to a resource of this role.
    case link(ResourceRole)
    /// The host of a cloned pathway, as an argument of other links.
    case pathwayHost
    /// The origin URL in the query of a link into a live list: valid only after this path, which
    /// consists of the list's handle and the place in the list.
    case origin(ResourceRole, path: [UInt8])

    /// The bytes that precede the handle's own in the signed text.
    ///
    /// A handle starts with its flags, which are less than any byte of a path, so that the boundary
    /// is unambiguous; for those in front see `mac`.
    fileprivate var mark: [UInt8] {
        switch self {
        case .link(let role): [role.letter]
        case .pathwayHost: [UInt8(ascii: "H")]
        case .origin(let role, let path): [UInt8(ascii: "Q"), role.letter] + path
        }
    }
}

/// A long URL in a handle: its query is compressed, its path is not, so that a balancer reads it.
package struct PackedURL: Hashable, Sendable {
    package let scheme: Scheme
    /// Authority and path.
    package let start: [UInt8]
    /// The query after its `?`, compressed (RFC 1951).
    package let query: [UInt8]

    /// The byte between path and query.
    static let mark = UInt8(ascii: "?")

    package init(scheme: Scheme, start: [UInt8], query: [UInt8]) {
        self.scheme = scheme
        self.start = start
        self.query = query
    }
}

/// A decoded handle.
package struct Handle: Hashable, Sendable {
    /// The target of a handle.
    package enum Target: Hashable, Sendable {
        case url(AbsoluteURL)
        /// The name of a URL in the persistent table: 16 bytes.
        case name([UInt8])
        /// A live list, by its name.
        case list(UInt64)
        /// A long URL whose query is compressed.
        case packed(PackedURL)
    }

    /// Why a handle cannot be used.
    package enum Fault: Error, Hashable, Sendable {
        case malformed
        case badSignature
    }

    package let session: SessionID
    package let target: Target
    /// The epoch of the URL's name.
    package let epoch: Epoch
    /// True if it was read and is signed with the key of a mount's user information too.
    package let isSignedForUser: Bool

    package init(session: SessionID, target: Target, epoch: Epoch = .first) {
        self.session = session
        self.target = target
        self.epoch = epoch
        isSignedForUser = false
    }

    /// Origin URLs longer than this many bytes get the short form, which keeps the proxied URL
    /// under 1.5 kB.
    package static let longestURL = 1_000

    private enum Flag {
        static let https: UInt8 = 1
        static let name: UInt8 = 2
        static let signed: UInt8 = 4
        static let epoch: UInt8 = 8
        static let list: UInt8 = 16
        static let signedInFront: UInt8 = 32
        static let packed: UInt8 = 64
        /// Only with `signedInFront`.
        static let signedForUser: UInt8 = 128
    }

    /// The number of bytes of a MAC in a handle.
    package static let signatureLength = 12

    /// Appends the handle's text.
    ///
    /// - Parameters:
    ///   - output: the buffer to append to.
    ///   - use: the use of the handle.
    ///   - sign: returns the MAC of the use and the other bytes; nil when signing is off.
    ///   - isInFront: whether the MAC follows the flags instead of standing at the end.
    ///   - isForUser: whether `sign` also has the key of a mount's user information; the MAC is in
    ///     front then.
    package func append(
        to output: inout [UInt8], for use: HandleUse, sign: (([UInt8]) -> [UInt8])? = nil,
        isInFront: Bool = false, isForUser: Bool = false
    ) {
        var bytes: [UInt8]
        switch target {
        case .url(let url):
            bytes = Self.start(of: url.bytes, scheme: url.scheme, session: session, epoch: epoch)
        case .name(let name):
            bytes = Self.start(flags: Flag.name, session: session, epoch: epoch)
            bytes.append(contentsOf: name)
        case .list(let name):
            bytes = Self.start(flags: Flag.list, session: session, epoch: epoch)
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: name >> shift))
            }
        case .packed(let url):
            let flags = Flag.packed | (url.scheme == .https ? Flag.https : 0)
            let room = url.start.count + 1 + url.query.count
            bytes = Self.start(flags: flags, session: session, epoch: epoch, room: room)
            bytes.append(contentsOf: url.start)
            bytes.append(PackedURL.mark)
            bytes.append(contentsOf: url.query)
        }
        if let sign {
            if isInFront || isForUser {
                bytes[0] |= Flag.signedInFront | (isForUser ? Flag.signedForUser : 0)
                let mac = Self.mac(of: bytes, for: use, by: sign, isInFront: true)
                bytes.insert(contentsOf: mac, at: 1)
            } else {
                bytes[0] |= Flag.signed
                bytes.append(contentsOf: Self.mac(of: bytes, for: use, by: sign))
            }
        }
        Base64URL.append(bytes, to: &output)
    }

    /// Returns the first bytes of an unsigned handle of a URL that starts with `url`.
    static func start(
        of url: [UInt8], scheme: Scheme, session: SessionID, epoch: Epoch
    ) -> [UInt8] {
        let flags = scheme == .https ? Flag.https : 0
        var bytes = start(flags: flags, session: session, epoch: epoch, room: url.count)
        bytes.append(contentsOf: url[(scheme.name.utf8.count + 3)...])
        return bytes
    }

    private static func start(
        flags: UInt8, session: SessionID, epoch: Epoch, room: Int = 16
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(11 + room + signatureLength)
        bytes.append(epoch == .first ? flags : flags | Flag.epoch)
        session.append(to: &bytes)
        if epoch != .first { bytes.append(contentsOf: epoch.bytes) }
        return bytes
    }

    /// The flags of handles that are signed in front may equal a byte of a path, so that a zero,
    /// which no path contains, separates the use from them.
    private static func mac(
        of bytes: [UInt8], for use: HandleUse, by sign: ([UInt8]) -> [UInt8],
        isInFront: Bool = false
    ) -> ArraySlice<UInt8> {
        sign(use.mark + (isInFront ? [0] : []) + bytes).prefix(signatureLength)
    }

    /// Decodes a handle without checking a signature.
    ///
    /// - Parameter text: the handle as written in the URL.
    /// - Throws: `Fault.malformed`.
    package init(text: some Collection<UInt8>) throws(Fault) {
        try self.init(text: Array(text).span, for: .pathwayHost, sign: nil, signForUser: nil)
    }

    /// Decodes a handle.
    ///
    /// - Parameters:
    ///   - text: the handle as written in the URL.
    ///   - use: the use of the handle.
    ///   - sign: returns the expected MAC; nil accepts any.
    ///   - signForUser: returns what `sign` is for a handle that is signed with the key of a mount's
    ///     user information too, by its target; nil accepts any signature, and a result of nil none.
    ///   - requiresSignature: whether an unsigned handle is rejected.
    /// - Throws: `Fault`, which distinguishes malformed from badly signed handles.
    package init(
        text: Span<UInt8>, for use: HandleUse, sign: (([UInt8]) -> [UInt8])?,
        signForUser: ((Target) -> (([UInt8]) -> [UInt8])?)?, requiresSignature: Bool = false
    ) throws(Fault) {
        guard var bytes = Base64URL.decode(text), let flags = bytes.first else { throw .malformed }
        isSignedForUser = flags & Flag.signedForUser != 0
        let isInFront = flags & Flag.signed == 0 && flags & Flag.signedInFront != 0
        guard isInFront || !isSignedForUser else { throw .malformed }
        var signature: [UInt8]?
        if isInFront || flags & Flag.signed != 0 {
            guard bytes.count > 7 + Self.signatureLength else { throw .malformed }
            let start = isInFront ? 1 : bytes.count - Self.signatureLength
            let place = start..<(start + Self.signatureLength)
            signature = Array(bytes[place])
            bytes.removeSubrange(place)
        }
        if isSignedForUser {
            // The target tells with which key.
            (session, epoch, target) = try Self.content(of: bytes)
            guard let signForUser else { return }
            guard let sign = signForUser(target), let signature,
                Self.isEqual(
                    Self.mac(of: bytes, for: use, by: sign, isInFront: true), signature)
            else { throw .badSignature }
            return
        }
        if signature == nil, requiresSignature { throw .badSignature }
        if let sign, let signature,
            !Self.isEqual(
                Self.mac(of: bytes, for: use, by: sign, isInFront: isInFront), signature)
        {
            throw .badSignature
        }
        (session, epoch, target) = try Self.content(of: bytes)
    }

    /// Reads the bytes of a handle without its signature.
    private static func content(
        of bytes: [UInt8]
    ) throws(Fault) -> (session: SessionID, epoch: Epoch, target: Target) {
        guard bytes.count > 7 else { throw .malformed }
        let flags = bytes[0]
        let session = SessionID(number(in: bytes, at: 1, count: 6))
        var epoch = Epoch.first
        var start = 7
        if flags & Flag.epoch != 0 {
            guard bytes.count > 11 else { throw .malformed }
            epoch = Epoch(
                number: UInt32(truncatingIfNeeded: number(in: bytes, at: 7, count: 4)))
            start = 11
        }
        if flags & Flag.name != 0 {
            guard bytes.count == start + 16 else { throw .malformed }
            return (session, epoch, .name(Array(bytes[start...])))
        }
        if flags & Flag.list != 0 {
            guard bytes.count == start + 8 else { throw .malformed }
            return (session, epoch, .list(number(in: bytes, at: start, count: 8)))
        }
        if flags & Flag.packed != 0 {
            guard let mark = bytes[start...].firstIndex(of: PackedURL.mark) else {
                throw .malformed
            }
            let packed = PackedURL(
                scheme: flags & Flag.https != 0 ? .https : .http,
                start: Array(bytes[start..<mark]), query: Array(bytes[(mark + 1)...]))
            return (session, epoch, .packed(packed))
        }
        var url: [UInt8] = []
        url.reserveCapacity(bytes.count - start + 8)
        url.append(contentsOf: flags & Flag.https != 0 ? secureStart : plainStart)
        url.append(contentsOf: bytes[start...])
        do throws(URIError) {
            return (session, epoch, .url(try AbsoluteURL(bytes: url)))
        } catch {
            throw .malformed
        }
    }

    private static let plainStart = Array("http://".utf8)
    private static let secureStart = Array("https://".utf8)

    /// Returns the number in big-endian bytes.
    private static func number(in bytes: [UInt8], at start: Int, count: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in start..<(start + count) { number = number << 8 | UInt64(bytes[index]) }
        return number
    }

    /// Compares two MACs in constant time.
    private static func isEqual(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        guard a.count == b.count else { return false }
        return zip(a, b).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
