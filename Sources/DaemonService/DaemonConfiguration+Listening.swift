import HTTPServer
package import Posix
import Reactor
import TLS

/// An address with a fixed port that a daemon listens on.
package struct LocalListener: Sendable {
    package let address: SocketAddress
    /// True for TLS.
    package let isSecure: Bool

    /// The base URL for programs of this machine.
    package var base: String {
        let scheme = isSecure ? "https" : "http"
        return switch address.host {
        case "0.0.0.0": "\(scheme)://127.0.0.1:\(address.port)"
        case "::": "\(scheme)://[::1]:\(address.port)"
        default: "\(scheme)://\(address)"
        }
    }
}

/// Where the daemon listens: addresses, ports, inherited sockets and certificates.
extension DaemonConfiguration {
    /// The addresses with a fixed port, those in the clear first.
    package var localListeners: [LocalListener] {
        let plain = addresses.map { LocalListener(address: $0, isSecure: false) }
        let secure = (secure?.addresses ?? []).map { LocalListener(address: $0, isSecure: true) }
        return (plain + secure).filter { $0.address.port != 0 }
    }

    /// Returns the base URLs of a daemon for programs of this machine, those in the clear first;
    /// none for a port that is not fixed.
    ///
    /// Only settings of addresses are read, for a command that asks the daemon: other settings name
    /// files that may be for the user of the daemon only, and other variables may be those of this
    /// user only. The file must be readable, with known names.
    ///
    /// - Parameter file: the path of the configuration file, if a flag gives it.
    /// - Returns: the base URLs.
    /// - Throws: `ConfigurationError`.
    static func localBases(file: String?) async throws -> [String] {
        var reader = try await SettingsReader(scalars: [:], lists: [:], file: file)
        let others = reader.faults.count
        let binds = readBinds(&reader)
        var listeners: [LocalListener] = []
        func add(_ port: UInt16, isSecure: Bool) {
            guard port != 0 else { return }
            listeners += binds.map {
                LocalListener(
                    address: SocketAddress(bytes: $0.bytes, port: port), isSecure: isSecure)
            }
        }
        if let port = readPort(&reader) { add(port, isSecure: false) }
        if reader.text("tls-port") != nil { add(readSecurePort(&reader), isSecure: true) }
        let faults = Array(reader.faults.dropFirst(others))
        guard faults.isEmpty else { throw ConfigurationError(faults: faults) }
        return listeners.map(\.base)
    }

    /// Every address that is listened on, in the clear and for TLS.
    package var listeningPlaces: [SocketAddress] {
        addresses + inherited.map(\.address) + (secure?.addresses ?? [])
            + (secure?.inherited ?? []).map(\.address)
    }

    mutating func readAddresses(
        _ reader: inout SettingsReader, _ handed: [InheritedListener], mayBeHanded: Bool
    ) {
        let binds = handed.isEmpty ? Self.readBinds(&reader) : []
        if handed.isEmpty, let port = Self.readPort(&reader) {
            addresses = binds.map { SocketAddress(bytes: $0.bytes, port: port) }
        }
        inherited = handed.filter { !Self.isSecure($0) }
        let secureOnes = handed.filter(Self.isSecure)
        if !handed.isEmpty, secureOnes.isEmpty, reader.text("tls-port") != nil {
            reader.fault(
                "tls-port has no effect, since the service manager hands over the sockets: enable sluice-tls.socket, or remove tls-port"
            )
        }
        readSecurity(&reader, binds, secureOnes, mayBeHanded: mayBeHanded)
        checkOwnClashes(&reader)
        let isRemoteAllowed = reader.isOn("allow-remote")
        if isShared, reader.text("token") == nil, !isRemoteAllowed {
            reader.fault(
                "binding beyond loopback lets others use this daemon: give a --token, or --allow-remote"
            )
        }
    }

    /// True if an inherited socket is for TLS, by its name: `tls`, or a unit's such as
    /// `sluice-tls.socket`.
    private static func isSecure(_ socket: InheritedListener) -> Bool {
        socket.name == "tls" || socket.name.hasSuffix("-tls.socket")
    }

    /// The addresses to listen on, without their ports.
    private static func readBinds(_ reader: inout SettingsReader) -> [SocketAddress] {
        reader.list("bind", default: ["127.0.0.1"]).compactMap { name in
            let numeric = name == "localhost" ? "127.0.0.1" : name
            if let address = SocketAddress(host: numeric, port: 0) { return address }
            reader.fault("bind is an IPv4 or IPv6 address, not '\(name)'")
            return nil
        }
    }

    /// Adds an error for listeners that would take each other's port: the start would blame another
    /// process.
    private func checkOwnClashes(_ reader: inout SettingsReader) {
        let secured = secure?.addresses ?? []
        if let port = addresses.first?.port, port != 0, port == secured.first?.port {
            reader.fault("port and tls-port are both \(port); choose another for one of them")
        }
        // Both ports are opened on the same addresses. Any free ports do not clash.
        let named: [[SocketAddress]] = [addresses, secured]
        let hosts = named.first { ($0.first?.port ?? 0) != 0 } ?? []
        var known: Set<[UInt8]> = []
        for host in hosts where !known.insert(host.bytes).inserted {
            reader.fault("bind names \(host.host) twice")
        }
        for host in hosts where host.bytes.contains(where: { $0 != 0 }) {
            let all = SocketAddress(bytes: host.bytes.map { _ in 0 }, port: host.port)
            guard known.contains(all.bytes) else { continue }
            reader.fault("bind names \(all.host), which includes \(host.host); remove one of them")
        }
    }

    /// The port for connections in the clear; nil where there is to be none.
    private static func readPort(_ reader: inout SettingsReader) -> UInt16? {
        guard reader.text("port")?.lowercased() == "off" else {
            return UInt16(reader.number("port", in: 0...65_535, default: 9_000))
        }
        if reader.text("tls-port") == nil {
            reader.fault("port is off, which needs a tls-port")
        }
        return nil
    }

    private static func readSecurePort(_ reader: inout SettingsReader) -> UInt16 {
        // Without the setting there is no such port; as a value, 0 is any free one.
        guard reader.text("tls-port") != nil else { return 0 }
        return UInt16(reader.number("tls-port", in: 0...65_535, default: 0))
    }

    /// Reads the certificates too: what is wrong with them is a fault of the configuration.
    private mutating func readSecurity(
        _ reader: inout SettingsReader, _ binds: [SocketAddress], _ handed: [InheritedListener],
        mayBeHanded: Bool
    ) {
        let certificates = reader.list("tls-cert")
        let keys = reader.list("tls-key")
        let isServed = reader.text("tls-port") != nil || !handed.isEmpty
        if !isServed {
            guard !certificates.isEmpty || !keys.isEmpty else { return }
            guard mayBeHanded else {
                // A tls-port would have no effect either.
                return reader.fault(
                    inherited.isEmpty
                        ? "tls-cert and tls-key need a tls-port"
                        : "tls-cert and tls-key have no effect, since the service manager hands over no socket for TLS: enable sluice-tls.socket, or remove them"
                )
            }
        }
        let port = Self.readSecurePort(&reader)
        guard !certificates.isEmpty, certificates.count == keys.count else {
            let what = handed.first.map { "the socket \($0.address) for TLS" } ?? "TLS"
            reader.fault(
                "\(what) needs a tls-cert and a tls-key for each; 'sluice tls init' makes a pair")
            return
        }
        let files = zip(certificates, keys).map { TLSFiles(certificate: $0, key: $1) }
        do throws(TLSConfigurationError) {
            let certificates = try TLSCertificates(files)
            guard isServed else { return }
            secure = SecureListening(
                addresses: binds.map { SocketAddress(bytes: $0.bytes, port: port) },
                inherited: handed, certificates: certificates)
        } catch {
            reader.fault("\(error)")
        }
    }
}
