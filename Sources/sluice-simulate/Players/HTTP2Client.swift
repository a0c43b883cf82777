// HTTP/2 as a player speaks it (RFC 9113): streams of several players on one connection.

/// A player whose requests are streams of a connection that it shares with others.
final class HTTP2Client: DaemonClient {
    private var line: HTTP2Line?
    private var stream: Int32?
    private var request: PlayerRequest?
    /// How often the daemon said that it had not processed this request.
    private var refusals = 0

    /// Attempts after which a request that is refused each time counts as failed.
    private static let mostRefusals = 20

    override func send(_ request: PlayerRequest) -> Bool {
        self.request = request
        refusals = 0
        return begin()
    }

    private func begin() -> Bool {
        if line?.takesRequests != true {
            line?.detach()
            line = world.clients.line(port: port)
            line?.attach()
        }
        guard let request, let line else { return false }
        stream = line.begin(request, for: self)
        return stream != nil
    }

    override func drop() {
        if let stream { line?.reset(stream) }
        stream = nil
        line?.detach()
        line = nil
    }

    override var stateOfWaiting: String {
        guard let stream, let line else { return ", without a stream" }
        return ", \(line.windows(of: stream))"
    }

    // MARK: From the connection

    func received(status: Int, fields: [(name: String, value: String)]) {
        noteHeard()
        if status >= 200 { note(status: status, fields: fields) }
    }

    /// Takes bytes of the body; the stream's window grows at the rate of this player.
    func received(_ bytes: [UInt8]) {
        noteHeard()
        guard isWaiting, let stream else { return }
        note(body: bytes)
        let pause = rate.map { Int64(bytes.count) * World.second / Int64(max(1, $0)) } ?? 0
        world.after(pause) { [weak line] in line?.consume(stream, bytes.count) }
        leaveIfEnough()
    }

    /// Takes the end of the stream.
    ///
    /// - Parameters:
    ///   - isWhole: the daemon has ended the response.
    ///   - wasRefused: it has not processed the request, which may be sent again (section 8.7).
    func ended(isWhole: Bool, wasRefused: Bool) {
        stream = nil
        if wasRefused, refusals < Self.mostRefusals {
            refusals += 1
            world.mark("h2: refused")
            world.after(10 * World.millisecond) { [weak self] in
                guard let self, isWaiting, stream == nil else { return }
                if !begin() { finish() }
            }
            return
        }
        if isWhole {
            checkLength()
            markWhole()
        }
        finish()
    }

    private func checkLength() {
        guard !isHead, response.status != 304,
            let length = response.first("content-length").flatMap({ Int($0) }),
            length != response.body.count
        else { return }
        world.fault(.lengths, "\(target): \(response.body.count) bytes of \(length)")
    }
}
