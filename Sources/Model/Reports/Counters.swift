// The daemon's counters, each with its description: `/metrics` and `sluice stats` print them.
import Histogram
package import Logging
package import Posix
package import Reactor
import Synchronization

/// Counters of one daemon; any thread may add.
package final class Counters: Sendable {
    /// One counter: its name and what it counts.
    package enum Name: Int, CaseIterable, Sendable {
        case requests, hits, partials, misses, collapsed, revalidated, stale, bypassed
        case own, left
        case clientErrors, originErrors, ownErrors
        case originRequests, originFailures, originResumes, originRetries
        case bytesFromOrigin, bytesToPlayers, bytesFromStore
        case flightsAbandoned, playlistsRewritten, notStored, readAheadPauses
        case originOutages, originProbes, offlineLists
        case revived, keyVetoes, accessLogDropped, unusedRemoved
        case bytesAhead, aheadFetches
        case epochsBegun, reloadsHeld, reloadsRepeated
        case shiftFetched, shiftMissed, shiftEpochs, shiftDropped
        case loopHolds, longTexts
        case http1Requests, http2Requests
        case playerStalls, playerStartupRequests
        case parentRequests, parentFailures
        case liveStreams, liveJoined, liveMoved, liveResumptions
        case sharedHits, sharedMisses, sharedFailures, sharedDamage, sharedHedges, sharedLosses
        case sharedBytesRead, sharedDuplicateBytes, sharedOutages
        case sharedWrites, sharedBytesWritten, sharedWriteFailures, sharedDropped, sharedChanges,
            sharedOrders

        /// The name in JSON and, after `sluice_`, in the Prometheus text format.
        package var label: String {
            switch self {
            case .requests: "requests_total"
            case .hits: "hits_total"
            case .partials: "partial_hits_total"
            case .misses: "misses_total"
            case .collapsed: "collapsed_total"
            case .revalidated: "revalidated_total"
            case .stale: "stale_total"
            case .bypassed: "bypassed_total"
            case .own: "own_total"
            case .left: "left_total"
            case .clientErrors: "client_errors_total"
            case .originErrors: "origin_errors_total"
            case .ownErrors: "own_errors_total"
            case .originRequests: "origin_requests_total"
            case .originFailures: "origin_failures_total"
            case .originResumes: "origin_resumes_total"
            case .originRetries: "origin_retries_total"
            case .bytesFromOrigin: "origin_bytes_total"
            case .bytesToPlayers: "player_bytes_total"
            case .bytesFromStore: "hit_bytes_total"
            case .flightsAbandoned: "flights_abandoned_total"
            case .playlistsRewritten: "playlists_rewritten_total"
            case .notStored: "not_stored_total"
            case .readAheadPauses: "read_ahead_pauses_total"
            case .originOutages: "origin_outages_total"
            case .originProbes: "origin_probes_total"
            case .offlineLists: "offline_lists_total"
            case .revived: "urls_revived_total"
            case .keyVetoes: "key_vetoes_total"
            case .accessLogDropped: "access_log_dropped_total"
            case .unusedRemoved: "unused_removed_total"
            case .shiftFetched: "time_shift_fetched_total"
            case .shiftMissed: "time_shift_missed_total"
            case .shiftEpochs: "time_shift_epochs_total"
            case .shiftDropped: "time_shift_dropped_total"
            case .bytesAhead: "ahead_bytes_total"
            case .aheadFetches: "ahead_fetches_total"
            case .epochsBegun: "live_epochs_total"
            case .reloadsHeld: "blocking_reloads_total"
            case .reloadsRepeated: "blocking_reloads_repeated_total"
            case .loopHolds: "loop_holds_total"
            case .longTexts: "long_texts_total"
            case .http1Requests: "http1_requests_total"
            case .http2Requests: "http2_requests_total"
            case .playerStalls: "player_stalls_total"
            case .playerStartupRequests: "player_startup_requests_total"
            case .parentRequests: "parent_requests_total"
            case .parentFailures: "parent_failures_total"
            case .liveStreams: "live_streams_total"
            case .liveJoined: "live_streams_joined_total"
            case .liveMoved: "live_viewers_moved_total"
            case .liveResumptions: "live_streams_resumed_total"
            case .sharedHits: "shared_store_hits_total"
            case .sharedMisses: "shared_store_misses_total"
            case .sharedFailures: "shared_store_failures_total"
            case .sharedDamage: "shared_store_damaged_total"
            case .sharedHedges: "shared_store_hedges_total"
            case .sharedLosses: "shared_store_losses_total"
            case .sharedBytesRead: "shared_store_read_bytes_total"
            case .sharedDuplicateBytes: "shared_store_duplicate_bytes_total"
            case .sharedOutages: "shared_store_outages_total"
            case .sharedWrites: "shared_store_writes_total"
            case .sharedBytesWritten: "shared_store_written_bytes_total"
            case .sharedWriteFailures: "shared_store_write_failures_total"
            case .sharedDropped: "shared_store_dropped_writes_total"
            case .sharedChanges: "shared_store_changes_total"
            case .sharedOrders: "shared_store_orders_taken_over_total"
            }
        }

        /// What is counted, in one sentence.
        package var help: String {
            switch self {
            case .requests: "Requests from players that reached a route."
            case .hits: "Requests answered from the store alone."
            case .partials: "Requests answered partly from the store, partly from the origin."
            case .misses: "Requests that started a fetch."
            case .collapsed: "Requests that joined another request's fetch."
            case .revalidated: "Requests answered from the store after the origin said 304."
            case .stale: "Requests answered with a stale response because the origin failed."
            case .bypassed:
                "Requests passed on, or that fetched a response that could not be stored."
            case .own: "Requests for own pages, preflights and gaps of longer windows."
            case .left: "Requests whose client left before there was a response."
            case .clientErrors: "Responses with an error caused by the client."
            case .originErrors: "Responses with an error caused by the origin."
            case .ownErrors: "Responses with an error caused by this daemon."
            case .originRequests:
                "Requests to origins, with retries, resumptions and redirects, without probes."
            case .originFailures:
                "Failed attempts to fetch from origins, also those that sent no request."
            case .originResumes: "Transfers resumed with a range request."
            case .originRetries: "Requests to origins retried before a byte had arrived."
            case .bytesFromOrigin:
                "Body bytes received from origins, those of redirects and errors included."
            case .bytesToPlayers:
                "Body bytes of content sent to players; those of errors and own pages are left out."
            case .bytesFromStore: "Body bytes sent to players by plain hits."
            case .flightsAbandoned: "Origin transfers aborted because no reader was left."
            case .playlistsRewritten: "Playlists parsed and rewritten."
            case .notStored:
                "Responses streamed but not stored because there was no room or the disk failed."
            case .readAheadPauses:
                "Pauses of origin transfers because their readers were far behind."
            case .originOutages: "Number of times an origin was found to be unreachable."
            case .originProbes:
                "Probe requests to unreachable origins, and to those of a list's missing content."
            case .offlineLists: "Playlists answered in their offline form."
            case .revived:
                "Requests for an expired or renamed URL that were answered from its successor."
            case .keyVetoes: "Origins whose merged URLs were found to return different content."
            case .accessLogDropped:
                "Lines of the access log dropped: the disk was full or slow, or nobody read them."
            case .unusedRemoved: "Objects removed because nobody had used them for max-unused."
            case .shiftFetched:
                "Resources of live streams fetched for time-shift windows and recordings."
            case .shiftMissed:
                "Segments of live streams that left the playlist before they were fetched."
            case .shiftEpochs:
                "Live playlists with a time-shift window whose media sequence number was reset."
            case .shiftDropped: "Segments removed because they had left every time-shift window."
            case .bytesAhead:
                "Body bytes from origins before a player requested them, with those of downloads."
            case .aheadFetches:
                "Resources fetched before a player requested them, without those of downloads."
            case .epochsBegun: "Live playlists whose media sequence number was reset."
            case .reloadsHeld: "Blocking playlist reloads sent to origins."
            case .reloadsRepeated: "Blocking reloads that the origin answered without holding them."
            case .loopHolds: "Handlers, timers and jobs that held a loop for over 10 ms."
            case .longTexts: "Tasks on playlists and JSON of 256 KiB or more, run off the loops."
            case .http1Requests: "Requests from players in HTTP/1.1 or HTTP/1.0."
            case .http2Requests: "Requests from players in HTTP/2."
            case .playerStalls:
                "Requests whose player reports a stall since its previous one (CMCD bs)."
            case .playerStartupRequests:
                "Requests whose player waits for them to start, seek or recover (CMCD su)."
            case .parentRequests: "Requests sent to parents, counted as origin requests too."
            case .parentFailures: "Requests to parents that failed, so that the origin was used."
            case .liveStreams: "Bodies without an end that were found to be live streams."
            case .liveJoined: "Requests that joined a live stream without an end at its edge."
            case .liveMoved:
                "Times that a viewer fell behind the window of a live stream and was moved to its edge."
            case .liveResumptions:
                "New connections to origins that continued a live stream without an end."
            case .sharedHits: "Fetches that the shared store answered."
            case .sharedMisses: "Fetches that the shared store had nothing for."
            case .sharedFailures: "Requests to the shared store that failed, damage included."
            case .sharedDamage:
                "Answers of the shared store that did not match their checksum or length."
            case .sharedHedges:
                "Fetches that asked the origin too, after the head start of the shared store."
            case .sharedLosses: "Fetches that the origin answered before the shared store did."
            case .sharedBytesRead: "Body bytes from the shared store that were used."
            case .sharedDuplicateBytes:
                "Body bytes from the shared store or an origin that were dropped for the other's."
            case .sharedOutages:
                "Number of times that the shared store was left out after failures."
            case .sharedWrites: "Objects written to the shared store."
            case .sharedBytesWritten: "Bytes written to the shared store."
            case .sharedWriteFailures: "Writes to the shared store that failed."
            case .sharedDropped:
                "Objects not written to the shared store: too many, unreadable or failed for good."
            case .sharedChanges: "Purges and pins of other nodes that were carried out here."
            case .sharedOrders: "Downloads and recordings that this node took over from another."
            }
        }
    }

    private let counts = ProcessorCounts(count: Name.allCases.count)
    /// For each processor, times to the first body byte in microseconds, up to a minute.
    private let firstBytes = (0..<Processors.copies).map { _ in FirstBytes() }

    /// The times that one processor recorded.
    ///
    /// A thread waits for the lock only where another one left the processor while it held it.
    private final class FirstBytes: Sendable {
        let times = Mutex(FirstBytes.empty)

        static var empty: Histogram<UInt32> {
            Histogram(
                lowestDiscernibleValue: 1, highestTrackableValue: 60_000_000,
                numberOfSignificantValueDigits: .two)
        }
    }

    /// The longest time that one piece of work blocked a loop, in nanoseconds; 0 if none exceeded
    /// the limit.
    private let longestHold = Atomic<Int64>(0)

    package init() {}

    /// Returns an observer that counts each piece of work that blocked a loop for too long, and
    /// logs it at debug level.
    package func loopHoldObserver(log: Logger) -> LoopHold.Observer {
        { [self] hold in
            add(.loopHolds)
            longestHold.max(hold.duration.nanoseconds, ordering: .relaxed)
            log.debug(
                "a loop was held for too long",
                metadata: [
                    "work": "\(hold.work)", "ms": "\(hold.duration.nanoseconds / 1_000_000)",
                ])
        }
    }

    /// The longest time that one piece of work blocked a loop, in whole milliseconds.
    package var longestLoopHold: Int64 { longestHold.load(ordering: .relaxed) / 1_000_000 }

    /// Adds to a counter.
    package func add(_ name: Name, _ amount: Int64 = 1) {
        counts.add(amount, at: name.rawValue)
    }

    /// Returns a counter's current value.
    package func value(of name: Name) -> Int64 {
        counts.sum(at: name.rawValue)
    }

    /// Records how long a request waited for its first byte.
    package func record(firstByte interval: Interval) {
        let microseconds = UInt64(max(1, min(interval.nanoseconds / 1000, 60_000_000)))
        let processor = firstBytes[Processors.current(of: firstBytes.count)]
        _ = processor.times.withLock { $0.record(microseconds) }
    }

    /// Percentiles of the time to first byte in milliseconds: (50th, 90th, 99th).
    package var firstBytePercentiles: [(name: String, milliseconds: Double)] {
        var all = FirstBytes.empty
        for processor in firstBytes { processor.times.withLock { all.add($0) } }
        return [("p50", 50.0), ("p90", 90.0), ("p99", 99.0)].map { name, percentile in
            (name, Double(all.valueAtPercentile(percentile)) / 1000)
        }
    }
}
