// The controllers of all hosts and the one over them.

/// Limits per host and in all, from samples per host and in all.
///
/// A controller learns only while its own limit is what holds transfers back: with one host both
/// move as one, with several the one that binds moves.
package struct ConcurrencyLimits: Sendable {
    /// Hosts beyond this number share the limit in all only; the ones used longest ago go first.
    private static let mostHosts = 64

    package let plan: ConcurrencyPlan
    private var start: Int?
    private var all: ConcurrencyController
    private var hosts: [String: ConcurrencyController] = [:]
    private var order: [String] = []
    /// The most that the surroundings allow.
    package private(set) var ceiling = ConcurrencyPlan.most
    private var surroundings = Surroundings()

    package init(_ plan: ConcurrencyPlan, start: Int? = nil) {
        self.plan = plan
        self.start = start
        all = ConcurrencyController(plan, start: start)
    }

    /// How many transfers may run ahead of players in all: 1...32.
    package var limit: Int { all.limit }

    /// How many of them to one host.
    package func limit(of host: String) -> Int {
        min(all.limit, hosts[host]?.limit ?? all.limit)
    }

    /// The limits of the hosts that samples came from.
    package var byHost: [String: Int] { hosts.mapValues(\.limit) }

    /// Takes note of one stretch.
    ///
    /// - Parameters:
    ///   - sample: of all transfers.
    ///   - each: of the hosts that had transfers, by name.
    package mutating func note(_ sample: LinkSample, each: [String: LinkSample]) {
        all.note(sample)
        // The table gives one number for all.
        guard plan != .table else { return }
        for (host, sample) in each {
            if hosts[host] == nil {
                // What the link allows is the best guess for a host that nothing is known of.
                var made = ConcurrencyController(plan, start: each.count > 1 ? all.limit : start)
                made.ceiling = ceiling
                hosts[host] = made
                order.append(host)
                if order.count > Self.mostHosts { hosts[order.removeFirst()] = nil }
            }
            hosts[host]?.note(sample)
        }
    }

    /// Transfers begin to run after none did.
    package mutating func beginTask() { all.beginTask() }

    /// Follows the surroundings.
    ///
    /// - Parameters:
    ///   - surroundings: of the machine.
    ///   - goodput: bytes a second, where they were measured.
    package mutating func follow(_ surroundings: Surroundings, goodput: Double?) {
        self.surroundings = surroundings
        all.follow(surroundings)
        follow(ceiling: surroundings.ceiling(goodput: goodput))
    }

    /// Follows a ceiling.
    package mutating func follow(ceiling: Int) {
        guard ceiling != self.ceiling else { return }
        self.ceiling = ceiling
        all.ceiling = ceiling
        for host in hosts.keys { hosts[host]?.ceiling = ceiling }
    }

    /// Forgets all that was measured: another network.
    ///
    /// - Parameter start: what that one allowed last time; nil when it is new.
    package mutating func restart(at start: Int?) {
        self.start = start
        all = ConcurrencyController(plan, start: start)
        all.ceiling = ceiling
        all.follow(surroundings)
        hosts = [:]
        order = []
    }
}
