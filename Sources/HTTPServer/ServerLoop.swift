// One loop's share of the server: its listeners, connections, handler and shared buffers.
import HTTP
import Posix
import Reactor
import TLS

/// The state of one server thread; on `exclusivity(unchecked)` see `Connection`.
final class ServerLoop {
    let loop: EventLoop
    let limits: ServerLimits
    let handler: any RequestHandler
    /// The buffer that every connection of the loop reads into; data that outlives the read is
    /// copied.
    @exclusivity(unchecked) private(set) var input = [UInt8](repeating: 0, count: 1 << 16)
    @exclusivity(unchecked) var repeatedHeads = RepeatedHeads()
    /// True if responses close their connections from now on.
    @exclusivity(unchecked) private(set) var isDraining = false

    let handshakes: HandshakeCounter

    let counter: ConnectionCounter
    /// The idle connections that give way next.
    private var idle = IdleChoice<ObjectIdentifier>()
    private let crowd: CrowdWatch
    private var isMakingRoom = false
    private var acceptors: [Acceptor] = []
    private var connections: [ObjectIdentifier: any ClientConnection] = [:]
    /// The TLS state for new connections; nil if no listener uses TLS.
    private(set) var security: LoopSecurity?
    private var drained: (() -> Void)?
    @exclusivity(unchecked) private var spareBuffer: [UInt8] = []
    private var spareBlock: HeaderBlock?
    private var spareFrames: FrameOutput?
    private var headBytes: [UInt8] = []
    @exclusivity(unchecked) private var dateSecond = Int64.min
    @exclusivity(unchecked) private var cachedDateLine: [UInt8] = []

    init(
        on loop: EventLoop, limits: ServerLimits, counter: ConnectionCounter,
        handshakes: HandshakeCounter, crowd: CrowdWatch, handler: any RequestHandler
    ) {
        self.loop = loop
        self.limits = limits
        self.counter = counter
        self.handshakes = handshakes
        self.crowd = crowd
        self.handler = handler
    }

    /// Starts accepting connections.
    func open(_ listeners: [Listener]) throws(SystemError) {
        for listener in listeners { acceptors.append(try Acceptor(listener, on: self)) }
    }

    /// Sets the certificates for new connections; existing ones keep theirs.
    func use(_ context: TLSContext) {
        if let security {
            security.context = context
        } else {
            security = LoopSecurity(context)
        }
    }

    /// Takes ownership of an accepted socket, or rejects the connection.
    func adopt(_ socket: consuming OwnedDescriptor, peer: SocketAddress?, isSecure: Bool) {
        guard takePlace({ counter.enter(limit: limits.connections) }) else {
            turnAway(socket, isSecure: isSecure)
            return
        }
        var session: TLSSession?
        if isSecure {
            session = security?.makeSession()
            // Memory is short: a connection without TLS on this port would be worse than none.
            guard session != nil else {
                counter.leave()
                return
            }
        }
        let connection = Connection(socket, peer: peer, tls: session, on: self)
        connections[ObjectIdentifier(connection)] = connection
        connection.begin()
    }

    /// Counts one more stream besides the first of its connection; false if no place is left.
    func enterStream() -> Bool {
        takePlace { counter.enterStream(limit: limits.connections) }
    }

    /// The maximum number of idle connections that are looked at for one place: those whose next
    /// request has arrived, or that have bytes on their way, do not give way.
    private static let mostLooks = 4

    /// Takes a place; where all are taken, that of a connection of this loop without a request.
    ///
    /// - Parameter enter: takes a place, and returns false if none is left.
    /// - Returns: false if no place is left.
    private func takePlace(_ enter: () -> Bool) -> Bool {
        if enter() { return true }
        if makesRoom(for: enter) {
            crowd.note(.closed, on: loop)
            return true
        }
        crowd.note(.refused, on: loop)
        return false
    }

    private func makesRoom(for enter: () -> Bool) -> Bool {
        // A request that is found in the last look at a connection closes no others. A drain has
        // closed the connections between requests, and leaves the others a last word.
        guard !isMakingRoom, !isDraining else { return false }
        isMakingRoom = true
        defer { isMakingRoom = false }
        var looks = 0
        // The first candidate of a pass is unchanged: each pass uses up a look, and the loop ends.
        while looks < Self.mostLooks, let candidate = nextCandidate() {
            guard giveWay(candidate) else { continue }
            if enter() { return true }
            looks += 1
        }
        return false
    }

    private func nextCandidate() -> IdleChoice<ObjectIdentifier>.Candidate? {
        idle.next(now: loop.now) { pass in
            for (key, connection) in connections { pass.consider(key, connection.idleSince) }
        }
    }

    /// Closes a connection for a new one, if it can.
    ///
    /// - Returns: false if it is closed already, another one with its key, or was used meanwhile.
    private func giveWay(_ candidate: IdleChoice<ObjectIdentifier>.Candidate) -> Bool {
        guard let connection = connections[candidate.key],
            candidate.isUnchanged(connection.idleSince)
        else { return false }
        connection.giveWay()
        return true
    }

    /// Replaces a connection that continues in HTTP/2.
    func replace(_ connection: Connection, with multiplexed: HTTP2Connection) {
        connections.removeValue(forKey: ObjectIdentifier(connection))
        connections[ObjectIdentifier(multiplexed)] = multiplexed
    }

    /// Rejects a connection with 503 and closes it, without waiting.
    ///
    /// With TLS it only closes: a response would need a handshake, which costs too much.
    func turnAway(_ socket: consuming OwnedDescriptor, isSecure: Bool) {
        if isSecure { return }
        let number = socket.number
        // Closing with unread input would destroy the response on its way.
        _ = receive(from: number)
        let answer = Array(
            """
            HTTP/1.1 503 Service Unavailable\r
            Connection: close\r
            Retry-After: 1\r
            Content-Length: 0\r
            \r

            """.utf8)
        _ = answer.withUnsafeBytes { Posix.send($0, to: number) }
        shutdownWrites(number)
    }

    private func receive(from number: CInt) -> ReadOutcome {
        input.withUnsafeMutableBytes { Posix.receive(from: number, into: $0) }
    }

    /// Reads the bytes that have arrived into `input`, and decrypts them if they came with TLS.
    func receive(from number: CInt, through tls: TLSSession?) -> ReadOutcome {
        guard let tls else { return receive(from: number) }
        guard let security else { return .end }
        let outcome = input.withUnsafeMutableBytes {
            tls.receive(from: number, into: $0, scratch: security.scratch)
        }
        if let establishment = tls.takeEstablishment() { handshakes.add(establishment) }
        return outcome
    }

    /// Returns an empty buffer with room for a head and short content.
    ///
    /// Connections hold one only while they write, so that idle ones hold none.
    func takeBuffer() -> [UInt8] {
        var buffer: [UInt8] = []
        swap(&buffer, &spareBuffer)
        if buffer.capacity == 0 { buffer.reserveCapacity(Self.bufferSize) }
        return buffer
    }

    /// Empties a buffer and keeps it for reuse if it has the usual size.
    func giveBack(_ buffer: inout [UInt8]) {
        var returned: [UInt8] = []
        swap(&returned, &buffer)
        guard returned.capacity >= Self.bufferSize, spareBuffer.capacity == 0 else { return }
        returned.removeAll(keepingCapacity: true)
        spareBuffer = returned
    }

    /// Returns a block to collect a request's fields in; held only until the head is complete.
    func takeHeaderBlock() -> HeaderBlock {
        defer { spareBlock = nil }
        return spareBlock ?? HeaderBlock()
    }

    func giveBack(_ block: HeaderBlock) { spareBlock = block }

    /// Returns an output to collect frames in; nested calls may need more than one.
    func takeFrames() -> FrameOutput {
        defer { spareFrames = nil }
        return spareFrames ?? FrameOutput()
    }

    func giveBack(_ frames: FrameOutput) {
        frames.removeAll()
        spareFrames = frames
    }

    /// Parses a head that came as HTTP/2 fields, or finds it among the repeated heads.
    func read(_ block: HeaderBlock, isSecure: Bool) -> HTTP2Stream.Request {
        var bytes: [UInt8] = []
        swap(&bytes, &headBytes)
        bytes.removeAll(keepingCapacity: true)
        block.write(to: &bytes)
        defer { swap(&bytes, &headBytes) }
        let hash = RepeatedHeads.hash(bytes.span, over: isSecure ? .http2OverTLS : .http2)
        if let hash, let known = repeatedHeads.find(bytes.span, hash: hash) {
            return .head(known.head, known)
        }
        var parser = RequestParser(limits: limits.request, version: .http2)
        do throws(RequestError) {
            guard case .head(let head, let consumed) = try parser.parse(bytes.span),
                consumed == bytes.count
            else {
                return .failed(
                    RequestError(.badRequest, "A field contains a line break."))
            }
            // Not for requests with content: in HTTP/1.1 the same bytes must not count as a request
            // without content.
            guard let hash, case .none = head.bodyFraming else { return .head(head, nil) }
            return .head(head, repeatedHeads.note(head, bytes.span, hash: hash))
        } catch {
            return .failed(error)
        }
    }

    /// The capacity for joined content and a long head before it.
    static let bufferSize = ResponseInFlight.joinLimit + (4 << 10)

    /// Returns the `Date` field line, formatted once per second (RFC 9110 section 6.6.1).
    func dateLine() -> [UInt8] {
        let second = loop.wallNow.seconds
        if second != dateSecond {
            dateSecond = second
            cachedDateLine = Array("Date: \(HTTPDate.format(second))\r\n".utf8)
        }
        return cachedDateLine
    }

    /// Removes a closed connection.
    func forget(_ connection: any ClientConnection) {
        guard connections.removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        counter.leave()
        reportIfDrained()
    }

    // MARK: Ends

    /// Stops accepting; first accepts the connections already in the listeners' queues, since
    /// closing a listener resets them.
    func stopAccepting() {
        for acceptor in acceptors { acceptor.close() }
        acceptors = []
    }

    /// Lets responses in flight finish for at most `time`, then cuts the rest; calls `then` once.
    func drain(within time: Interval, then: @escaping () -> Void) {
        stopAccepting()
        isDraining = true
        let earlier = drained
        drained = {
            earlier?()
            then()
        }
        for connection in Array(connections.values) { connection.drain() }
        loop.schedule(after: time) { _ in self.cutConnections() }
        reportIfDrained()
    }

    /// Closes every connection immediately; clients see responses in flight as broken.
    func cutConnections() {
        for connection in Array(connections.values) { connection.cut() }
    }

    private func reportIfDrained() {
        guard isDraining, connections.isEmpty, let report = drained else { return }
        drained = nil
        report()
    }
}
