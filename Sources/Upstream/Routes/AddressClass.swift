// The addresses that no origin may have: one table, each row with its source.
//
// Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), RFC 4291, RFC 6052 and
// RFC 8215 (NAT64), RFC 3056 (6to4), RFC 4380 (Teredo), RFC 5214 (ISATAP), and the clouds' manuals
// for their metadata and host services.
import Posix

/// The reach of an address.
enum AddressClass: Hashable {
    /// The Internet.
    case global
    /// This machine or its network, or an address that is not routed on the Internet.
    case local
    /// An address that is never an origin's, or that gives access to this machine's credentials.
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

    // MARK: IPv4

    /// The first block that contains an address decides.
    private static let blocks4: [Block] = [
        // Metadata and host services of clouds.
        Block([169, 254, 169], 24, .never),  // AWS, Azure, Google, OpenStack: .254; AWS DNS and NTP
        Block([169, 254, 170], 24, .never),  // AWS: credentials of containers (.2) and pods (.23)
        Block([169, 254, 42, 42], 32, .never),  // Scaleway
        Block([169, 254, 0, 23], 32, .never),  // Tencent Cloud
        Block([168, 63, 129, 16], 32, .never),  // Azure: host agent, DNS, DHCP
        Block([100, 100, 100, 200], 32, .never),  // Alibaba Cloud
        Block([192, 0, 0, 192], 32, .never),  // Oracle Cloud, classic
        // IANA IPv4 Special-Purpose Address Registry.
        Block([0], 8, .never),  // this network (RFC 791)
        Block([10], 8, .local),  // private use (RFC 1918)
        Block([100, 64], 10, .local),  // shared (RFC 6598)
        Block([127], 8, .local),  // loopback (RFC 1122)
        Block([169, 254], 16, .local),  // link-local (RFC 3927)
        Block([172, 16], 12, .local),  // private use (RFC 1918)
        Block([192, 0, 0], 24, .local),  // protocol assignments (RFC 6890)
        Block([192, 0, 2], 24, .local),  // documentation (RFC 5737)
        Block([192, 88, 99], 24, .local),  // 6to4 relays, deprecated (RFC 7526)
        Block([192, 168], 16, .local),  // private use (RFC 1918)
        Block([198, 18], 15, .local),  // benchmarking (RFC 2544)
        Block([198, 51, 100], 24, .local),  // documentation (RFC 5737)
        Block([203, 0, 113], 24, .local),  // documentation (RFC 5737)
        Block([224], 4, .never),  // multicast (RFC 5771)
        Block([240], 4, .never),  // reserved and broadcast (RFC 1112, RFC 919)
    ]

    private static func classify4(_ bytes: ArraySlice<UInt8>) -> AddressClass {
        blocks4.first { $0.contains(bytes) }?.kind ?? .global
    }

    // MARK: IPv6

    private static let blocks6: [Block] = [
        // Metadata and host services of clouds.
        Block([0xFD, 0x00, 0x0E, 0xC2], 32, .never),  // AWS: ::254, ::253, ::123, ::23
        Block([0xFD, 0x20, 0x00, 0xCE], 32, .never),  // Google Cloud: ::254
        Block([0xFD, 0x00, 0x00, 0x42], 32, .never),  // Scaleway: ::42
        // IANA IPv6 Special-Purpose Address Registry.
        Block(Array(repeating: 0, count: 15) + [1], 128, .local),  // loopback (RFC 4291)
        Block(Array(repeating: 0, count: 13), 104, .never),  // unspecified (RFC 4291)
        Block([0x00, 0x64, 0xFF, 0x9B, 0x00, 0x01], 48, .local),  // local translation (RFC 8215)
        Block([0x01, 0x00, 0, 0, 0, 0, 0, 0], 64, .never),  // discard-only (RFC 6666)
        Block([0x01, 0x00, 0, 0, 0, 0, 0, 1], 64, .never),  // dummy prefix (RFC 9780)
        Block([0x20, 0x01, 0x00, 0x02, 0, 0], 48, .local),  // benchmarking (RFC 5180)
        Block([0x20, 0x01, 0x00, 0x10], 28, .local),  // ORCHID, deprecated (RFC 4843)
        Block([0x20, 0x01, 0x00, 0x20], 28, .local),  // ORCHIDv2 (RFC 7343)
        Block([0x20, 0x01, 0x0D, 0xB8], 32, .local),  // documentation (RFC 3849)
        Block([0x3F, 0xFF, 0x00], 20, .local),  // documentation (RFC 9637)
        Block([0x5F, 0x00], 16, .local),  // segment routing (RFC 9602)
        Block([0xFC], 7, .local),  // unique-local (RFC 4193)
        Block([0xFE, 0x80], 10, .local),  // link-local (RFC 4291)
        Block([0xFE, 0xC0], 10, .local),  // site-local, deprecated (RFC 3879)
        Block([0xFF], 8, .never),  // multicast (RFC 4291)
    ]

    private static func classify6(_ bytes: [UInt8]) -> AddressClass {
        let own = blocks6.first { $0.contains(bytes[...]) }?.kind ?? .global
        // An address that embeds IPv4 addresses gets the most restrictive class among them.
        let kinds = [own] + embedded4(bytes).map { classify4($0[...]) }
        return kinds.contains(.never) ? .never : kinds.contains(.local) ? .local : .global
    }

    /// Returns the IPv4 addresses embedded in an IPv6 address, for the forms that have any.
    private static func embedded4(_ bytes: [UInt8]) -> [[UInt8]] {
        let last = Array(bytes[12...])
        if bytes[0..<8].allSatisfy({ $0 == 0 }) {
            let middle = Array(bytes[8..<12])
            // ::a.b.c.d and ::ffff:a.b.c.d (RFC 4291 section 2.5.5), ::ffff:0:a.b.c.d (RFC 2765)
            if [[0, 0, 0xFF, 0xFF], [0xFF, 0xFF, 0, 0]].contains(middle) { return [last] }
            // ::1 is not one of them.
            if middle == [0, 0, 0, 0], last[0] != 0 { return [last] }
        }
        // 64:ff9b::/96 (RFC 6052) and 64:ff9b:1::/48 (RFC 8215)
        if Array(bytes[0..<4]) == [0, 0x64, 0xFF, 0x9B] { return [last] }
        // 2002:a.b.c.d::/48 (RFC 3056)
        if bytes[0] == 0x20, bytes[1] == 0x02 { return [Array(bytes[2..<6])] }
        // 2001:0:server:...:inverted client (RFC 4380)
        if Array(bytes[0..<4]) == [0x20, 0x01, 0, 0] {
            return [Array(bytes[4..<8]), last.map { ~$0 }]
        }
        // ...:0:5efe:a.b.c.d and ...:200:5efe:a.b.c.d (RFC 5214)
        if bytes[8] & 0xFD == 0, Array(bytes[9..<12]) == [0, 0x5E, 0xFE] { return [last] }
        return []
    }
}
