// How an origin is reached where the configuration says so: proxy, trust, client certificate.
import Posix
package import URISyntax

/// The way to one origin; the plain one is direct, with the certificates that hold for all.
///
/// Nearly all origins have that, and each of their transfers is given one: what the others have lies
/// apart, so that the plain way is copied and compared at no cost.
package struct OriginRoute: Sendable {
    private struct Details: Hashable, Sendable {
        var proxy: OriginProxy?
        var caFile: String?
        var certificate: ClientCertificate?
        var pins: PublicKeyPins?
        var interface: LocalInterface?
        var addresses: [FixedAddress] = []
    }

    private final class Kept: Sendable {
        let details: Details

        init(_ details: Details) { self.details = details }
    }

    /// Nil for the plain way.
    private var kept: Kept?

    package init() {}

    package static let plain = OriginRoute()

    /// Whether nothing is set.
    var isPlain: Bool { kept == nil }

    /// The proxy to go through; nil for none.
    package var proxy: OriginProxy? {
        get { kept?.details.proxy }
        set { change { $0.proxy = newValue } }
    }

    /// A PEM file of trusted certificates in place of those that hold for all origins.
    package var caFile: String? {
        get { kept?.details.caFile }
        set { change { $0.caFile = newValue } }
    }

    /// What to answer an origin that asks for a certificate.
    package var certificate: ClientCertificate? {
        get { kept?.details.certificate }
        set { change { $0.certificate = newValue } }
    }

    /// The public keys of which the origin must have one.
    package var pins: PublicKeyPins? {
        get { kept?.details.pins }
        set { change { $0.pins = newValue } }
    }

    /// The interface or address of this machine that connections leave from; nil for any.
    package var interface: LocalInterface? {
        get { kept?.details.interface }
        set { change { $0.interface = newValue } }
    }

    /// The origin's addresses in place of those that its name has; empty for these.
    package var addresses: [FixedAddress] {
        get { kept?.details.addresses ?? [] }
        set { change { $0.addresses = newValue } }
    }

    private mutating func change(_ body: (inout Details) -> Void) {
        var details = kept?.details ?? Details()
        body(&details)
        kept = details == Details() ? nil : Kept(details)
    }
}

extension OriginRoute: Hashable {
    package static func == (left: OriginRoute, right: OriginRoute) -> Bool {
        left.kept === right.kept || left.kept?.details == right.kept?.details
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(kept?.details) }
}

/// The way to each origin.
package struct OriginRoutes: Sendable {
    private let find: (@Sendable (Origin) -> OriginRoute)?

    /// Every origin is reached directly.
    package init() { find = nil }

    /// - Parameter find: answers with the same route for the same origin each time.
    package init(_ find: @escaping @Sendable (Origin) -> OriginRoute) { self.find = find }

    package func route(to origin: Origin) -> OriginRoute { find?(origin) ?? .plain }
}

/// A network interface, or an address, of this machine.
package struct LocalInterface: Hashable, Sendable, CustomStringConvertible {
    package let description: String
    /// As CURLOPT_INTERFACE(3) has it: told what it is, libcurl does not take one for the other.
    let option: String

    /// Nil for what can be neither; whether the machine has it is not asked, for tunnels come and go.
    package init?(_ text: String) {
        description = text
        if let address = SocketAddress(host: text, port: 0) {
            option = "host!\(address.host)"
            return
        }
        // netdevice(7): IFNAMSIZ is 16 with the zero at the end.
        let isName = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x21 }
        guard (1...15).contains(text.utf8.count), isName else { return nil }
        option = "if!\(text)"
    }
}

/// An address that the configuration gives an origin.
package struct FixedAddress: Hashable, Sendable, CustomStringConvertible {
    /// IPv4 or IPv6, without brackets.
    package let description: String
    /// Whether it is one that needs leave to be used.
    package let isPrivate: Bool

    package init?(_ text: some StringProtocol) {
        var text = String(text)
        if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
        guard let address = SocketAddress(host: text, port: 0) else { return nil }
        description = address.host
        isPrivate = !AddressPolicy().permits(address, host: "")
    }

    /// As CURLOPT_RESOLVE(3) has it.
    var option: String {
        description.utf8.contains(0x3A) ? "[\(description)]" : description
    }
}

/// A client certificate and its key, both in PEM files.
package struct ClientCertificate: Hashable, Sendable {
    package let certificate: String
    package let key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}

/// SHA-256 hashes of public keys (SubjectPublicKeyInfo), one of which an origin must have.
package struct PublicKeyPins: Hashable, Sendable, CustomStringConvertible {
    /// As CURLOPT_PINNEDPUBLICKEY(3) has them.
    package let description: String

    /// Nil unless each of them is `sha256//` and 32 bytes in base64; `;` separates them.
    package init?(_ text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard parts.count <= 64, parts.allSatisfy({ Self.isPin($0) }) else { return nil }
        description = text
    }

    private static func isPin(_ text: Substring) -> Bool {
        let prefix = "sha256//"
        guard text.hasPrefix(prefix) else { return false }
        // 32 bytes are 42 whole digits, one with two bits of nothing, and the padding.
        let digits = Array(text.utf8.dropFirst(prefix.utf8.count))
        guard digits.count == 44, digits[43] == 0x3D else { return false }
        let isBase64 = digits.dropLast().allSatisfy {
            ASCII.isAlphanumeric($0) || $0 == 0x2B || $0 == 0x2F
        }
        return isBase64 && "AEIMQUYcgkosw048".utf8.contains(digits[42])
    }
}
