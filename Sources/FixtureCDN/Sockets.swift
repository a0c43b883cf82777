// The few system calls the sample CDN needs, blocking, each named after what it is used for.
//
// This code is deliberately independent of the daemon's socket and HTTP layers: a bug there must
// show up as a difference, not cancel itself out.
import CLinux
import Glibc

/// A system call that failed: which one and with which `errno`.
package struct CDNError: Error, CustomStringConvertible, Sendable {
    package let call: String
    package let code: Int32

    package init(call: String, code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    package var description: String { "\(call): \(String(cString: strerror(code)))" }
}

/// Blocking IPv4 TCP calls.
enum Sockets {
    /// Opens a listener on `address`, port 0 meaning any free one; returns it and its port.
    static func listen(address: String, port: UInt16) throws -> (descriptor: Int32, port: UInt16) {
        let bound = try bind(address: address, port: port)
        guard Glibc.listen(bound.descriptor, 1024) == 0 else {
            let error = CDNError(call: "listen")
            close(bound.descriptor)
            throw error
        }
        return bound
    }

    /// Takes a port without listening: connections are refused, and nobody else gets it for port 0.
    static func bind(address: String, port: UInt16) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, stream | closeOnExec, 0)
        guard descriptor >= 0 else { throw CDNError(call: "socket") }
        do {
            set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            guard inet_pton(AF_INET, address, &name.sin_addr) == 1 else {
                throw CDNError(call: "inet_pton \(address)", code: EINVAL)
            }
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            try withUnsafeMutablePointer(to: &name) { pointer in
                try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    guard Glibc.bind(descriptor, generic, length) == 0 else {
                        throw CDNError(call: "bind \(address):\(port)")
                    }
                    guard getsockname(descriptor, generic, &length) == 0 else {
                        throw CDNError(call: "getsockname")
                    }
                }
            }
            return (descriptor, UInt16(bigEndian: name.sin_port))
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Waits for the next connection; nil once the listener is shut down.
    static func accept(_ listener: Int32) -> Int32? {
        while true {
            let descriptor = clinux_accept(listener, nil, nil)
            if descriptor >= 0 {
                set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
                _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
                return descriptor
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            // Out of descriptors: wait until a connection ends rather than spin.
            case EMFILE, ENFILE: usleep(10_000)
            default: return nil
            }
        }
    }

    /// Reads once into `buffer`; 0 is the end of the stream, negative an error.
    static func receive(_ descriptor: Int32, into buffer: inout [UInt8]) -> Int {
        while true {
            let count = buffer.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, 0)
            }
            if count < 0 && errno == EINTR { continue }
            return count
        }
    }

    /// Sends the whole slice, or returns how much went out before the peer was gone.
    static func send(_ descriptor: Int32, _ bytes: ArraySlice<UInt8>) -> Int {
        bytes.withUnsafeBytes { raw in
            var sent = 0
            while sent < raw.count {
                let rest = UnsafeRawBufferPointer(rebasing: raw[sent...])
                let flags = Int32(MSG_NOSIGNAL)
                let count = Glibc.send(descriptor, rest.baseAddress, rest.count, flags)
                if count < 0 && errno == EINTR { continue }
                guard count > 0 else { break }
                sent += count
            }
            return sent
        }
    }

    /// Waits `milliseconds` (negative: without limit); false as soon as the peer or `stop()` ends
    /// the connection.
    static func pause(_ descriptor: Int32, milliseconds: Int) -> Bool {
        let hangUp = Int16(0x2000)  // POLLRDHUP, which needs _GNU_SOURCE in C
        let end = milliseconds < 0 ? Int64.max : now() + Int64(milliseconds) * 1_000_000
        while true {
            let left = end == Int64.max ? -1 : Int32(clamping: (end - now() + 999_999) / 1_000_000)
            if left == 0 || (end != Int64.max && left < 0) { return true }
            var watch = pollfd(fd: descriptor, events: hangUp, revents: 0)
            let ready = poll(&watch, 1, left)
            if ready > 0 { return false }
            if ready < 0 && errno != EINTR { return false }
        }
    }

    /// Waits until the peer has acknowledged everything sent, so that a reset cuts nothing away.
    static func drain(_ descriptor: Int32) {
        let outQueue = UInt(0x5411)  // SIOCOUTQ, tcp(7)
        let end = now() + 3_000_000_000
        var unsent: Int32 = 0
        while now() < end {
            guard ioctl(descriptor, outQueue, &unsent) == 0, unsent > 0 else { return }
            guard pause(descriptor, milliseconds: 1) else { return }
        }
    }

    /// Makes the coming `close` send a reset instead of an orderly end.
    static func resetOnClose(_ descriptor: Int32) {
        var value = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout<linger>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, size)
    }

    /// Limits the unacknowledged bytes that the kernel buffers to about twice `count` (socket(7),
    /// `SO_SNDBUF`).
    static func limitSendBuffer(_ descriptor: Int32, to count: Int) {
        set(descriptor, SOL_SOCKET, SO_SNDBUF, Int32(clamping: count))
    }

    /// Monotonic nanoseconds.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private static let stream = Int32(SOCK_STREAM.rawValue)
    private static let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// Runs `body` on a new detached thread with a small stack; false when none could be made.
package func startDetachedThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, 512 * 1024)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body))
    let failed = pthread_create(
        &thread, &attributes,
        { argument in
            guard let argument else { return nil }
            Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, box.toOpaque())
    if failed != 0 { box.release() }
    return failed == 0
}
