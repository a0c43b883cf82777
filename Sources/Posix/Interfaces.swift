// The name and the addresses of this machine.
import CLinux
import Glibc

/// Returns the machine's name (gethostname(2)); empty if unknown.
package func machineName() -> String {
    var text = [CChar](repeating: 0, count: 256)
    guard gethostname(&text, text.count - 1) == 0 else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Returns the IPv4 and IPv6 addresses of the interfaces that are up, each once (getifaddrs(3)).
package func interfaceAddresses() throws(SystemError) -> [SocketAddress] {
    let found = FoundAddresses()
    let context = Unmanaged.passUnretained(found).toOpaque()
    _ = try check("getifaddrs") {
        clinux_list_addresses(context) { context, raw in
            guard let context, let address = SocketAddress(raw) else { return }
            let plain = SocketAddress(bytes: address.bytes, port: 0)
            let found = Unmanaged<FoundAddresses>.fromOpaque(context).takeUnretainedValue()
            if !found.addresses.contains(plain) { found.addresses.append(plain) }
        }
    }
    return found.addresses
}

private final class FoundAddresses {
    var addresses: [SocketAddress] = []
}
