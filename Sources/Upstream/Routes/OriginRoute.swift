// The configured way to an origin: proxy, trust, client certificate, interface and addresses.
import Posix
package import URISyntax

/// The way to one origin; the plain one is direct, with the general certificates.
///
/// Nearly all origins use the plain one, and every transfer gets a route: settings are stored
/// separately, so that the plain route is copied and compared at no cost.
package struct OriginRoute: Sendable {
    /// What is configured for an origin.
    package struct Settings: Hashable, Sendable {
        /// The proxy to go through; nil for none.
        package var proxy: OriginProxy?
        /// A PEM file of trusted certificates that replaces the general ones.
        package var caFile: String?
        /// The certificate for an origin that requests one.
        package var certificate: ClientCertificate?
        /// The public keys of which the origin must have one.
        package var pins: PublicKeyPins?
        /// The interface or address of this machine that connections leave from; nil for any.
        package var interface: LocalInterface?
        /// The configured addresses of the origin; empty to look its name up.
        package var addresses: [FixedAddress] = []

        package init() {}
    }

    private final class Kept: Sendable {
        let settings: Settings

        init(_ settings: Settings) { self.settings = settings }
    }

    /// Nil for the plain route.
    private let kept: Kept?

    package init(_ settings: Settings = Settings()) {
        kept = settings == Settings() ? nil : Kept(settings)
    }

    package static let plain = OriginRoute()

    /// True if nothing is configured.
    var isPlain: Bool { kept == nil }

    var proxy: OriginProxy? { kept?.settings.proxy }
    var caFile: String? { kept?.settings.caFile }
    var certificate: ClientCertificate? { kept?.settings.certificate }
    var pins: PublicKeyPins? { kept?.settings.pins }
    var interface: LocalInterface? { kept?.settings.interface }
    var addresses: [FixedAddress] { kept?.settings.addresses ?? [] }
}

extension OriginRoute: Hashable {
    package static func == (left: OriginRoute, right: OriginRoute) -> Bool {
        left.kept === right.kept || left.kept?.settings == right.kept?.settings
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(kept?.settings) }
}

/// The routes to all origins.
package struct OriginRoutes: Sendable {
    private let find: (@Sendable (Origin) -> OriginRoute)?

    /// Makes routes that are all plain.
    package init() { find = nil }

    /// - Parameter find: must return the same route for the same origin each time.
    package init(_ find: @escaping @Sendable (Origin) -> OriginRoute) { self.find = find }

    package func route(to origin: Origin) -> OriginRoute { find?(origin) ?? .plain }
}

/// A network interface, or an address, of this machine.
package struct LocalInterface: Hashable, Sendable, CustomStringConvertible {
    package let description: String
    /// The value of CURLOPT_INTERFACE(3): with a type prefix, so that libcurl cannot confuse
    /// interface and address.
    let option: String

    /// Nil for a text that can be neither; does not check whether the machine has it, since tunnels
    /// come and go.
    package init?(_ text: String) {
        description = text
        if let address = SocketAddress(host: text, port: 0) {
            option = "host!\(address.host)"
            return
        }
        // netdevice(7): IFNAMSIZ is 16 with the terminating zero.
        let isName = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x21 }
        guard (1...15).contains(text.utf8.count), isName else { return nil }
        option = "if!\(text)"
    }
}

/// A configured address of an origin.
package struct FixedAddress: Hashable, Sendable, CustomStringConvertible {
    /// IPv4 or IPv6, without brackets.
    package let description: String
    /// True if using it needs permission.
    package let isPrivate: Bool

    package init?(_ text: some StringProtocol) {
        var text = String(text)
        if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
        guard let address = SocketAddress(host: text, port: 0) else { return nil }
        description = address.host
        isPrivate = !AddressPolicy().permits(address, host: "")
    }

    /// The form for CURLOPT_RESOLVE(3).
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
    /// The value of CURLOPT_PINNEDPUBLICKEY(3).
    package let description: String

    /// Nil unless all parts, separated by `;`, are `sha256//` and 32 bytes in base64.
    package init?(_ text: String) {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        guard parts.count <= 64, parts.allSatisfy({ Self.isPin($0) }) else { return nil }
        description = text
    }

    private static func isPin(_ text: Substring) -> Bool {
        let prefix = "sha256//"
        guard text.hasPrefix(prefix) else { return false }
        // 32 bytes are 42 full digits, one with two unused bits, and one padding character.
        let digits = Array(text.utf8.dropFirst(prefix.utf8.count))
        guard digits.count == 44, digits[43] == 0x3D else { return false }
        let isBase64 = digits.dropLast().allSatisfy {
            ASCII.isAlphanumeric($0) || $0 == 0x2B || $0 == 0x2F
        }
        return isBase64 && "AEIMQUYcgkosw048".utf8.contains(digits[42])
    }
}
