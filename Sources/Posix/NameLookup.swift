// CLinux declares SOCK_STREAM too: files built beside ones that import it need it to find the name.
import CLinux
import Glibc

/// Resolves a host name with the system's resolver (getaddrinfo(3)); at most 16 addresses, nil on
/// failure.
///
/// Blocks.
package func systemAddresses(of host: String) -> [String]? {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var first: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, nil, &hints, &first) == 0 else { return nil }
    defer { freeaddrinfo(first) }
    var found: [String] = []
    var next = first
    while let each = next, found.count < 16 {
        if let address = each.pointee.ai_addr.flatMap({ SocketAddress($0) }),
            !found.contains(address.host)
        {
            found.append(address.host)
        }
        next = each.pointee.ai_next
    }
    return found
}
