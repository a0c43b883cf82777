// The controllers of all hosts, and the overall one.

/// Limits per host and in all, from samples per host and in all.
///
/// A controller learns only while its own limit restricts the transfers: with one host both limits
/// change together, with several hosts only the restricting one changes.
package struct ConcurrencyLimits: Sendable {
    /// The maximum number of hosts with a limit of their own; the host added first is dropped
    /// first.
    private static let mostHosts = 64

    package let plan: ConcurrencyPlan
    private var start: Int?
    private var all: ConcurrencyController
    private var hosts: [String: ConcurrencyController] = [:]
    private var order: [String] = []
    /// The maximum that the conditions allow.
    package private(set) var ceiling = ConcurrencyPlan.most
    private var conditions = MachineConditions()

    package init(_ plan: ConcurrencyPlan, start: Int? = nil) {
        self.plan = plan
        self.start = start
        all = ConcurrencyController(plan, start: start)
    }

    /// The maximum number of transfers ahead of players in all: 1...32.
    package var limit: Int { all.limit }

    /// Returns the maximum number of transfers from one host.
    package func limit(of host: String) -> Int {
        min(all.limit, hosts[host]?.limit ?? all.limit)
    }

    /// True if the limit of a host holds transfers back there.
    ///
    /// Recordings exceed the overall limit and keep that of their host: where they alone use up the
    /// overall one, it says nothing of the host.
    ///
    /// - Parameters:
    ///   - host: the host.
    ///   - inFlight: the transfers that run from it.
    ///   - recordings: the transfers of recordings that run from all hosts.
    /// - Returns: true if a sample of the host shows the effect of its limit.
    package func isFull(_ host: String, inFlight: Int, recordings: Int) -> Bool {
        let isBoundByAll = recordings < all.limit
        return inFlight >= (isBoundByAll ? limit(of: host) : hosts[host]?.limit ?? all.limit)
    }

    /// The limits of the hosts with samples.
    package var byHost: [String: Int] { hosts.mapValues(\.limit) }

    /// Records the samples of one period.
    ///
    /// - Parameters:
    ///   - sample: the sample over all transfers.
    ///   - each: the samples of the hosts that had transfers, by name.
    package mutating func note(_ sample: LinkSample, each: [String: LinkSample]) {
        all.note(sample)
        // The table has one limit for all hosts.
        guard plan != .table else { return }
        for (host, sample) in each {
            if hosts[host] == nil {
                // The overall limit is the best guess for an unknown host.
                var made = ConcurrencyController(plan, start: each.count > 1 ? all.limit : start)
                made.ceiling = ceiling
                hosts[host] = made
                order.append(host)
                if order.count > Self.mostHosts { hosts[order.removeFirst()] = nil }
            }
            hosts[host]?.note(sample)
        }
    }

    /// Starts a new task, when transfers begin to run after none did.
    package mutating func beginTask() { all.beginTask() }

    /// Adapts the limits to the conditions.
    ///
    /// - Parameters:
    ///   - conditions: the state of the machine.
    ///   - goodput: in bytes per second; nil if not measured.
    package mutating func follow(_ conditions: MachineConditions, goodput: Double?) {
        self.conditions = conditions
        all.follow(conditions)
        follow(ceiling: conditions.ceiling(goodput: goodput))
    }

    /// Sets the ceiling of all controllers.
    package mutating func follow(ceiling: Int) {
        guard ceiling != self.ceiling else { return }
        self.ceiling = ceiling
        all.ceiling = ceiling
        for host in hosts.keys { hosts[host]?.ceiling = ceiling }
    }

    /// Resets all measurements after a network change.
    ///
    /// - Parameter start: the last limit measured on the new network; nil if never measured.
    package mutating func restart(at start: Int?) {
        self.start = start
        all = ConcurrencyController(plan, start: start)
        all.ceiling = ceiling
        all.follow(conditions)
        hosts = [:]
        order = []
    }
}
