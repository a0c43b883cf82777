// A tiny HTTP/1.1 origin with separate code: one thread per connection, one closure per request.
import CLinux
import Glibc
import Posix
import Reactor
import Synchronization

/// One request as it came over the wire, and the connection to answer it on.
struct Exchange {
    /// Request line and fields, line by line.
    let lines: [String]
    let body: [UInt8]
    let socket: CInt
    /// 0 for the first request of the origin.
    let number: Int

    var target: String {
        let parts = (lines.first ?? "").split(separator: " ")
        return parts.count > 1 ? String(parts[1]) : ""
    }

    var method: String { String((lines.first ?? "").prefix { $0 != " " }) }

    func field(_ name: String) -> String? {
        let prefix = name.lowercased() + ":"
        guard let line = lines.dropFirst().first(where: { $0.lowercased().hasPrefix(prefix) })
        else { return nil }
        var value = line.dropFirst(prefix.count)
        while value.first == " " { value.removeFirst() }
        return String(value)
    }

    func send(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            done += count
        }
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// A whole response with Content-Length.
    func respond(
        _ status: Int = 200, _ fields: [String] = [], body: [UInt8] = []
    ) {
        let lines = ["HTTP/1.1 \(status) X"] + fields + ["Content-Length: \(body.count)", "", ""]
        send(Array(lines.joined(separator: "\r\n").utf8) + (method == "HEAD" ? [] : body))
    }

    func pause(milliseconds: UInt32) { usleep(milliseconds * 1000) }

    /// Waits until the peer has closed or `seconds` are over.
    func holdOpen(seconds: Int = 10) {
        var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, CInt(seconds * 1000))
    }
}

/// What happens to the connection after a request.
enum AfterRequest {
    case keep, close, reset
}

final class TestOrigin: Sendable {
    typealias Handler = @Sendable (Exchange) -> AfterRequest

    struct Log {
        var requests: [[String]] = []
        var connections = 0
        var open: Set<CInt> = []
        var isStopping = false
        var threads: [PosixThread] = []
    }

    let port: UInt16
    private let listener: OwnedDescriptor
    private let log = Mutex(Log())
    private let handler: Handler

    init(isMultipath: Bool = false, _ handler: @escaping Handler) throws {
        let address = SocketAddress(bytes: [127, 0, 0, 1], port: 0)
        listener = try listen(on: address, sharingPort: false, isMultipath: isMultipath)
        port = try localAddress(of: listener.number).port
        self.handler = handler
        let thread = try PosixThread(name: "origin") { [weak self] in
            while let self, self.acceptOne() {}
        }
        log.withLock { $0.threads.append(thread) }
    }

    var connections: Int { log.withLock { $0.connections } }
    var requests: [[String]] { log.withLock { $0.requests } }

    func url(_ path: String = "/", host: String = "127.0.0.1") -> String {
        "http://\(host):\(port)\(path)"
    }

    /// Ends all connections and threads; tests call it last.
    func stop() {
        let acceptor = log.withLock { log in
            log.isStopping = true
            return log.threads.first
        }
        shutdown(listener.number, CInt(SHUT_RDWR))
        // It may be accepting one more connection, whose thread is known only afterwards.
        acceptor?.join()
        let threads = log.withLock { log in
            for number in log.open { shutdown(number, CInt(SHUT_RDWR)) }
            return log.threads
        }
        for thread in threads { thread.join() }
    }

    private func acceptOne() -> Bool {
        var waiting = pollfd(fd: listener.number, events: Int16(POLLIN), revents: 0)
        poll(&waiting, 1, 100)
        if log.withLock({ $0.isStopping }) { return false }
        let number = clinux_accept(listener.number, nil, nil)
        guard number >= 0 else { return true }
        _ = clinux_fcntl(number, F_SETFL, 0)  // blocking
        log.withLock { log in
            log.connections += 1
            log.open.insert(number)
        }
        let thread = try? PosixThread(name: "origin-conn") { self.serve(number) }
        if let thread { log.withLock { $0.threads.append(thread) } }
        return true
    }

    private func serve(_ number: CInt) {
        var buffer: [UInt8] = []
        var after = AfterRequest.keep
        while after == .keep, let (lines, body) = Self.readRequest(number, &buffer) {
            let count = log.withLock { log in
                log.requests.append(lines)
                return log.requests.count - 1
            }
            after = handler(Exchange(lines: lines, body: body, socket: number, number: count))
        }
        if after == .reset { _ = clinux_reset_on_close(number) }
        log.withLock { _ = $0.open.remove(number) }
        close(number)
    }

    private static func readRequest(
        _ number: CInt, _ buffer: inout [UInt8]
    ) -> (lines: [String], body: [UInt8])? {
        while true {
            if let end = headEnd(buffer) {
                let lines = String(decoding: buffer[..<end], as: UTF8.self)
                    .split(separator: "\r\n").map(String.init)
                if lines.contains(where: { $0.lowercased() == "transfer-encoding: chunked" }) {
                    // The raw chunks, up to their end if it is the end of the received bytes.
                    let chunks = Array(buffer[end...])
                    if chunks.suffix(5).elementsEqual("0\r\n\r\n".utf8) {
                        buffer = []
                        return (lines, chunks)
                    }
                }
                let length =
                    lines.contains { $0.lowercased() == "transfer-encoding: chunked" }
                    ? .max / 2
                    : lines.first { $0.lowercased().hasPrefix("content-length:") }
                        .flatMap { Int($0.dropFirst(15).filter { $0 != " " }) } ?? 0
                if buffer.count >= end + length {
                    let body = Array(buffer[end..<end + length])
                    buffer.removeFirst(end + length)
                    return (lines, body)
                }
            }
            var chunk = [UInt8](repeating: 0, count: 16_384)
            let count = recv(number, &chunk, chunk.count, 0)
            if count <= 0 { return nil }
            buffer += chunk[..<count]
        }
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in 3..<bytes.count
        where bytes[index] == 10 && bytes[index - 1] == 13 && bytes[index - 2] == 10 {
            return index + 1
        }
        return nil
    }
}
