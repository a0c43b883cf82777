// HTTP/1.1 as a player speaks it (RFC 9112).
import CSimulation

/// One connection to the daemon, for requests in sequence.
final class HTTP1Client: DaemonClient {
    private var stream: Stream?
    private var input: [UInt8] = []
    private var framing = Framing.head

    private enum Framing {
        case head, length(Int), chunkHead, chunk(Int), trailer, untilClose
    }

    override func send(_ request: PlayerRequest) -> Bool {
        framing = .head
        input = []
        guard connect() else { return false }
        let lines = request.fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let head =
            "\(request.method) \(request.target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\(lines)\r\n"
        stream?.send(Array(head.utf8) + request.body)
        return true
    }

    override func drop() {
        stream?.reset()
        stream = nil
    }

    var isConnected: Bool { stream?.isOpen == true }

    /// Opens the connection, unless it is open; false if nobody listens.
    func connect() -> Bool {
        if isConnected { return true }
        let descriptor = csim_dial(port)
        guard descriptor >= 0 else { return false }
        let made = Stream(world, descriptor)
        made.readRate = rate
        made.received = { [weak self] bytes in self?.take(bytes) }
        made.ended = { [weak self, weak made] in
            if let made, self?.stream === made { self?.ended() }
        }
        stream = made
        return true
    }

    private func ended() {
        stream = nil
        if case .untilClose = framing { markWhole() }
        finish()
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        noteHeard()
        guard isWaiting else { return world.fault(.lengths, "\(target): bytes after the response") }
        input += bytes
        while step() {}
        leaveIfEnough()
    }

    /// Reads one part of the response; false if more bytes are needed, or at its end.
    private func step() -> Bool {
        guard isWaiting else { return false }
        switch framing {
        case .head: return readHead()
        case .length(let count):
            let taken = min(count, input.count)
            note(body: input.prefix(taken))
            input.removeFirst(taken)
            framing = .length(count - taken)
            if count == taken { complete() }
            return false
        case .untilClose:
            note(body: input)
            input = []
            return false
        case .chunkHead:
            guard let line = readLine() else { return false }
            guard let count = Int(line.split(separator: ";").first ?? "", radix: 16) else {
                world.fault(.lengths, "\(target): a chunk's size is '\(line)'")
                return false
            }
            framing = count == 0 ? .trailer : .chunk(count)
            return true
        case .chunk(let count):
            guard input.count >= count + 2 else { return false }
            note(body: input.prefix(count))
            input.removeFirst(count + 2)
            framing = .chunkHead
            return true
        case .trailer:
            guard let line = readLine() else { return false }
            if line.isEmpty { complete() }
            return !line.isEmpty
        }
    }

    private func readLine() -> String? {
        guard let end = input.firstIndex(of: 0x0A) else { return nil }
        let line = String(decoding: input[..<end].filter { $0 != 0x0D }, as: UTF8.self)
        input.removeFirst(end + 1)
        return line
    }

    private func readHead() -> Bool {
        guard let head = MessageHead(from: &input) else { return false }
        let status = head.startLine.split(separator: " ")
        guard status.count >= 2, status[0] == "HTTP/1.1", let code = Int(status[1]) else {
            world.fault(.status, "\(target): the status line is '\(head.startLine.prefix(80))'")
            return false
        }
        if code < 200 { return true }
        note(status: code, fields: head.fields)
        if code == 204 || code == 304 || isHead {
            complete()
            return false
        }
        if response.first("transfer-encoding")?.lowercased() == "chunked" {
            framing = .chunkHead
        } else if let length = response.first("content-length").flatMap({ Int($0) }) {
            framing = .length(length)
        } else {
            framing = .untilClose
        }
        return true
    }

    private func complete() {
        markWhole()
        if !input.isEmpty {
            world.fault(.lengths, "\(target): \(input.count) bytes after the end of the response")
        }
        if response.first("connection")?.lowercased() == "close" {
            stream?.reset()
            stream = nil
        }
        finish()
    }
}
