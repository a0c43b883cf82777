// A blocking HTTP client with separate code, so that it cannot hide a fault of the server's.
import Glibc

/// How a stream ended for the client.
enum StreamEnd: Equatable {
    case clean, reset, timeout
}

struct Answer: Equatable {
    var status = 0
    var head = ""
    var body: [UInt8] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The value of a field, nil if there is none.
    func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts[0].lowercased() == name.lowercased() {
                return parts[1].drop { $0 == " " }.description
            }
        }
        return nil
    }
}

/// One connection; every wait ends after `patience` seconds.
final class TestClient {
    let number: CInt
    private let port: UInt16
    private var pending: [UInt8] = []
    private(set) var end: StreamEnd?

    convenience init(
        port: UInt16, patience: Int = 10, receiveBuffer: CInt? = nil, isMultipath: Bool = false
    ) {
        self.init(
            unconnectedTo: port, patience: patience, receiveBuffer: receiveBuffer,
            isMultipath: isMultipath)
        connect()
    }

    /// Only makes the socket; `connect()` connects it.
    init(
        unconnectedTo port: UInt16, patience: Int = 10, receiveBuffer: CInt? = nil,
        isMultipath: Bool = false
    ) {
        self.port = port
        let kind = CInt(IPPROTO_MPTCP)
        number = socket(AF_INET, CInt(SOCK_STREAM.rawValue), isMultipath ? kind : 0)
        var time = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        // Written bytes are sent immediately: a second small write does not wait for the
        // acknowledgement of the first (tcp(7)).
        var isOn: CInt = 1
        setsockopt(
            number, CInt(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<CInt>.size))
        if var size = receiveBuffer {
            setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
        }
    }

    func connect() {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(status == 0, "cannot connect: \(errno)")
    }

    deinit { close() }

    private var isOpen = true

    func close() {
        if isOpen { _ = Glibc.close(number) }
        isOpen = false
    }

    /// Whether both ends speak Multipath TCP: otherwise MPTCP_INFO of SOL_MPTCP fails.
    var isMultipath: Bool {
        var information = [UInt8](repeating: 0, count: 256)
        var length = socklen_t(information.count)
        return getsockopt(number, 284, 1, &information, &length) == 0
    }

    /// Acknowledges what has been received now, not together with the next request (tcp(7)).
    func acknowledge() {
        var isOn: CInt = 1
        setsockopt(
            number, CInt(IPPROTO_TCP), TCP_QUICKACK, &isOn, socklen_t(MemoryLayout<CInt>.size))
    }

    func halfClose() { shutdown(number, CInt(SHUT_WR)) }

    /// Makes the next close a reset.
    func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes {
                send(number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            if count <= 0 { return }
            done += count
        }
    }

    /// Whether the peer accepts this many bytes, each of them within half a second.
    func canWrite(_ count: Int) -> Bool {
        let bytes = [UInt8](repeating: 0x41, count: 1 << 16)
        var left = count
        while left > 0 {
            var waiting = pollfd(fd: number, events: Int16(POLLOUT), revents: 0)
            guard poll(&waiting, 1, 500) == 1 else { return false }
            let sent = bytes.withUnsafeBytes {
                send(
                    number, $0.baseAddress, min(left, $0.count),
                    CInt(MSG_NOSIGNAL) | 0x40)
            }
            guard sent > 0 else { return false }
            left -= sent
        }
        return true
    }

    func get(_ path: String, _ fields: String = "", method: String = "GET") {
        write("\(method) \(path) HTTP/1.1\r\nHost: test\r\n\(fields)\r\n")
    }

    /// Reads once; false at the end.
    private func fill(_ most: Int = 65536) -> Bool {
        if end != nil { return false }
        var buffer = [UInt8](repeating: 0, count: most)
        let count = recv(number, &buffer, most, 0)
        if count > 0 {
            pending += buffer[..<count]
            return true
        }
        end = count == 0 ? .clean : errno == ECONNRESET ? .reset : .timeout
        return false
    }

    func readHead() -> Answer? {
        var from = 0
        while true {
            if let stop = find([13, 10, 13, 10], from: from) {
                let head = String(decoding: pending[..<stop], as: UTF8.self)
                pending.removeFirst(stop + 4)
                let status = head.split(separator: " ").dropFirst().first.flatMap { Int($0) }
                return Answer(status: status ?? 0, head: head)
            }
            from = max(0, pending.count - 3)
            guard fill() else { return nil }
        }
    }

    private func find(_ wanted: [UInt8], from: Int) -> Int? {
        guard pending.count >= wanted.count else { return nil }
        var index = from
        while index + wanted.count <= pending.count {
            if pending[index..<(index + wanted.count)].elementsEqual(wanted) { return index }
            index += 1
        }
        return nil
    }

    /// Reads a number of bytes, or as many as arrive.
    func read(_ count: Int) -> [UInt8] {
        while pending.count < count, fill() {}
        let taken = Array(pending.prefix(count))
        pending.removeFirst(taken.count)
        return taken
    }

    func readToEnd() -> [UInt8] {
        while fill() {}
        defer { pending = [] }
        return pending
    }

    private func readLine() -> String? {
        while true {
            if let stop = find([13, 10], from: 0) {
                let line = String(decoding: pending[..<stop], as: UTF8.self)
                pending.removeFirst(stop + 2)
                return line
            }
            guard fill() else { return nil }
        }
    }

    /// Reads chunked content; nil if it ends before its last chunk.
    func readChunks() -> [UInt8]? {
        var body: [UInt8] = []
        while let line = readLine() {
            guard let size = Int(line, radix: 16) else { return nil }
            if size == 0 { return readLine() == "" ? body : nil }
            let chunk = read(size)
            guard chunk.count == size, readLine() == "" else { return nil }
            body += chunk
        }
        return nil
    }

    /// Reads one whole response to a GET.
    func answer(toHead: Bool = false) -> Answer? {
        guard var answer = readHead() else { return nil }
        if toHead || answer.status == 204 || answer.status == 304 || answer.status < 200 {
            return answer
        }
        if let length = answer.field("Content-Length").flatMap({ Int($0) }) {
            answer.body = read(length)
            return answer.body.count == length ? answer : nil
        }
        if answer.field("Transfer-Encoding") == "chunked" {
            guard let body = readChunks() else { return nil }
            answer.body = body
            return answer
        }
        answer.body = readToEnd()
        return answer
    }
}
