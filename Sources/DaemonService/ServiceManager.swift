import CommandSupport
import Glibc
import Numbers
package import Posix

/// Reports the daemon's state to the service manager (sd_notify(3)) and takes sockets from it
/// (sd_listen_fds(3)), without linking libsystemd.
package enum ServiceManager {
    /// The most sockets that are accepted.
    private static let mostSockets = 64

    /// Returns the sockets inherited by this process, and removes them from the environment.
    ///
    /// Must be called once, before anything else opens descriptors.
    ///
    /// - Throws: `SystemError` for a descriptor that is not a listening TCP socket.
    package static func takeListeners() throws(SystemError) -> [InheritedListener] {
        let variables = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]
        let values = variables.map { name in getenv(name).map { String(cString: $0) } }
        for name in variables { unsetenv(name) }
        guard let pid = values[0].flatMap({ ExternalNumber.integer($0, in: 1...Int32.max) }),
            pid == getpid(), let text = values[1], text != "0"
        else { return [] }
        guard let count = ExternalNumber.integer(text, in: 1...mostSockets) else {
            throw SystemError("LISTEN_FDS", code: EINVAL, subject: text)
        }
        let names = (values[2] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var found: [InheritedListener] = []
        for index in 0..<count {
            let name = index < names.count ? String(names[index]) : ""
            let descriptor = OwnedDescriptor(taking: firstSocket + CInt(index))
            found.append(try InheritedListener(taking: descriptor, name: name))
        }
        return found
    }

    /// SD_LISTEN_FDS_START.
    private static let firstSocket: CInt = 3

    /// Reports that the daemon stops, and how long that may take: systemd otherwise kills it after
    /// TimeoutStopSec (sd_notify(3), EXTEND_TIMEOUT_USEC).
    static func notifyStopping(seconds: Double) {
        // What follows the drain: threads end, and the store is closed.
        let microseconds = Int64(saturating: (seconds + 10) * 1e6)
        notify("STOPPING=1\nSTATUS=Draining\nEXTEND_TIMEOUT_USEC=\(microseconds)")
    }

    /// Reports that a reload has ended, for `systemctl status`.
    ///
    /// - Parameter fault: why the settings were not changed; nil if they were. Only the beginning
    ///   is reported: systemd ignores a message of over 4096 bytes.
    static func notifyReload(fault: String?) {
        // A line end would begin another assignment.
        let reason = fault.map { PrintableText.oneLine($0).utf8.prefix(500) }
        let status = reason.map { "; not reloaded: \(String(decoding: $0, as: UTF8.self))" }
        notify("STATUS=Listening\(status ?? "")")
    }

    /// Reports that the stop goes on: its next step may take this long, and systemd kills the daemon
    /// otherwise, before everything is saved (sd_notify(3): repeated until the service ends).
    static func notifyStopStep() { notify("EXTEND_TIMEOUT_USEC=30000000") }

    /// Sends a state to the socket in NOTIFY_SOCKET; does nothing without one.
    static func notify(_ state: String) {
        guard let raw = getenv("NOTIFY_SOCKET") else { return }
        var path = Array(String(cString: raw).utf8)
        guard let first = path.first, first == 0x2F || first == 0x40 else { return }
        // "@" denotes the zero byte of the abstract namespace (unix(7)).
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
