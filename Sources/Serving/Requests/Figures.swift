// The daemon's figures at one moment, as JSON and in the Prometheus text format.
import HTTPServer
import Model
import Origin
import Posix
import Reactor
import Store
import Upstream

/// A snapshot of the daemon's figures.
struct Figures {
    let counters: Counters
    let store: StoreStatistics
    let space: StoreSpace
    let upstream: UpstreamStatistics
    let transfers: TransferFigures
    let status: StatusSource
    /// The number of running ahead fetches.
    var aheadRunning = 0
    var concurrency = ConcurrencyReport.Figures()
    /// The number of origins that are down.
    var originsDown = 0
    /// The second level; nil without one.
    var sharedStore: SharedStoreReport?

    /// What is one number, in JSON and as a metric, besides the counters.
    private var single: [Metric] {
        let handshakes = status.handshakes()
        return [
            Metric(
                .gauge, "uptime_seconds", "Seconds since the start.",
                (Monotonic.now() - status.startedAt).nanoseconds / 1_000_000_000),
            Metric(
                .gauge, "connections", "Open connections of players.",
                Int64(status.connections())),
            Metric(
                .counter, "tls_handshakes_full_total",
                "Full TLS handshakes with players.",
                Int64(handshakes.full)),
            Metric(
                .counter, "tls_handshakes_resumed_total",
                "Resumed TLS handshakes with players.",
                Int64(handshakes.resumed)),
            Metric(
                .counter, "tls_handshakes_failed_total",
                "Connections to the TLS port that ended before the handshake was complete.",
                Int64(handshakes.failed)),
            Metric(
                .gauge, "slots_in_use", "Transfers in a slot, extra slots included.",
                Int64(upstream.slotsInUse)),
            Metric(
                .gauge, "slots_limit", "Maximum number of concurrent transfers in slots.",
                Int64(upstream.slotLimit)),
            Metric(
                .gauge, "held_in_use", "Blocking requests currently held by origins.",
                Int64(upstream.heldInUse)),
            Metric(
                .gauge, "express_in_use", "Transfers in the express lane.",
                Int64(upstream.expressInUse)),
            Metric(
                .gauge, "transfers_waiting", "Transfers waiting for a slot.",
                Int64(upstream.waiting.reduce(0, +))),
            Metric(
                .gauge, "ahead_running", "Active fetches that no player has requested yet.",
                Int64(aheadRunning)),
            Metric(
                .gauge, "ahead_limit", "Maximum number of transfers ahead of players.",
                Int64(concurrency.limit)),
            Metric(
                .gauge, "ahead_downloads_limit", "Of these for downloads.",
                Int64(concurrency.background)),
            Metric(
                .gauge, "peak_slots_in_use",
                "Maximum number of slots in use at the same time since start.",
                Int64(upstream.peakSlotsInUse)),
            Metric(
                .gauge, "origins_down", "Origins found to be unreachable.",
                Int64(originsDown)),
            Metric(
                .gauge, "shared_store_up",
                "1 while the shared store is used, 0 without one and while it is left out.",
                sharedStore?.isUp == true ? 1 : 0),
            Metric(
                .gauge, "shared_store_failing",
                "Tasks that fail at the shared store: reading changes and orders, writing objects.",
                Int64(sharedStore?.failing.count ?? 0)),
            Metric(
                .gauge, "shared_store_waiting_writes",
                "Objects that wait to be written to the shared store.",
                Int64(sharedStore?.waiting ?? 0)),
            Metric(
                .counter, "origin_connections_total", "Connections opened to origins.",
                Int64(transfers.connections.new)),
            Metric(
                .counter, "origin_rows_replaced_total",
                "Origins that left the table of origins for others, with their counts.",
                Int64(transfers.origins.replaced)),
            Metric(
                .counter, "origin_connections_reused_total",
                "Requests to origins on a reused connection.",
                Int64(transfers.connections.reused)),
            Metric(
                .counter, "origin_connections_lost_total",
                "Connections to origins that were ended since nothing on them was acknowledged.",
                Int64(transfers.connections.lost)),
            Metric(
                .gauge, "origin_reads_bounded",
                "Connections to origins with a bounded receive window, which yield to others.",
                Int64(transfers.yields.values.reduce(0) { $0 + $1.connections })),
            Metric(
                .counter, "origin_yield_seconds_total",
                "Seconds in which downloads and other background transfers yielded.",
                Int64(upstream.yield.backgroundSeconds)),
            Metric(
                .counter, "origin_yield_releases_total",
                "Times that players' transfers ceased to yield because others filled the line.",
                Int64(upstream.yield.releases)),
            Metric(
                .counter, "origin_tls_full_total", "Full TLS handshakes with origins.",
                Int64(transfers.connections.full)),
            Metric(
                .counter, "origin_tls_resumed_total",
                "TLS handshakes with origins that resumed a session.",
                Int64(transfers.connections.resumed)),
            Metric(
                .gauge, "longest_loop_hold_milliseconds",
                "Longest time that one handler, timer or job held a loop, if over 10 ms.",
                counters.longestLoopHold),
            Metric(
                .gauge, "stored_objects", "Objects in the store.",
                Int64(store.objects)),
            Metric(
                .gauge, "stored_bytes", "Size of the store on disk in bytes.",
                store.bytes),
            Metric(
                .gauge, "deleting_objects",
                "Objects that were cleared and whose files are still to be deleted.",
                Int64(store.deletion.objects)),
            Metric(
                .gauge, "deleting_bytes",
                "Bytes of cleared objects whose files are not yet deleted; they count as stored.",
                store.deletion.bytes),
            Metric(
                .gauge, "store_budget_bytes",
                "Maximum size of the store in bytes: cache-size, or less where a quota is smaller.",
                store.budgetBytes),
            Metric(
                .gauge, "store_min_free_bytes", "Bytes of the disk that the store leaves free.",
                space.minFree),
            Metric(
                .gauge, "store_suspended",
                "1 while nothing is stored because a disk write failed, else 0.",
                store.isStoringSuspended ? 1 : 0),
            Metric(
                .gauge, "store_out_of_room",
                "1 while new responses are not stored because evictions make no room for them, else 0.",
                store.isOutOfRoom ? 1 : 0),
            Metric(
                .gauge, "open_objects", "Objects held open.",
                Int64(store.openObjects)),
            Metric(
                .counter, "evictions_total", "Objects evicted.",
                Int64(store.evictions)),
            Metric(
                .counter, "storage_failures_total", "Failed disk writes.",
                Int64(store.storageFailures)),
            Metric(
                .counter, "index_failures_total", "Failed reads and writes of the index.",
                Int64(store.indexFailures)),
            Metric(
                .gauge, "index_behind",
                "1 while the index rejects changes, which are kept in memory, else 0.",
                store.isIndexBehind ? 1 : 0),
            Metric(
                .gauge, "index_damaged",
                "1 while the index is damaged, else 0; if it stays 1, restart the daemon.",
                store.isIndexDamaged ? 1 : 0),
            Metric(
                .counter, "damaged_objects_total",
                "Objects removed because their bytes could not be verified.",
                Int64(store.damagedObjects)),
        ]
    }

    /// The metrics of one number: the counters first.
    private var numbers: [Metric] {
        let counted = Counters.Name.allCases.map { name in
            Metric(.counter, name.label, name.help, counters.value(of: name))
        }
        return counted + single
    }

    /// The share of content responses whose content came from the store: hits, revalidated and
    /// stale.
    private var hitRatio: Double? {
        Self.ratio(counters.sum(of: Counters.kept), counters.sum(of: Counters.content))
    }

    /// The share of bytes sent to players by plain hits.
    private var byteHitRatio: Double? {
        Self.ratio(counters.value(of: .bytesFromStore), counters.value(of: .bytesToPlayers))
    }

    /// Nil if nothing was counted.
    private static func ratio(_ part: Int64, _ whole: Int64) -> Double? {
        whole > 0 ? Double(min(part, whole)) / Double(whole) : nil
    }

    /// One flat object; the names are those of the metrics.
    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("version", .text(status.version)), .init("hit_ratio", .optional(hitRatio)),
            .init("byte_hit_ratio", .optional(byteHitRatio)),
        ]
        members += numbers.map { .init($0.name, .optional($0.number)) }
        members.append(.init("ahead_limit_reason", .text("\(concurrency.reason)")))
        let lanes = Lane.allCases.map { lane in
            JSONValue.Member(lane.name, .number(Int64(upstream.waiting[lane.rawValue])))
        }
        members.append(.init("waiting_by_lane", .object(lanes)))
        let times = counters.firstBytePercentiles.map { percentile in
            JSONValue.Member(percentile.name, .fraction(percentile.milliseconds))
        }
        members.append(.init("first_byte_ms", .object(times)))
        return .object(members)
    }

    /// The metrics that have labels, or that the file system may not tell.
    private var further: [Metric] {
        let early = zip(EarlyConnectionResult.allCases, upstream.early).map { result, count in
            Metric.Sample(labels: [("result", result.rawValue)], value: "\(count)")
        }
        let waiting = Lane.allCases.map { lane in
            Metric.Sample(
                labels: [("lane", lane.name)], value: "\(upstream.waiting[lane.rawValue])")
        }
        return [
            Metric(
                .gauge, "store_free_bytes", "Free bytes on the disk of the store.",
                samples: space.free.map { [Metric.Sample(value: "\($0)")] } ?? []),
            Metric(
                .gauge, "lane_transfers_waiting", "Transfers waiting for a slot, by lane.",
                samples: waiting),
            Metric(
                .counter, "origin_early_connections_total",
                "Connections to origins opened because a playlist named them, before any request.",
                samples: early),
            transfers.phases,
        ]
    }

    /// The answer of `/metrics`: Prometheus text exposition format 0.0.4.
    var prometheus: String {
        var text = ""
        for metric in numbers + further { metric.write(to: &text) }
        return text
    }
}

extension Counters {
    /// Content responses whose content came from the store.
    static let kept: [Name] = [.hits, .revalidated, .stale]
    /// All content responses.
    static let content: [Name] = kept + [.partials, .misses, .collapsed, .bypassed]

    func sum(of names: [Name]) -> Int64 { names.reduce(0) { $0 + value(of: $1) } }
}

extension Figures {
    /// Gathers the figures of this moment; `body` is called on the loop.
    static func gather(
        _ core: ProxyCore, _ status: StatusSource, on loop: EventLoop,
        _ body: @escaping (Figures) -> Void
    ) {
        let bound = LoopBound(body, to: loop)
        let (store, space) = (core.store.statistics(), core.store.space())
        let down = core.origins.health.downCount
        let (counters, ahead, shared) = (core.counters, core.ahead, core.origins.sharedStore)
        let concurrency = core.concurrency.now
        core.flights.statistics { upstream, transfers in
            bound.enqueue { body, _ in
                body(
                    Figures(
                        counters: counters, store: store, space: space, upstream: upstream,
                        transfers: transfers, status: status, aheadRunning: ahead.running,
                        concurrency: concurrency, originsDown: down,
                        sharedStore: shared))
            }
        }
    }
}
