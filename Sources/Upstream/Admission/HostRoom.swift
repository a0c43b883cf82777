/// The running transfers of each host, and whether one more may run there: pure.
///
/// `AdmissionQueue` has the rules.
struct HostRoom {
    /// The most transfers to a host without a limit of its own; 0 for no limit.
    private let perHost: Int
    /// The hosts that get one transfer at a time.
    var singles = SingleHosts()
    /// What hosts may count though it has ended.
    var ends = RecentEnds()
    private var counts = Tally<String>()
    /// The running transfers that a host has redirected to another one.
    private var redirected = Tally<String>()

    init(perHost: Int) { self.perHost = perHost }

    /// Running transfers to a host, without requests that it holds on purpose.
    func inFlight(to host: String) -> Int { counts[host] }

    /// A host that has as many transfers as it may have.
    struct Full {
        let name: String
        /// The most transfers that it may have.
        let limit: Int
        /// True if the limit is the host's own.
        let isOwn: Bool
        /// True if the transfers that it has redirected to another host count as its own.
        let countsRedirected: Bool
    }

    /// Returns the hosts that a waiter must wait for, at most two; empty if there is room for it.
    func fullHosts(of entry: AdmissionQueue.Entry) -> [Full] {
        var hosts: [Full] = []
        if !hasRoom(entry.host, own: entry.hostLimit) {
            hosts.append(fullHost(entry.host, own: entry.hostLimit))
        }
        if !hasRoomAtFirst(entry) {
            hosts.append(fullHost(entry.firstHost, own: entry.firstHostLimit))
        }
        return hosts
    }

    private func fullHost(_ host: String, own: Int) -> Full {
        let isSingle = singles.isSingle(host)
        return Full(
            name: host, limit: isSingle ? 1 : own > 0 ? own : perHost,
            isOwn: own > 0 && !isSingle, countsRedirected: isSingle || own > 0)
    }

    /// Returns whether transfers to a host are counted: it may refuse one too many.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - own: its own limit; 0 without one.
    /// - Returns: true if it has any limit.
    func isCounted(_ host: String, own: Int) -> Bool {
        perHost != 0 || own != 0 || singles.isSingle(host)
    }

    /// True if there is room for a waiter.
    func hasRoom(for entry: AdmissionQueue.Entry) -> Bool {
        hasRoom(entry.host, own: entry.hostLimit) && hasRoomAtFirst(entry)
    }

    /// Returns whether one more transfer may run to a host; `own` is its own limit, 0 without one.
    func hasRoom(_ host: String, own: Int) -> Bool {
        let count = counts[host]
        if singles.isSingle(host), count + redirected[host] > 0 { return false }
        if own > 0 { return count + redirected[host] < own }
        return perHost == 0 || count < perHost
    }

    /// True unless a waiter was redirected, and the host that redirected it has reached its own
    /// limit since.
    private func hasRoomAtFirst(_ entry: AdmissionQueue.Entry) -> Bool {
        entry.firstHostLimit == 0 || entry.firstHost == entry.host
            || hasRoom(entry.firstHost, own: entry.firstHostLimit)
    }

    /// True if a transfer that no player waits for must leave a host alone that gets one transfer
    /// at a time; downloads, recordings and longer windows have their turn after a trial.
    func isHeldBack(_ entry: AdmissionQueue.Entry, at host: String, own: Int) -> Bool {
        guard entry.lane >= .prefetch else { return false }
        if ends.isRepeating(host) || ends.isRepeating(entry.firstHost) { return true }
        guard own == 1 || singles.isSingle(host) else { return false }
        let isLookahead = entry.lane == .prefetch && !entry.goesFirst && !entry.fillsWindow
        return singles.isTried(host) || isLookahead
    }

    /// Counts a running transfer at its host, and at the one that redirected it there.
    mutating func count(_ entry: AdmissionQueue.Entry, at host: String, by change: Int) {
        guard !entry.isLongPoll else { return }
        counts.change(host, by: change)
        if entry.firstHost != host { redirected.change(entry.firstHost, by: change) }
    }
}
