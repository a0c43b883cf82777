// What this machine is called, and the addresses it has.
import Glibc

/// The machine's name (gethostname(2)); empty where it has none.
package func machineName() -> String {
    var text = [CChar](repeating: 0, count: 256)
    guard gethostname(&text, text.count - 1) == 0 else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The IPv4 and IPv6 addresses of the interfaces that are up, each once (getifaddrs(3)).
package func interfaceAddresses() throws(SystemError) -> [SocketAddress] {
    var first: UnsafeMutablePointer<ifaddrs>?
    _ = try check("getifaddrs") { getifaddrs(&first) }
    defer { freeifaddrs(first) }
    var found: [SocketAddress] = []
    var next = first
    while let entry = next {
        next = entry.pointee.ifa_next
        guard entry.pointee.ifa_flags & CUnsignedInt(IFF_UP) != 0,
            let raw = entry.pointee.ifa_addr, let address = SocketAddress(raw)
        else { continue }
        let plain = SocketAddress(bytes: address.bytes, port: 0)
        if !found.contains(plain) { found.append(plain) }
    }
    return found
}
