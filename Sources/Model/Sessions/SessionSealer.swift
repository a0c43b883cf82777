// Sessions in links: what a session needs travels with its links, so that each node of a cluster
// answers them (decision 33).
import COpenSSL
package import HLS
package import HTTP
import Numbers
package import Routing
import Store
import Synchronization

/// The content of a sealed session.
package struct SealedContent: Equatable, Sendable {
    /// The request headers given at entry.
    package var fields = Fields()
    /// The length of a time-shift window in seconds; nil for the origin's.
    package var window: Int?
    /// The highest variants that the session is offered.
    package var limit = VariantLimit.none
    /// The variables of the multivariant playlist that a link stands in (EXT-X-DEFINE).
    package var variables: [String: String] = [:]
}

/// A sealed session as its links carry it.
package struct SessionSeal: Sendable {
    /// The sealed content, safe in any URL; the same session and key make the same text.
    package let text: String
    /// The number of the key.
    package let keyID: UInt32
    /// Signs the links that carry it, so that nobody leads the session's headers elsewhere.
    package let signer: Signer
    package let variables: [String: String]

    /// The path that precedes the links: `/c/<text>`.
    package var path: String { "/\(Unicode.Scalar(Router.sealLetter))/\(text)" }

    /// The relative path that leads from one link with a seal to another link with the same seal.
    package static let relativePath = "../.."

    /// True if relative links in a response to this target carry this seal: the target is
    /// `/c/<text>/<role>/<handle>/<name>`.
    package func isShared(by target: String) -> Bool {
        let path = target.utf8.prefix { $0 != 0x3F && $0 != 0x23 }
        let start = self.path.utf8
        guard path.starts(with: start) else { return false }
        let rest = path.dropFirst(start.count)
        return rest.first == 0x2F && rest.last != 0x2F
            && rest.reduce(0) { $0 + ($1 == 0x2F ? 1 : 0) } == 3
    }
}

/// Why a sealed session cannot be used.
package enum SealFault: Error, Equatable {
    case malformed
    /// Sealed with a key that is not in force; has the name of the key.
    case unknownKey(String)
    /// Neither made with the key that it names nor for this session.
    case forged
}

/// Seals sessions for links, and opens them, with the keys of a cluster.
///
/// AES-256-SIV (RFC 5297): the nonce is a MAC of the content, so that the same session has the same
/// text on every node and at every time, which paths of live segments need, and nothing is lost if
/// a nonce comes twice. The session's ID is authenticated too.
///
/// Any thread may use it; each call takes some microseconds.
package final class SessionSealer: Sendable {
    /// A key with what is derived from it (HKDF-Expand, RFC 5869).
    private struct Key: Sendable {
        let id: UInt32
        let sealing: [UInt8]
        let signer: Signer

        init(_ key: ClusterKey, token: String?) {
            id = key.id
            sealing = Self.expanded(key, "sluice session seal", by: EVP_sha512(), count: 64)
            // A client that knows only a former token must not be able to sign links.
            signer = Signer(
                key: Self.expanded(
                    key, "sluice sealed link " + (token.map { "with " + $0 } ?? "without"),
                    by: EVP_sha256(), count: 32))
        }

        private static func expanded(
            _ key: ClusterKey, _ purpose: String, by method: OpaquePointer?, count: Int
        ) -> [UInt8] {
            var output = [UInt8](repeating: 0, count: count)
            var length = UInt32(count)
            let text = Array(purpose.utf8) + [1]
            let made = HMAC(
                method, key.secret, CInt(key.secret.count), text, text.count, &output, &length)
            precondition(made != nil && length == count, "libcrypto has no memory for a MAC")
            return output
        }
    }

    /// The most bytes of a session's content: base64 makes 4 KiB of it, a quarter of the head that
    /// balancers accept.
    package static let mostBytes = 3_040
    private static let longestText = (mostBytes + overhead + 2) / 3 * 4
    /// Key number and MAC.
    private static let overhead = 20

    private let keys: Mutex<[Key]>
    private let token: String?

    /// - Parameters:
    ///   - keys: the first one seals; not empty.
    ///   - token: the access token; nil for none.
    package init(keys: [ClusterKey], token: String?) {
        precondition(!keys.isEmpty, "a sealer has a key")
        self.token = token
        self.keys = Mutex(keys.map { Key($0, token: token) })
    }

    /// Takes other keys for links from now on.
    package func replace(keys new: [ClusterKey]) {
        guard !new.isEmpty else { return }
        let derived = new.map { Key($0, token: token) }
        keys.withLock { $0 = derived }
    }

    /// The number of the key that seals.
    package var firstID: UInt32 { keys.withLock { $0[0].id } }

    /// Returns the signer of links that carry this text.
    package func signer(of text: some StringProtocol) throws(SealFault) -> Signer {
        try key(of: Self.bytes(of: text)).signer
    }

    /// Seals a session with the first key; nil if its content is too long.
    package func seal(_ content: SealedContent, of session: SessionID) -> SessionSeal? {
        guard let bytes = Self.encoded(content),
            let (box, key) = box(bytes, context: Self.context("session", session.text))
        else { return nil }
        return SessionSeal(
            text: Self.text(of: box), keyID: key.id, signer: key.signer,
            variables: content.variables)
    }

    /// Opens the text of a link whose handle names this session.
    package func open(
        _ text: some StringProtocol, of session: SessionID
    ) throws(SealFault) -> (content: SealedContent, seal: SessionSeal) {
        let (plain, key) = try unboxed(
            Self.bytes(of: text), context: Self.context("session", session.text))
        guard let content = Self.decoded(plain) else { throw .malformed }
        let seal = SessionSeal(
            text: String(text), keyID: key.id, signer: key.signer, variables: content.variables)
        return (content, seal)
    }

    /// Seals the lines of a session's cookies for links; nil if they are too long for that.
    func seal(cookies lines: [String], of session: SessionID) -> String? {
        var bytes: [UInt8] = []
        for line in lines {
            guard Self.append(line, to: &bytes, atMost: Self.mostCookieBytes) else { return nil }
        }
        let found = box(bytes, context: Self.context("cookies", session.text))
        return found.map { Self.text(of: $0.box) }
    }

    /// Opens the cookies of a link; nil if they were not sealed for this session.
    func openCookies(_ text: Substring, of session: SessionID) -> [String]? {
        guard let bytes = try? Self.bytes(of: text),
            let found = try? unboxed(bytes, context: Self.context("cookies", session.text))
        else { return nil }
        var rest = found.plain[...]
        var lines: [String] = []
        while !rest.isEmpty {
            guard let line = Self.text(&rest) else { return nil }
            lines.append(String(decoding: line, as: UTF8.self))
        }
        return lines
    }

    /// Seals an object that only nodes shall read.
    ///
    /// - Parameters:
    ///   - bytes: its bytes.
    ///   - name: its name, under which alone it is opened.
    /// - Returns: nil if libcrypto has no memory.
    package func seal(object bytes: [UInt8], named name: String) -> [UInt8]? {
        box(bytes, context: Self.context("object", name))?.box
    }

    /// Opens an object; nil if it was not sealed under this name with a key that is in force.
    package func open(object bytes: some Collection<UInt8>, named name: String) -> [UInt8]? {
        let bytes = Array(bytes)
        guard bytes.count > Self.overhead else { return nil }
        return (try? unboxed(bytes, context: Self.context("object", name)))?.plain
    }

    /// True if an object was sealed with the key that seals now.
    package func isSealedFirst(object bytes: some Collection<UInt8>) -> Bool {
        bytes.starts(with: Self.bytes(of: firstID))
    }

    /// The most bytes of cookies in a link: each link of a list has them.
    private static let mostCookieBytes = 1_500

    /// Returns key number, MAC and ciphertext, by the first key; nil if libcrypto has no memory.
    private func box(_ bytes: [UInt8], context: [UInt8]) -> (box: [UInt8], key: Key)? {
        let key = keys.withLock { $0[0] }
        return Self.sealed(bytes, context: context, key: key.sealing).map {
            (Self.bytes(of: key.id) + $0, key)
        }
    }

    /// Returns the plain bytes of a box of more than `overhead` bytes.
    private func unboxed(
        _ box: [UInt8], context: [UInt8]
    ) throws(SealFault) -> (plain: [UInt8], key: Key) {
        let key = try key(of: box)
        guard let plain = Self.opened(Array(box[4...]), context: context, key: key.sealing) else {
            throw .forged
        }
        return (plain, key)
    }

    private static func text(of box: [UInt8]) -> String {
        var text: [UInt8] = []
        Base64URL.append(box, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private func key(of bytes: [UInt8]) throws(SealFault) -> Key {
        let id = bytes.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard let key = keys.withLock({ $0.first { $0.id == id } }) else {
            throw .unknownKey(ClusterKey.name(of: id))
        }
        return key
    }

    private static func bytes(of text: some StringProtocol) throws(SealFault) -> [UInt8] {
        guard text.utf8.count <= longestText, let bytes = Base64URL.decode(text.utf8),
            bytes.count > overhead
        else { throw .malformed }
        return bytes
    }

    private static func bytes(of id: UInt32) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: id >> $0) }
    }

    private static func context(_ what: String, _ name: String) -> [UInt8] {
        Array("sluice \(what) \(name)".utf8)
    }

    // MARK: The content's bytes

    private static let hasWindow: UInt8 = 1
    private static let hasHeight: UInt8 = 2
    private static let hasBandwidth: UInt8 = 4

    /// Returns flags, the numbers that these announce, fields (`<name>:<value>`) and variables,
    /// each text after its length; nil if they are too long.
    private static func encoded(_ content: SealedContent) -> [UInt8]? {
        var bytes: [UInt8] = [0]
        func add(_ number: Int?, _ flag: UInt8, count: Int) {
            guard let number else { return }
            bytes[0] |= flag
            for index in (0..<count).reversed() {
                bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index)))
            }
        }
        add(content.window, hasWindow, count: 3)
        add(content.limit.height, hasHeight, count: 4)
        add(content.limit.bandwidth, hasBandwidth, count: 4)
        let fields = content.fields.map { "\($0.name):\($0.value)" }
        let variables = content.variables.sorted { $0.key < $1.key }
            .flatMap { [$0.key, $0.value] }
        guard fields.count <= 255 else { return nil }
        bytes.append(UInt8(fields.count))
        for text in fields + variables {
            guard append(text, to: &bytes, atMost: mostBytes) else { return nil }
        }
        return bytes
    }

    /// Appends a text after its length; returns false if the bytes would be too many.
    private static func append(_ text: String, to bytes: inout [UInt8], atMost limit: Int) -> Bool {
        let count = text.utf8.count
        guard bytes.count + count + 2 <= limit else { return false }
        bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        bytes.append(UInt8(truncatingIfNeeded: count))
        bytes.append(contentsOf: text.utf8)
        return true
    }

    private static func decoded(_ bytes: [UInt8]) -> SealedContent? {
        var rest = bytes[...]
        var content = SealedContent()
        guard let flags = rest.popFirst(), flags & ~(hasWindow | hasHeight | hasBandwidth) == 0
        else { return nil }
        if flags & hasWindow != 0 {
            guard let window = number(&rest, count: 3, in: 1...WindowLength.longest) else {
                return nil
            }
            content.window = window
        }
        if flags & hasHeight != 0 {
            guard let height = number(&rest, count: 4, in: VariantLimit.range) else { return nil }
            content.limit.height = height
        }
        if flags & hasBandwidth != 0 {
            guard let bandwidth = number(&rest, count: 4, in: VariantLimit.range) else {
                return nil
            }
            content.limit.bandwidth = bandwidth
        }
        guard let count = rest.popFirst() else { return nil }
        for _ in 0..<count {
            guard let line = text(&rest), content.fields.append(line: line) else { return nil }
        }
        while !rest.isEmpty {
            guard let name = text(&rest), let value = text(&rest) else { return nil }
            content.variables[String(decoding: name, as: UTF8.self)] = String(
                decoding: value, as: UTF8.self)
        }
        return content
    }

    private static func number(
        _ rest: inout ArraySlice<UInt8>, count: Int, in range: ClosedRange<Int>
    ) -> Int? {
        let number = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
        guard rest.count >= count, range.contains(number) else { return nil }
        rest = rest.dropFirst(count)
        return number
    }

    private static func text(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.count >= 2 else { return nil }
        let count = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        guard rest.count >= 2 + count else { return nil }
        let text = rest.dropFirst(2).prefix(count)
        rest = rest.dropFirst(2 + count)
        return text
    }

    /// Returns the message for the client whose headers do not fit into links; nil if they fit.
    package static func fault(of fields: Fields) -> String? {
        let highest = VariantLimit.range.upperBound
        let content = SealedContent(
            fields: fields, window: WindowLength.longest,
            limit: VariantLimit(height: highest, bandwidth: highest))
        guard encoded(content) == nil else { return nil }
        let bytes = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        return "the session's \(fields.count) headers have \(bytes) bytes; its links carry them "
            + "and hold at most \(mostBytes - 300); send fewer or shorter headers"
    }

    // MARK: libcrypto

    private static let macLength = 16

    /// Returns MAC and ciphertext; nil if libcrypto has no memory.
    private static func sealed(_ bytes: [UInt8], context: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard let cipher = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(cipher) }
        var output = [UInt8](repeating: 0, count: bytes.count)
        var mac = [UInt8](repeating: 0, count: macLength)
        var length: CInt = 0
        guard EVP_EncryptInit_ex(cipher, method, nil, key, nil) == 1,
            EVP_EncryptUpdate(cipher, nil, &length, context, CInt(context.count)) == 1,
            EVP_EncryptUpdate(cipher, &output, &length, bytes, CInt(bytes.count)) == 1,
            EVP_EncryptFinal_ex(cipher, nil, &length) == 1,
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, CInt(macLength), &mac) == 1
        else { return nil }
        return mac + output
    }

    /// Returns the plain bytes of MAC and ciphertext; nil if these were not sealed with this key
    /// and context.
    private static func opened(_ box: [UInt8], context: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard box.count > macLength, let cipher = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(cipher) }
        var mac = Array(box[..<macLength])
        let bytes = Array(box[macLength...])
        var output = [UInt8](repeating: 0, count: bytes.count)
        var length: CInt = 0
        guard EVP_DecryptInit_ex(cipher, method, nil, key, nil) == 1,
            EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, CInt(macLength), &mac) == 1,
            EVP_DecryptUpdate(cipher, nil, &length, context, CInt(context.count)) == 1,
            EVP_DecryptUpdate(cipher, &output, &length, bytes, CInt(bytes.count)) == 1,
            EVP_DecryptFinal_ex(cipher, nil, &length) == 1
        else { return nil }
        return output
    }

    /// True if libcrypto has the cipher; false with providers that are restricted, such as FIPS.
    package static var isAvailable: Bool { method != nil }

    /// Fetched once (EVP_CIPHER_fetch(3)); libcrypto itself shares it between threads.
    nonisolated(unsafe) private static let method = EVP_CIPHER_fetch(nil, "AES-256-SIV", nil)
}
