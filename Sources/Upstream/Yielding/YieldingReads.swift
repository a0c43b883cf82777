// Bounds the receive windows of transfers, so that they keep the queue of the line short: the shell
// around `QueueWindow`.
//
// A bounded window works for HTTP/1.1 and HTTP/2 alike, and below TLS: the sender stops, and
// nothing piles up in this process. Connections to one address share a window in equal parts.
import HTTP
import Numbers
import Posix
import Reactor
import URISyntax

/// The bounds of all connections of one client; used on its loop only.
///
/// Without a running body no timer runs.
final class YieldingReads {
    private struct Use {
        var window: QueueWindow
        /// The visit of players in which it was used last.
        var visit: Int
    }

    private struct Path {
        var lowest = LowestDelay()
        var usedAt: Monotonic
        var uses: [YieldPurpose: Use] = [:]
    }

    struct Reading {
        /// Nil before the first sample.
        var measured: Receiving?
        /// The bound that was set; nil for none.
        var bound: Int?
        var isLasting = false
        /// True from the beginning of the end of a body until the next request.
        var isEnding = false
        /// False if its last body was too short to open its window in steps.
        var opensSlowly = true
    }

    struct Member {
        let connection: UpstreamClient.Connection
        let number: CInt
        /// Nil if it shares the connection.
        let transfer: Transfer?
    }

    private struct Group {
        var sample = QueueWindow.Sample()
        var members: [Member] = []
    }

    private let isAlways: Bool
    private(set) weak var client: UpstreamClient?
    private let loop: EventLoop
    private var paths: [SocketAddress: Path] = [:]
    var readings: [UpstreamClient.Connection: Reading] = [:]
    private var shares = WindowShares()
    private var boundOrigins = BoundOrigins(life: YieldingReads.presence)
    private var timer: TimerID?
    private var ticksAt = Monotonic(nanoseconds: 0)
    private var playersUntil = Monotonic(nanoseconds: 0)
    /// Grows when players come after a time without any.
    private var visit = 0
    private var tickedAt: Monotonic
    private(set) var counts = YieldCounts()

    /// A player that requested anything within this time counts as present: players with full
    /// buffers request a segment about every ten seconds at most.
    private static let presence = Interval.seconds(12 as Int64)
    private static let shortestTick = Interval.milliseconds(20)
    private static let longestTick = Interval.milliseconds(100)
    /// What Linux grants a sender at first (tcp(7), tcp_rmem: half of 128 KiB).
    private static let usualWindow = 65_536.0
    /// How long a window remembers its highest rate.
    private static let rateMemory = Interval.seconds(120 as Int64)
    /// The most paths and connections that are remembered.
    private static let most = 256

    init(always: Bool, client: UpstreamClient) {
        isAlways = always
        self.client = client
        loop = client.loop
        tickedAt = loop.now
    }

    private var isPlaying: Bool { loop.now < playersUntil }

    /// True while what players wait for from an origin is bounded, and for some seconds after.
    func boundsPlayers(of origin: Origin) -> Bool {
        isPlaying && boundOrigins.contains(origin, at: loop.now)
    }

    /// Takes note of a request that is about to be sent to an address; may be called inside
    /// libcurl.
    func requestBegins(_ transfer: Transfer, to address: SocketAddress) {
        let hasResponse = !transfer.request.connectsOnly
        if transfer.lane <= .playback, hasResponse {
            if !isPlaying {
                visit += 1
                boundOrigins.removeAll()
            }
            playersUntil = loop.now + Self.presence
        }
        guard let connection = transfer.connection, connection.localPort != 0 else { return }
        if !readings.isEmpty, transfer.isNewConnection { readings[connection] = nil }
        readings[connection]?.isEnding = false
        if timer == nil { schedule(after: Self.shortestTick) }
        let purpose = purpose(of: transfer.lane)
        if purpose == .players, hasResponse { makeWay(to: address) }
        // The first bytes come before the first sample.
        if let purpose {
            let use = currentUse(of: purpose, at: address)
            if purpose == .players, hasResponse, use.window.isBound {
                boundOrigins.note(connection.origin, at: loop.now)
            }
            let key = PathUse(address: address, purpose: purpose)
            if hasResponse {
                let wait = settlingTime(at: address)
                shares.note(request: connection, for: key, within: wait, at: loop.now.inSeconds)
            }
            let bytes = share(of: use.window.window, among: shares.count(of: key))
            if hasResponse, use.window.isBound, client?.users[connection] == 1,
                readings[connection]?.opensSlowly ?? true
            {
                bound(connection, to: BodyBound.edge(of: bytes))
            } else {
                bound(connection, to: bytes)
            }
        } else if client?.users[connection] == 1 {
            bound(connection, to: boundOfOthers(transfer.lane, at: address, isLong: false))
        }
    }

    /// Lowers the bound of a connection whose body lacks no more than was granted; inside libcurl.
    ///
    /// What it would keep would come as one burst with the next response.
    func endBegins(of transfer: Transfer) {
        transfer.endBegins = .max
        guard let connection = transfer.connection, client?.users[connection] == 1,
            let address = transfer.hopState.times.address, let purpose = purpose(of: transfer.lane),
            let bytes = readings[connection]?.bound
        else { return }
        let key = PathUse(address: address, purpose: purpose)
        guard window(of: key)?.isBound == true else { return }
        readings[connection]?.isEnding = true
        bound(connection, to: BodyBound.edge(of: bytes))
    }

    /// How long a response takes from its request until it has its share, in seconds.
    private func settlingTime(at address: SocketAddress) -> Double {
        2 * (paths[address]?.lowest.value ?? 0) + Self.shortestTick.inSeconds
    }

    /// Returns the bound of transfers that do not yield: of playlists and keys; nil for the rest,
    /// and where nothing is known of the line.
    ///
    /// They need none for themselves, but segments use the same connections later, and what the
    /// sender was granted once stays granted. A long one has the whole line from the first sample
    /// on.
    private func boundOfOthers(_ lane: Lane, at address: SocketAddress, isLong: Bool) -> Int? {
        guard lane == .express, isPlaying, let path = paths[address] else { return nil }
        let windows = path.uses.values.compactMap {
            $0.window.lineWindow(of: path.lowest, at: loop.now.inSeconds)
        }
        guard let line = windows.max() else { return nil }
        let bound = isLong ? max(Self.usualWindow, line) : min(Self.usualWindow, line)
        return Int(max(QueueWindow.firstWindow, bound))
    }

    /// Bounds the background transfers from an address before the first bytes of players' come.
    private func makeWay(to address: SocketAddress) {
        guard let client else { return }
        var connections: Set<UpstreamClient.Connection> = []
        for transfer in client.attached.values
        where transfer.lane == .background && transfer.hopState.times.address == address {
            if let connection = transfer.connection { connections.insert(connection) }
        }
        guard !connections.isEmpty else { return }
        for transfer in client.attached.values where transfer.lane != .background {
            if let connection = transfer.connection { connections.remove(connection) }
        }
        var use = currentUse(of: .background, at: address)
        use.window.giveWay(at: loop.now.inSeconds)
        paths[address]?.uses[.background] = use
        for connection in connections {
            bound(connection, to: share(of: use.window.window, among: connections.count))
        }
    }

    /// Returns the use of a path for one purpose; a new one, or one that begins anew, where it has
    /// none of this visit.
    private func currentUse(
        of purpose: YieldPurpose, at address: SocketAddress
    ) -> Use {
        let path = paths[address] ?? Path(usedAt: loop.now)
        var use = path.uses[purpose] ?? Use(window: QueueWindow(purpose), visit: visit)
        if !isCurrent(use, purpose) {
            use.window.restart(of: path.lowest, at: loop.now.inSeconds)
        }
        use.visit = visit
        paths[address] = path
        paths[address]?.uses[purpose] = use
        return use
    }

    /// Lets background go on from addresses that players are no longer served from.
    private func endWays(_ groups: [PathUse: Group], of client: UpstreamClient) {
        // The address of a response is known from its first byte on.
        let isAwaited = client.attached.values.contains {
            purpose(of: $0.lane) == .players && !$0.request.connectsOnly
                && $0.hopState.times.address == nil
        }
        guard !isAwaited else { return }
        for key in groups.keys where key.purpose == .background {
            guard groups[PathUse(address: key.address, purpose: .players)] == nil else { continue }
            paths[key.address]?.uses[.background]?.window.playersEnded(at: loop.now.inSeconds)
        }
    }

    /// Takes note that the first bytes of a response have arrived: they show the delay of the line
    /// before this response fills the queue.
    func responseBegins() {
        // No later than it is due: responses may begin more often than that.
        guard let timer, ticksAt - loop.now > Self.shortestTick else { return }
        loop.cancel(timer)
        schedule(after: Self.shortestTick)
    }

    /// False where transfers have run without a bound meanwhile.
    private func isCurrent(_ use: Use, _ purpose: YieldPurpose) -> Bool {
        use.visit == visit || (isAlways && purpose == .background)
    }

    private func window(of key: PathUse) -> QueueWindow? {
        paths[key.address]?.uses[key.purpose]?.window
    }

    private func purpose(of lane: Lane) -> YieldPurpose? {
        switch lane {
        case .express: nil
        case .playback, .prefetch: isPlaying ? .players : nil
        case .background: isPlaying || isAlways ? .background : nil
        }
    }

    private func schedule(after pause: Interval) {
        ticksAt = loop.now + pause
        timer = loop.schedule(after: pause) { [weak self] _ in
            self?.timer = nil
            self?.tick()
        }
    }

    // MARK: Sampling

    private func tick() {
        guard let client, !client.isShutDown else { return }
        // What this round has handled before took time, and the kernel went on counting.
        let now = loop.readTime()
        let seconds = (now - tickedAt).inSeconds
        tickedAt = now
        let groups = groups(of: client)
        endWays(groups, of: client)
        var states: [Origin: YieldState] = [:]
        let rates = groups.isEmpty ? LineRates() : lineRates()
        for (key, group) in groups {
            follow(key, group, rates: rates)
            if key.purpose == .background, window(of: key)?.isBound == true {
                counts.backgroundSeconds += min(seconds, 1)
            }
            for member in group.members { note(key, member.connection.origin, in: &states) }
        }
        client.ledger.figures.yields = states
        forget()
        // Transfers that begin after an idle time schedule the next tick.
        guard !client.attached.isEmpty else { return }
        let lowest = groups.keys.compactMap { paths[$0.address]?.lowest.value }.min()
        let pause = groups.isEmpty ? Self.longestTick : Interval(seconds: (lowest ?? 0) / 2)
        schedule(after: min(Self.longestTick, max(Self.shortestTick, pause)))
    }

    /// Samples each connection that carries a body, by path.
    private func groups(of client: UpstreamClient) -> [PathUse: Group] {
        var bodies: [UpstreamClient.Connection: (transfer: Transfer, address: SocketAddress)] = [:]
        for transfer in client.attached.values {
            guard case .body = transfer.hopState.phase, let connection = transfer.connection,
                connection.localPort != 0, let address = transfer.hopState.times.address
            else { continue }
            // What players wait for decides for all that share a connection.
            if let known = bodies[connection], known.transfer.lane <= transfer.lane { continue }
            bodies[connection] = (transfer, address)
        }
        var groups: [PathUse: Group] = [:]
        for (connection, use) in bodies {
            guard let purpose = purpose(of: use.transfer.lane) else {
                let bytes = boundOfOthers(use.transfer.lane, at: use.address, isLong: true)
                bound(connection, to: bytes)
                continue
            }
            guard let number = client.sockets.descriptor(localPort: connection.localPort),
                let found = receiving(of: number)
            else { continue }
            let key = PathUse(address: use.address, purpose: purpose)
            var group = groups[key] ?? Group()
            add(found, of: connection, to: &group)
            let isAlone = client.users[connection] == 1
            group.members.append(
                Member(
                    connection: connection, number: number,
                    transfer: isAlone ? use.transfer : nil))
            groups[key] = group
        }
        shares.note(
            bodies: groups.mapValues { $0.members.map(\.connection) }, at: tickedAt.inSeconds)
        return groups
    }

    private func add(
        _ found: Receiving, of connection: UpstreamClient.Connection, to group: inout Group
    ) {
        if let former = readings[connection]?.measured, let bytes = found.arrived(since: former) {
            group.sample.bytes = group.sample.bytes.addingSaturated(bytes)
            if found.outOfOrder > former.outOfOrder { group.sample.isLossy = true }
            // Without new bytes the round trip is that of earlier ones.
            if bytes > 0, let roundTrip = found.roundTrip {
                group.sample.roundTrip = min(group.sample.roundTrip ?? roundTrip, roundTrip)
            }
        }
        if let handshake = found.sentRoundTrip {
            group.sample.handshake = min(group.sample.handshake ?? handshake, handshake)
        }
        readings[connection, default: Reading()].measured = found
    }

    /// Returns the highest rates of the last minutes: the rate of one path says little of the line
    /// while another has most of it.
    private func lineRates() -> LineRates {
        let now = loop.now.inSeconds
        var rates = LineRates()
        // What has not been used for longer knows no rate any more.
        for path in paths.values where loop.now - path.usedAt < Self.rateMemory {
            for use in path.uses.values {
                if let rate = use.window.highestRate(at: now) { rates.note(rate, of: path.lowest) }
            }
        }
        return rates
    }

    private func follow(_ key: PathUse, _ group: Group, rates: LineRates) {
        var use = currentUse(of: key.purpose, at: key.address)
        guard var path = paths[key.address] else { return }
        path.usedAt = loop.now
        let count = shares.count(of: key)
        var sample = group.sample
        sample.connections = count
        let now = tickedAt.inSeconds
        sample.lineRate = rates.highest(for: path.lowest)
        let releases = use.window.releases
        use.window.note(sample, of: &path.lowest, at: now)
        counts.releases += use.window.releases - releases
        path.uses[key.purpose] = use
        paths[key.address] = path
        let bytes = share(of: use.window.window, among: count)
        guard use.window.isBound else {
            for member in group.members { bound(member, toUnlimited: bytes) }
            return
        }
        // After an idle time the line has carried nothing for the step since the last tick.
        let pause = shares.pause(of: key) ?? Self.shortestTick.inSeconds
        let opening = use.window.opening(in: min(pause, Self.longestTick.inSeconds), at: now)
        let rising = group.members.count { rises($0, to: bytes) }
        let step = opening.map { Int($0) / max(1, rising) }
        for member in group.members { bound(member, to: bytes, step: step) }
    }

    private func note(_ key: PathUse, _ origin: Origin, in states: inout [Origin: YieldState]) {
        guard let found = window(of: key), found.isBound else { return }
        if key.purpose == .players { boundOrigins.note(origin, at: loop.now) }
        if states[origin]?.purpose == key.purpose {
            states[origin]?.connections += 1
        } else if states[origin] == nil || key.purpose == .background {
            states[origin] = YieldState(
                purpose: key.purpose, connections: 1, window: Int(found.window), queue: found.queue)
        }
    }

    private func forget() {
        if readings.count > Self.most, let client {
            for connection in readings.keys where client.users[connection] == 0 {
                bound(connection, to: nil)
                readings[connection] = nil
            }
        }
        while paths.count > Self.most,
            let oldest = paths.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            paths[oldest.key] = nil
        }
    }
}
