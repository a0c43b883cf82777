// The identity of the machine's network, from the kernel's tables.
import Numbers

/// The current default route.
package struct NetworkName: Sendable, Equatable {
    /// The interface of the default route; nil without one.
    package let interface: String?
    /// Equal for the same network: interface, gateway, and the gateway's hardware address, since
    /// half of all networks use the same addresses.
    package let text: String

    /// Parses the tables in the format of proc(5).
    ///
    /// - Parameters:
    ///   - routes: /proc/net/route; hexadecimal numbers in the machine's byte order.
    ///   - routes6: /proc/net/ipv6_route.
    ///   - neighbours: /proc/net/arp.
    package init(routes: String, routes6: String = "", neighbours: String = "") {
        let best = Self.rows(routes).compactMap { row -> (metric: Int, row: [Substring])? in
            guard row.count >= 8, row[1] == "00000000", row[7] == "00000000",
                let metric = ExternalNumber.integer(row[6], in: 0...Int(UInt32.max))
            else { return nil }
            return (metric, row)
        }.min { $0.metric < $1.metric }?.row
        if let best {
            interface = String(best[0])
            let address = Self.address(best[2])
            let hardware = Self.rows(neighbours).first {
                $0.count >= 4 && address != nil && $0[0] == Substring(address ?? "")
            }?[3]
            text = "\(best[0])-\(best[2])" + (hardware.map { "-\($0)" } ?? "")
            return
        }
        let zeros = String(repeating: "0", count: 32)
        let best6 = Self.rows(routes6).filter { row in
            row.count >= 10 && row[0] == zeros && row[1] == "00" && row[4] != zeros
        }.min { $0[5] < $1[5] }
        interface = best6.map { String($0[9]) }
        text = best6.map { "\($0[9])-\($0[4])" } ?? "none"
    }

    /// True if the interface's name, or the kernel's description of its device, is that of a mobile
    /// network.
    ///
    /// - Parameters:
    ///   - interface: as in `wwan0`.
    ///   - device: /sys/class/net/<interface>/uevent.
    /// - Returns: true for a network whose bytes are likely metered.
    package static func isMobile(_ interface: String, device: String = "") -> Bool {
        ["wwan", "wwp", "rmnet", "ppp", "bnep"].contains { interface.hasPrefix($0) }
            || device.split(separator: "\n").contains("DEVTYPE=wwan")
    }

    private static func rows(_ text: String) -> [[Substring]] {
        text.split(separator: "\n").map { line in
            line.split(whereSeparator: { $0 == " " || $0 == "\t" })
        }
    }

    /// Converts hexadecimal to dotted notation: `010200C0` is 192.0.2.1.
    private static func address(_ hex: Substring) -> String? {
        guard hex.utf8.count == 8,
            let number = ExternalNumber.integer(hex, in: 0...UInt32.max, radix: 16)
        else { return nil }
        return [0, 8, 16, 24].map { String((number >> $0) & 0xFF) }.joined(separator: ".")
    }
}
