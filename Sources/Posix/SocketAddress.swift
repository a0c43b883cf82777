// IPv4 and IPv6 socket addresses, numeric only: nothing here queries a name server.
import Glibc

/// A numeric socket address with a port.
package struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address's bytes in network order: 4 or 16.
    package let bytes: [UInt8]
    /// The port in host order, 0...65535.
    package let port: UInt16

    package init(bytes: [UInt8], port: UInt16) {
        precondition(bytes.count == 4 || bytes.count == 16, "an address has 4 or 16 bytes")
        self.bytes = bytes
        self.port = port
    }

    /// Parses `127.0.0.1`, `::1` or `[::1]`; nil if the text is not a numeric address.
    package init?(host: String, port: UInt16) {
        var text = host
        if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
        var v4 = in_addr()
        if inet_pton(AF_INET, text, &v4) == 1 {
            self.init(bytes: withUnsafeBytes(of: v4) { Array($0) }, port: port)
            return
        }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, text, &v6) == 1 else { return nil }
        self.init(bytes: withUnsafeBytes(of: v6) { Array($0) }, port: port)
    }

    /// Parses a numeric address in any form that resolvers accept as a host, such as `127.1`
    /// (inet_aton(3)); nil if the text is not one.
    package init?(spelled host: String, port: UInt16) {
        if let address = SocketAddress(host: host, port: port) {
            self = address
            return
        }
        var v4 = in_addr()
        guard inet_aton(host, &v4) != 0 else { return nil }
        self.init(bytes: withUnsafeBytes(of: v4) { Array($0) }, port: port)
    }

    /// Reads a `sockaddr` that the kernel or libcurl filled in; nil unless it is IPv4 or IPv6.
    ///
    /// The pointer is raw because the module that the C types belong to depends on the order in
    /// which a build reads the headers.
    package init?(_ raw: UnsafeRawPointer) {
        switch CInt(raw.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET:
            let found = raw.loadUnaligned(as: sockaddr_in.self)
            self.init(
                bytes: withUnsafeBytes(of: found.sin_addr) { Array($0) },
                port: UInt16(bigEndian: found.sin_port))
        case AF_INET6:
            let found = raw.loadUnaligned(as: sockaddr_in6.self)
            self.init(
                bytes: withUnsafeBytes(of: found.sin6_addr) { Array($0) },
                port: UInt16(bigEndian: found.sin6_port))
        default:
            return nil
        }
    }

    /// AF_INET or AF_INET6.
    package var family: CInt { bytes.count == 4 ? AF_INET : AF_INET6 }

    /// The bytes of an IPv4 or IPv4-mapped IPv6 address; nil for other IPv6 addresses.
    package var ipv4Bytes: [UInt8]? {
        if bytes.count == 4 { return bytes }
        guard bytes[0..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff else {
            return nil
        }
        return Array(bytes[12...])
    }

    /// True for 127.0.0.0/8 and ::1.
    package var isLoopback: Bool {
        if let v4 = ipv4Bytes { return v4[0] == 127 }
        return bytes[0..<15].allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// The address without the port, IPv6 without brackets.
    package var host: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        _ = bytes.withUnsafeBytes {
            inet_ntop(family, $0.baseAddress, &text, socklen_t(text.count))
        }
        return String(
            decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// `host:port`, IPv6 in brackets.
    package var description: String {
        bytes.count == 4 ? "\(host):\(port)" : "[\(host)]:\(port)"
    }

    /// Passes the address as a `sockaddr` with its length to `body` (bind(2)).
    package func withRaw<Result>(_ body: (UnsafeRawPointer, UInt32) -> Result) -> Result {
        if bytes.count == 4 {
            var raw = sockaddr_in()
            raw.sin_family = sa_family_t(AF_INET)
            raw.sin_port = port.bigEndian
            withUnsafeMutableBytes(of: &raw.sin_addr) { $0.copyBytes(from: bytes) }
            return withUnsafePointer(to: &raw) {
                body($0, UInt32(MemoryLayout<sockaddr_in>.size))
            }
        }
        var raw = sockaddr_in6()
        raw.sin6_family = sa_family_t(AF_INET6)
        raw.sin6_port = port.bigEndian
        withUnsafeMutableBytes(of: &raw.sin6_addr) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &raw) {
            body($0, UInt32(MemoryLayout<sockaddr_in6>.size))
        }
    }
}
