/// The limits and use of slots by transfers that no player waits for.
struct AheadShare: Sendable {
    /// What goes first to a host in a session.
    private struct First: Hashable {
        let session: UInt64
        let host: String
    }

    /// The limit over all hosts.
    var limit = Int.max
    /// The limit of background transfers among them.
    var backgroundLimit = Int.max
    /// The limits of single hosts; others have only the overall limit.
    var hostLimits: [String: Int] = [:]
    private(set) var inUse = 0
    private(set) var background = 0
    private(set) var byHost = Tally<String>()
    /// Those that go first, which may be more than `limit`.
    private(set) var first = 0
    private var firstBySession = Tally<First>()

    /// True if one more transfer of a lane may run; what goes first need not ask.
    func hasRoom(in lane: Lane) -> Bool {
        switch lane {
        case .express, .playback: true
        case .prefetch: inUse < limit
        case .background: inUse < limit && background < backgroundLimit
        }
    }

    /// True if one more transfer may run to the host of a waiter; always true for players' lanes.
    ///
    /// A recording loses for good what it fetches too late: trouble at other hosts must not hold it
    /// back, and whatever is measured of its own host, it may have one transfer there. More than
    /// that could be refused by an origin that allows an account one connection.
    func hasRoom(for entry: AdmissionQueue.Entry) -> Bool { hasRoom(for: entry, at: entry.host) }

    /// True if one more transfer may run to a host, such as one that it is redirected to.
    func hasRoom(for entry: AdmissionQueue.Entry, at host: String) -> Bool {
        guard entry.lane >= .prefetch else { return true }
        let running = byHost[host]
        guard entry.isFirst else { return hostLimits[host].map { running < $0 } ?? true }
        // The overall limit is the best guess for a host that has none yet.
        return running < hostLimits[host] ?? limit
            || firstBySession[First(session: entry.session, host: host)] == 0
    }

    /// Counts transfers that have started to a host, or ended; those of players' lanes are ignored.
    mutating func count(_ entry: AdmissionQueue.Entry, to host: String, by change: Int) {
        guard entry.lane >= .prefetch else { return }
        inUse += change
        if entry.lane == .background { background += change }
        byHost.change(host, by: change)
        guard entry.isFirst else { return }
        first += change
        firstBySession.change(First(session: entry.session, host: host), by: change)
    }
}
