// A player's side of the protocols, stricter than real players: any error in a response is a fault.

/// The response to one request, as far as it was received.
struct PlayerResponse {
    var status = 0
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    /// True if the body ended as its head announced.
    var isWhole = false

    func first(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }
}

/// What a player sends.
struct PlayerRequest {
    let method: String
    /// Path and query.
    let target: String
    let fields: [(String, String)]
    let body: [UInt8]
}

/// Requests of one player in sequence; a subclass speaks one version of HTTP.
class DaemonClient {
    let world: World
    let port: UInt16
    private(set) var response = PlayerResponse()
    private var done: ((PlayerResponse) -> Void)?
    private var heard: Int64 = 0
    private var abortAfter: Int?
    /// Path and query of the request.
    private(set) var target = ""
    /// True if the response has the fields of one to GET and no body.
    private(set) var isHead = false
    /// The number of requests so far.
    private(set) var requests = 0
    /// Bytes per second that this player reads; nil for no limit.
    var rate: Int?

    /// The longest time without a byte for a player: it covers several attempts at an origin.
    static let silence: Int64 = 120 * World.second

    init(_ world: World, port: UInt16 = SimulatedDaemon.port) {
        self.world = world
        self.port = port
    }

    /// Sends a request; `done` is called once.
    ///
    /// - Parameters:
    ///   - target: path and query.
    ///   - fields: those beside Host.
    ///   - order: method and body of a request other than GET; POST carries the field that the API
    ///     needs.
    ///   - abortAfter: the number of body bytes after which the player disconnects.
    ///   - done: called with the response, complete or broken.
    final func get(
        _ target: String, fields: [(String, String)] = [],
        order: (method: String, body: String)? = nil, abortAfter: Int? = nil,
        done: @escaping (PlayerResponse) -> Void
    ) {
        precondition(self.done == nil, "one request at a time")
        self.done = done
        self.abortAfter = abortAfter
        requests += 1
        response = PlayerResponse()
        self.target = target
        isHead = order?.method == "HEAD"
        heard = world.now
        let method = order?.method ?? "GET"
        world.step(.requested(target: target, fields: fields, method: method))
        var fields = fields
        if let order, !isHead {
            fields += [("Content-Length", "\(order.body.utf8.count)"), ("Sluice-Request", "1")]
        }
        let request = PlayerRequest(
            method: method, target: target, fields: fields, body: Array((order?.body ?? "").utf8))
        guard send(request) else {
            return world.after(0) { [self] in finish() }
        }
        watchSilence(requests)
    }

    /// Resets what the request uses, even in the middle of a response.
    final func leave() {
        drop()
        finish()
    }

    // MARK: For subclasses

    /// Sends a request; false if nobody listens.
    func send(_ request: PlayerRequest) -> Bool { false }

    /// Gives up the request and whatever connection this client has.
    func drop() {}

    /// What a request that gets no bytes waits for, as the end of a sentence; empty if unknown.
    var stateOfWaiting: String { "" }

    final var isWaiting: Bool { done != nil }

    final func noteHeard() { heard = world.now }

    final func note(status: Int, fields: [(name: String, value: String)]) {
        response.status = status
        response.fields = fields
    }

    final func note(body bytes: some Sequence<UInt8>) { response.body += bytes }

    /// Leaves, if the player wants no more of the body.
    final func leaveIfEnough() {
        if let abortAfter, isWaiting, response.body.count >= abortAfter { leave() }
    }

    final func markWhole() { response.isWhole = true }

    /// Hands over the response as it is.
    final func finish() {
        guard let done else { return }
        self.done = nil
        world.step(
            .answered(
                target: target, status: response.status, bytes: response.body.count,
                isWhole: response.isWhole))
        done(response)
    }

    private func watchSilence(_ number: Int) {
        world.after(heard + Self.silence - world.now) { [weak self] in
            guard let self, isWaiting, requests == number else { return }
            if world.now - heard >= Self.silence {
                world.fault(
                    .answered,
                    "\(target): no byte for \(Self.silence / World.second) s, status \(response.status), \(response.body.count) bytes\(stateOfWaiting)"
                )
            } else {
                watchSilence(number)
            }
        }
    }
}

/// The clients of all players: most use HTTP/1.1, some share connections of HTTP/2.
final class DaemonClients {
    private unowned let world: World
    private var random: Seeded
    /// How many players in a hundred use HTTP/2.
    var share = 0
    private var lines: [HTTP2Line] = []

    /// `seed` is the run's: the numbers drawn here change nothing else.
    init(_ world: World, seed: UInt64) {
        self.world = world
        random = Seeded(seed ^ 0x7540)
    }

    func make(port: UInt16 = SimulatedDaemon.port) -> DaemonClient {
        share > 0 && random.chance(share)
            ? HTTP2Client(world, port: port) : HTTP1Client(world, port: port)
    }

    /// A connection for a client's requests, often one that others use too; nil if nobody listens.
    func line(port: UInt16) -> HTTP2Line? {
        lines.removeAll { !$0.takesRequests }
        let open = lines.filter { $0.port == port }
        if !open.isEmpty, random.chance(70) { return random.pick(open) }
        let latency = Int64(random.pick([0, 1, 20, 150])) * World.millisecond
        guard let line = HTTP2Line(world, port: port, latency: latency) else { return nil }
        lines.append(line)
        return line
    }
}
