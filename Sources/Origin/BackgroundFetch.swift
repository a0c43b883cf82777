// A fetch that no player asked for: brings a resource, or a part of it, into the store, behind
// everything that players wait for.
//
// What it does on the upstream loop is in `AheadTask`; this is the end that other threads hold.
package import Model
package import Store
import Synchronization
package import Upstream

/// One such fetch, from `Flights.bring` to its one `End`.
///
/// Any thread may hold and cancel it; letting it go changes nothing.
package final class BackgroundFetch: Sendable {
    /// What is to be brought.
    package struct Request: Sendable {
        package let resource: Resource
        /// The bytes that are wanted; nil for the whole body.
        ///
        /// An end beyond the body's means the body's.
        package var range: Range<Int64>?
        /// `prefetch` or `background`.
        package var lane = Lane.prefetch
        /// True holds the transfer back while any player waits for media, so that it takes none of
        /// the line from them.
        package var yields = true

        package init(
            resource: Resource, range: Range<Int64>? = nil, lane: Lane = Lane.prefetch,
            yields: Bool = true
        ) {
            self.resource = resource
            self.range = range
            self.lane = lane
            self.yields = yields
        }
    }

    /// How it ended.
    package enum End: Sendable {
        /// Every wanted byte is in the store.
        case stored(Report)
        /// What has come is kept.
        case failed(ProxyFailure, Report)
        /// What has come is kept.
        case cancelled(Report)

        package var report: Report {
            switch self {
            case .stored(let report), .failed(_, let report), .cancelled(let report): report
            }
        }
    }

    /// What it brought.
    package struct Report: Sendable, Equatable {
        /// Bytes that were not there before, whoever's transfer brought them.
        package var broughtBytes: Int64 = 0
        /// The length of the whole body, if known.
        package var total: Int64?
        /// The seconds in which a transfer was asked for or on its way.
        package var activeSeconds = 0.0
    }

    private static let last = Atomic<UInt64>(0)
    package let number: UInt64
    private let flights: Flights

    fileprivate init(_ flights: Flights) {
        number = Self.last.add(1, ordering: .relaxed).newValue
        self.flights = flights
    }

    /// Takes the request back; never blocks.
    ///
    /// A transfer that nobody else wants ends at once, unless the rest of it is about to arrive;
    /// `cancelled` follows if the fetch had not ended yet.
    package func cancel() {
        flights.onLoop { [number] in $0.ahead.cancel(number) }
    }

    /// Lets it go on beside playback, or holds it back again.
    package func setYields(_ yields: Bool) {
        flights.onLoop { [number] in $0.ahead.setYields(yields, number) }
    }
}

extension Flights {
    /// Starts a fetch that no player asked for.
    ///
    /// - Parameters:
    ///   - wanted: what to bring.
    ///   - done: called once, on the upstream loop, and not at all where the daemon stops; it must
    ///     not block.
    /// - Returns: what it can be cancelled by.
    package func bring(
        _ wanted: BackgroundFetch.Request, done: @escaping @Sendable (BackgroundFetch.End) -> Void
    ) -> BackgroundFetch {
        precondition(wanted.lane >= .prefetch, "playback is for players")
        let fetch = BackgroundFetch(self)
        onLoop { [number = fetch.number] in $0.ahead.start(wanted, number, in: $0, done: done) }
        return fetch
    }

    /// Tells that a viewer has gone on to another title: transfers of this session end with their
    /// readers, without the grace that players that may come back are given.
    package func letGo(ofSession number: UInt64) {
        onLoop { $0.letGo(ofSession: number) }
    }

    /// Tells that a reader lives on what may be fetched ahead only.
    package func readerJoined(_ object: StoredObject) {
        onLoop { [key = object.key, generation = object.generation] in
            $0.readerJoined(key, generation: generation)
        }
    }
}

/// Whether anything is fetched ahead just now, for readers, which need not say that they wait else.
package final class AheadGauge: Sendable {
    private let count = Atomic<Int>(0)

    package init() {}

    package var running: Int { count.load(ordering: .relaxed) }

    package var isRunning: Bool { running > 0 }

    package func add(_ change: Int) { count.add(change, ordering: .relaxed) }
}
