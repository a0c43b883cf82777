import Glibc

/// Tells the service manager how we are (sd_notify(3)), without linking libsystemd for it.
enum ServiceManager {
    /// Sends a state to the socket that NOTIFY_SOCKET names; does nothing without one.
    static func notify(_ state: String) {
        guard let raw = getenv("NOTIFY_SOCKET") else { return }
        var path = Array(String(cString: raw).utf8)
        guard let first = path.first, first == 0x2F || first == 0x40 else { return }
        // "@" stands for the zero byte of the abstract namespace (unix(7)).
        if first == 0x40 { path[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.count)
        let bytes = Array(state.utf8)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
