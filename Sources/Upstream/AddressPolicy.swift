/// Which peers the daemon may connect to: no address of the local machine or network, in whatever
/// form it is written, unless that is allowed.
package import Posix

/// Decides on real socket addresses, after name lookup.
///
/// Sources: the IANA special-purpose registries (RFC 6890), RFC 6052 and RFC 8215 (NAT64),
/// RFC 3056 (6to4), RFC 4380 (Teredo).
package struct AddressPolicy: Sendable, Hashable {
    /// Lets loopback, private, link-local and shared addresses through.
    ///
    /// Cloud metadata services, multicast and the unspecified address stay refused.
    package var allowsPrivate: Bool
    /// Hosts in ASCII, as `AbsoluteURL.asciiHost` gives them, that may have any address.
    package var allowedHosts: Set<String>

    package init(allowsPrivate: Bool = false, allowedHosts: Set<String> = []) {
        self.allowsPrivate = allowsPrivate
        self.allowedHosts = Set(allowedHosts.map { $0.lowercased() })
    }

    /// Whether a connection to `address` may be used for `host`.
    package func permits(_ address: SocketAddress, host: String) -> Bool {
        if allowedHosts.contains(host.lowercased()) { return true }
        switch AddressClass(of: address) {
        case .global: return true
        case .local: return allowsPrivate
        case .never: return false
        }
    }
}

/// What an address reaches.
enum AddressClass: Hashable {
    /// The Internet.
    case global
    /// This machine or its network.
    case local
    /// What no origin is ever served from, or what gives away this machine's credentials.
    case never

    init(of address: SocketAddress) {
        let bytes = address.bytes
        self = bytes.count == 4 ? Self.classify4(bytes[...]) : Self.classify6(bytes)
    }

    private struct Block {
        let bytes: [UInt8]
        let bits: Int
        let kind: AddressClass

        init(_ bytes: [UInt8], _ bits: Int, _ kind: AddressClass) {
            self.bytes = bytes
            self.bits = bits
            self.kind = kind
        }

        func contains(_ address: ArraySlice<UInt8>) -> Bool {
            var left = bits
            for (mine, other) in zip(bytes, address) {
                if left <= 0 { break }
                let mask: UInt8 = left >= 8 ? 0xFF : ~(0xFF >> UInt8(left))
                if mine & mask != other & mask { return false }
                left -= 8
            }
            return true
        }
    }

    /// The first block that holds an address decides.
    private static let blocks4: [Block] = [
        Block([0], 8, .never),
        Block([169, 254, 169, 254], 32, .never),  // metadata of most clouds
        Block([169, 254, 170, 2], 32, .never),  // credentials of containers
        Block([100, 100, 100, 200], 32, .never),  // metadata inside the shared range
        Block([10], 8, .local),
        Block([100, 64], 10, .local),
        Block([127], 8, .local),
        Block([169, 254], 16, .local),
        Block([172, 16], 12, .local),
        Block([192, 0, 0], 24, .local),
        Block([192, 168], 16, .local),
        Block([198, 18], 15, .local),
        Block([224], 4, .never),
        Block([240], 4, .never),
    ]

    private static let blocks6: [Block] = [
        Block(Array(repeating: 0, count: 15) + [1], 128, .local),
        Block(
            [0xFD, 0x00, 0x0E, 0xC2] + Array(repeating: 0, count: 10) + [0x02, 0x54], 128, .never),
        Block([0xFC], 7, .local),
        Block([0xFE, 0x80], 10, .local),
        Block([0xFE, 0xC0], 10, .local),
        Block([0xFF], 8, .never),
        Block([0x01, 0x00, 0, 0, 0, 0, 0, 0], 64, .never),
    ]

    private static func classify4(_ bytes: ArraySlice<UInt8>) -> AddressClass {
        blocks4.first { $0.contains(bytes) }?.kind ?? .global
    }

    private static func classify6(_ bytes: [UInt8]) -> AddressClass {
        if let block = blocks6.first(where: { $0.contains(bytes[...]) }) { return block.kind }
        return embedded4(bytes).map { classify4($0[...]) } ?? .global
    }

    /// The IPv4 address that an IPv6 address leads to, for the forms that carry one.
    private static func embedded4(_ bytes: [UInt8]) -> [UInt8]? {
        let startsWithZeros = bytes[0..<10].allSatisfy { $0 == 0 }
        // ::a.b.c.d and ::ffff:a.b.c.d (RFC 4291 section 2.5.5)
        if startsWithZeros, bytes[10] == bytes[11], bytes[10] == 0 || bytes[10] == 0xFF {
            return Array(bytes[12...])
        }
        // ::ffff:0:a.b.c.d (RFC 2765)
        if bytes[0..<8].allSatisfy({ $0 == 0 }), bytes[8] == 0xFF, bytes[9] == 0xFF {
            return Array(bytes[12...])
        }
        // 64:ff9b::/96 and 64:ff9b:1::/48
        if bytes[0] == 0, bytes[1] == 0x64, bytes[2] == 0xFF, bytes[3] == 0x9B {
            return Array(bytes[12...])
        }
        if bytes[0] == 0x20, bytes[1] == 0x02 { return Array(bytes[2..<6]) }
        if bytes[0] == 0x20, bytes[1] == 0x01, bytes[2] == 0, bytes[3] == 0 {
            return bytes[12...].map { ~$0 }
        }
        return nil
    }
}
