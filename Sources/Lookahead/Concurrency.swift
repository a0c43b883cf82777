// The number of concurrent transfers ahead of players: the measurements, and the controllers.
import Numbers

/// A measurement of a link, or of the transfers from one host, over a period.
package struct LinkSample: Sendable, Equatable {
    /// The length of the period in seconds.
    package var seconds: Double
    /// The body bytes that arrived in it, over all transfers.
    package var bytes: Int64
    /// True if as many transfers ran as the limit allows: only then does the sample say something
    /// about it.
    package var isFull: Bool
    /// The mean time from a request to its first byte, in seconds; nil if no response began.
    package var roundTrip: Double?
    /// The number of transfers that finished.
    package var finished: Int
    /// The number of transfers that broke, timed out, or were refused because there were too many.
    package var errors: Int

    package init(
        seconds: Double, bytes: Int64, isFull: Bool = true, roundTrip: Double? = nil,
        finished: Int = 0, errors: Int = 0
    ) {
        self.seconds = seconds
        self.bytes = bytes
        self.isFull = isFull
        self.roundTrip = roundTrip
        self.finished = finished
        self.errors = errors
    }

    /// The goodput in bytes per second.
    package var goodput: Double { seconds > 0 ? Double(bytes) / seconds : 0 }

    /// True if a tenth or more of the transfers failed, which suggests too many at once.
    package var isTroubled: Bool { errors > 0 && errors * 10 >= finished + errors }
}

/// The kind of controller that limits transfers.
package enum ConcurrencyPlan: Sendable, Equatable, CustomStringConvertible {
    /// A fixed number.
    case fixed(Int)
    /// The published table of goodputs, with one limit for all hosts.
    case table
    /// Probing: more transfers while goodput rises, fewer when it does not.
    case probe

    /// The maximum of every controller.
    package static let most = 32
    /// The initial limit on an unknown network.
    package static let start = 4

    /// Parses `fixed:8`, `table` or `probe`; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "table": self = .table
        case "probe": self = .probe
        default:
            guard text.hasPrefix("fixed:"),
                let count = ExternalNumber.integer(text.dropFirst(6), in: 1...Self.most)
            else { return nil }
            self = .fixed(count)
        }
    }

    package var description: String {
        switch self {
        case .fixed(let count): "fixed:\(count)"
        case .table: "table"
        case .probe: "probe"
        }
    }
}

/// One controller: takes samples and returns a limit.
///
/// Pure: the caller measures times.
package struct ConcurrencyController: Sendable, Equatable {
    private enum Kind: Equatable {
        case fixed(Int)
        case table(ConcurrencyTable)
        case probe(ConcurrencyProbe)
    }

    private var kind: Kind
    /// The maximum that the conditions allow: 1...32.
    ///
    /// Only probing uses it: the table has its own rules about the conditions.
    package var ceiling = ConcurrencyPlan.most {
        didSet { ceiling = max(1, min(ConcurrencyPlan.most, ceiling)) }
    }

    /// Creates a controller; `start` is the last limit measured on this network, nil if never
    /// measured.
    package init(_ plan: ConcurrencyPlan, start: Int? = nil) {
        switch plan {
        case .fixed(let count): kind = .fixed(max(1, min(ConcurrencyPlan.most, count)))
        case .table: kind = .table(ConcurrencyTable())
        case .probe: kind = .probe(ConcurrencyProbe(start: start))
        }
    }

    /// The current maximum number of transfers: 1...32.
    package var limit: Int {
        switch kind {
        case .fixed(let count): count
        case .table(let table): table.limit
        case .probe(let probe): min(ceiling, probe.limit)
        }
    }

    /// Starts a new task for the table, when transfers begin to run after none did.
    package mutating func beginTask() {
        guard case .table(var table) = kind else { return }
        table.beginTask()
        kind = .table(table)
    }

    /// Passes the conditions to the table; other controllers ignore them.
    package mutating func follow(_ conditions: MachineConditions) {
        guard case .table(var table) = kind else { return }
        table.follow(conditions)
        kind = .table(table)
    }

    /// Records a sample taken under `limit`.
    package mutating func note(_ sample: LinkSample) {
        switch kind {
        case .fixed: break
        case .table(var table):
            table.note(sample)
            kind = .table(table)
        case .probe(var probe):
            probe.note(sample, ceiling: ceiling)
            kind = .probe(probe)
        }
    }
}
