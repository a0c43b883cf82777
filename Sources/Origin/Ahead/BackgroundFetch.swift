// An ahead fetch: fetches a resource, or a part of it, into the store, with lower priority than
// everything that players wait for.
//
// The part that runs on the upstream loop is `AheadTask`; this is the handle for other threads.
package import Model
import Synchronization
package import Upstream

/// The handle of one ahead fetch, from `Flights.bring` to its one `End`.
///
/// Any thread may hold and cancel it; dropping it changes nothing.
package final class BackgroundFetch: Sendable {
    /// What to fetch.
    package struct Request: Sendable {
        package let resource: Resource
        /// The bytes to fetch; nil for the whole body.
        ///
        /// An end beyond the end of the body is clamped to it.
        package var range: Range<Int64>?
        /// `prefetch` or `background`.
        package var lane = Lane.prefetch
        /// True pauses the transfer while any player waits for media, to leave the whole line to
        /// players.
        package var yields = true
        /// True if a body is stored although it is empty and states no lifetime.
        package var keepsEmpty = false
        /// True if only a page of another site has a use for it: no private host is asked.
        package var isForPage = false
        /// True if it precedes all other prefetches that wait for a slot.
        package var goesFirst = false
        /// True if it is for a longer window: a host with one connection is asked while that is
        /// free, and not only once a player requests the same.
        package var fillsWindow = false
        /// True if a complete body that is stored is revalidated where a live list may have given
        /// its name another meaning since.
        package var revalidatesDoubtful = false
        /// True if what is stored is revalidated; a complete body stays until its new version is
        /// whole.
        package var refreshes = false

        package init(
            resource: Resource, range: Range<Int64>? = nil, lane: Lane = Lane.prefetch,
            yields: Bool = true, keepsEmpty: Bool = false, isForPage: Bool = false
        ) {
            self.resource = resource
            self.range = range
            self.lane = lane
            self.yields = yields
            self.keepsEmpty = keepsEmpty
            self.isForPage = isForPage
        }
    }

    /// How it ended.
    package enum End: Sendable {
        /// Every wanted byte is in the store.
        case stored(Report)
        /// The fetch failed; what was received stays stored.
        case failed(ProxyFailure, Report)
        /// The fetch was cancelled; what was received stays stored.
        case cancelled(Report)

        package var report: Report {
            switch self {
            case .stored(let report), .failed(_, let report), .cancelled(let report): report
            }
        }
    }

    /// What the fetch achieved.
    package struct Report: Sendable, Equatable {
        /// Bytes that were not stored before, whichever transfer delivered them.
        package var broughtBytes: Int64 = 0
        /// The length of the whole body, if known.
        package var total: Int64?
        /// The seconds during which a transfer was requested or running.
        package var activeSeconds = 0.0
    }

    private static let last = Atomic<UInt64>(0)
    package let number: UInt64
    private let flights: Flights

    fileprivate init(_ flights: Flights) {
        number = Self.last.add(1, ordering: .relaxed).newValue
        self.flights = flights
    }

    /// Cancels the fetch; never blocks.
    ///
    /// A transfer that nothing else needs ends immediately, unless its rest is about to arrive;
    /// `cancelled` follows if the fetch had not ended yet.
    package func cancel() {
        flights.onLoop { [number] in $0.ahead.cancel(number) }
    }

    /// Cancels several fetches; never blocks.
    ///
    /// The last one started goes first: a fetch that waits for a slot would otherwise get that of
    /// one cancelled before it, and send its request.
    ///
    /// - Parameter fetches: fetches of one `Flights`, in any order.
    package static func cancel(_ fetches: some Sequence<BackgroundFetch>) {
        let newestFirst = fetches.sorted { $0.number > $1.number }
        newestFirst.first?.flights.onLoop { [numbers = newestFirst.map(\.number)] in
            for number in numbers { $0.ahead.cancel(number) }
        }
    }

    /// Cancels those of several fetches that still wait for players or for a slot; never blocks.
    ///
    /// `cancelled` follows for each of these; the others go on.
    ///
    /// - Parameter fetches: fetches of one `Flights`, in any order.
    package static func cancelWaiting(_ fetches: some Sequence<BackgroundFetch>) {
        let newestFirst = fetches.sorted { $0.number > $1.number }
        newestFirst.first?.flights.onLoop { [numbers = newestFirst.map(\.number)] in
            for number in numbers { $0.ahead.cancelWaiting(number) }
        }
    }

    /// Lets the fetch run beside playback, or makes it yield again.
    package func setYields(_ yields: Bool) {
        flights.onLoop { [number] in $0.ahead.setYields(yields, number) }
    }
}

extension Flights {
    /// Starts an ahead fetch.
    ///
    /// - Parameters:
    ///   - wanted: what to fetch.
    ///   - done: called once, on the upstream loop, but not at all if the daemon stops; must not
    ///     block.
    /// - Returns: the handle, for cancelling.
    package func bring(
        _ wanted: BackgroundFetch.Request, done: @escaping @Sendable (BackgroundFetch.End) -> Void
    ) -> BackgroundFetch {
        precondition(wanted.lane >= .prefetch, "playback is for players")
        let fetch = BackgroundFetch(self)
        onLoop { [number = fetch.number] in $0.ahead.start(wanted, number, in: $0, done: done) }
        return fetch
    }
}

/// Counts running ahead fetches, so that readers skip reporting to them while there are none.
package final class AheadGauge: Sendable {
    private let count = Atomic<Int>(0)

    package init() {}

    package var running: Int { count.load(ordering: .relaxed) }

    package var isRunning: Bool { running > 0 }

    package func add(_ change: Int) { count.add(change, ordering: .relaxed) }
}
