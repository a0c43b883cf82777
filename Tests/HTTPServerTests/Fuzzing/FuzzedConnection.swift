// A socket of the tests that never waits long for a server which may close at any time.
import Glibc

/// A connection that sends what is generated and may or may not read.
final class FuzzedConnection {
    private let client: TestClient

    init(port: UInt16) { client = TestClient(port: port, receiveBuffer: 16384) }

    /// Sends bytes as far as the server takes them.
    ///
    /// - Returns: False where the server has closed, or takes nothing for two seconds.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>, reading: Bool) -> Bool {
        let bytes = Array(bytes)
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes {
                Glibc.send(
                    client.number, $0.baseAddress, $0.count,
                    CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
            if count > 0 {
                done += count
                continue
            }
            guard errno == EAGAIN else { return false }
            if reading { _ = receive() }
            var waiting = pollfd(fd: client.number, events: Int16(POLLOUT), revents: 0)
            guard poll(&waiting, 1, 2000) == 1 else { return false }
        }
        if reading { _ = receive() }
        return true
    }

    /// What has arrived, without waiting for more than the first of it; nil at the end.
    func receive(waiting milliseconds: CInt = 0) -> [UInt8]? {
        var waiting = pollfd(fd: client.number, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, milliseconds) == 1 else { return [] }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(client.number, &buffer, buffer.count, CInt(MSG_DONTWAIT))
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    /// Has the server see the end; `close` frees the socket.
    func end(_ ending: FuzzedSession.Ending) {
        switch ending {
        case .close: client.close()
        case .reset: client.reset()
        case .halfClose: client.halfClose()
        }
    }

    func close() { client.close() }
}

/// What this process uses of what must not grow with the number of sessions.
struct ProcessUse {
    let descriptors: Int
    let residentBytes: Int

    static func now() -> ProcessUse {
        ProcessUse(descriptors: openDescriptors(), residentBytes: Self.resident())
    }

    private static func openDescriptors() -> Int {
        guard let folder = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while readdir(folder) != nil { count += 1 }
        return count
    }

    private static func resident() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, CInt(line.count), file) != nil else { return 0 }
        let bytes = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * 4096
    }

    /// Sanitizers keep memory for themselves, so that nothing can be said of it under them.
    static var isMemoryTelling: Bool {
        dlsym(nil, "__tsan_init") == nil && dlsym(nil, "__asan_init") == nil
    }
}
