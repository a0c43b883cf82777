// CLinux includes <sys/socket.h> too; which of the two modules the compiler takes SOCK_STREAM from
// depends on which it loads first.
import CLinux
import Glibc

/// One blocking socket.
final class Wire: Sendable {
    let number: Int32

    /// Takes ownership of a connected descriptor.
    init(_ number: Int32) {
        self.number = number
        _ = fcntl(number, F_SETFL, fcntl(number, F_GETFL) & ~O_NONBLOCK)
    }

    /// Connects to a port of 127.0.0.1; nil if that fails.
    static func connect(port: UInt16) -> Wire? {
        guard var name = try? HostPort(host: "127.0.0.1", port: port).socketAddress() else {
            return nil
        }
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let status = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let wire = Wire(number)
        if status == 0 { return wire }
        wire.end()
        return nil
    }

    func end() { close(number) }

    func send(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            done += count
        }
    }

    /// Exactly this many bytes; nil if the peer has closed.
    func read(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let got = recv(number, &buffer, buffer.count, 0)
            guard got > 0 else { return nil }
            bytes += buffer[..<got]
        }
        return bytes
    }

    /// The next bytes, at most 64 KiB; nil at the end.
    func some() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let got = recv(number, &buffer, buffer.count, 0)
        return got > 0 ? Array(buffer[..<got]) : nil
    }

    /// The lines of a head, read byte by byte so that nothing behind it is taken.
    func readHead() -> [String]? {
        var bytes: [UInt8] = []
        while bytes.suffix(4) != [13, 10, 13, 10] {
            guard bytes.count < 65_536, let byte = read(1) else { return nil }
            bytes += byte
        }
        return String(decoding: bytes.dropLast(4), as: UTF8.self)
            .split(separator: "\r\n").map(String.init)
    }

    /// Copies bytes both ways until one side ends.
    static func relay(_ one: Wire, _ other: Wire) {
        defer { other.end() }
        while true {
            var waits = [one, other].map {
                pollfd(fd: $0.number, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&waits, 2, 60_000) > 0 else { return }
            for (index, wire) in [one, other].enumerated() where waits[index].revents != 0 {
                guard let bytes = wire.some() else { return }
                (index == 0 ? other : one).send(bytes)
            }
        }
    }
}
