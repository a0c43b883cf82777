// How many transfers may run at once ahead of players: what is measured, and what decides.
import Numbers

/// What was seen of a link, or of one host, for a stretch of time.
package struct LinkSample: Sendable, Equatable {
    /// How long the stretch was, in seconds.
    package var seconds: Double
    /// Body bytes that arrived in it, of all transfers.
    package var bytes: Int64
    /// True when all that was allowed to run did run: only then does the sample tell of the limit.
    package var isFull: Bool
    /// From a request to its first byte, in seconds, the mean; nil when none was answered.
    package var roundTrip: Double?
    /// Transfers that came to their end.
    package var finished: Int
    /// Transfers that broke, timed out, or were refused because there were too many.
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

    /// Bytes a second.
    package var goodput: Double { seconds > 0 ? Double(bytes) / seconds : 0 }

    /// Whether so much broke that it looks like too many at once: a tenth or more.
    package var isTroubled: Bool { errors > 0 && errors * 10 >= finished + errors }
}

/// Which controller decides.
package enum ConcurrencyPlan: Sendable, Equatable, CustomStringConvertible {
    /// Always this many.
    case fixed(Int)
    /// By the published table of goodputs, one number for all hosts.
    case table
    /// By trying: more while goodput rises, fewer when it does not.
    case probe

    /// No controller ever allows more.
    package static let most = 32
    /// Where one begins that knows nothing of the network.
    package static let start = 4

    /// Reads `fixed:8`, `table` or `probe`; nil for anything else.
    package init?(_ text: String) {
        switch text {
        case "table": self = .table
        case "probe": self = .probe
        default:
            guard text.hasPrefix("fixed:"),
                let count = OutsideNumber.integer(text.dropFirst(6), in: 1...Self.most)
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

/// One controller: hears samples, says a limit.
///
/// Pure: whoever measures tells it the times.
package struct ConcurrencyController: Sendable, Equatable {
    private enum Kind: Equatable {
        case fixed(Int)
        case table(ConcurrencyTable)
        case probe(ConcurrencyProbe)
    }

    private var kind: Kind
    /// The most that the surroundings allow: 1...32.
    ///
    /// Only probing follows it: the table has rules of its own about its surroundings.
    package var ceiling = ConcurrencyPlan.most {
        didSet { ceiling = max(1, min(ConcurrencyPlan.most, ceiling)) }
    }

    /// `start` is what this network allowed last time; nil when it is new.
    package init(_ plan: ConcurrencyPlan, start: Int? = nil) {
        switch plan {
        case .fixed(let count): kind = .fixed(max(1, min(ConcurrencyPlan.most, count)))
        case .table: kind = .table(ConcurrencyTable())
        case .probe: kind = .probe(ConcurrencyProbe(start: start))
        }
    }

    /// How many transfers may run now: 1...32.
    package var limit: Int {
        switch kind {
        case .fixed(let count): count
        case .table(let table): table.limit
        case .probe(let probe): min(ceiling, probe.limit)
        }
    }

    /// Transfers begin to run after none did.
    package mutating func beginTask() {
        guard case .table(var table) = kind else { return }
        table.beginTask()
        kind = .table(table)
    }

    /// Follows the surroundings.
    package mutating func follow(_ surroundings: Surroundings) {
        guard case .table(var table) = kind else { return }
        table.follow(surroundings)
        kind = .table(table)
    }

    /// Takes note of what was seen under `limit`.
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
