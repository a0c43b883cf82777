// The daemon's figures at one moment, as JSON and in the Prometheus text format.
import HTTPServer
import Model
import Origin
import Posix
import Reactor
import Store
import Upstream

/// A snapshot.
struct Figures {
    let counters: Counters
    let store: StoreStatistics
    let space: StoreSpace
    let upstream: UpstreamStatistics
    let transfers: TransferFigures
    let status: StatusSource
    /// Fetches that no player asked for.
    var aheadRunning = 0
    var concurrency = ConcurrencyReport.Figures()
    /// Origins that do not answer.
    var originsDown = 0

    private struct Gauge {
        let name: String
        let help: String
        let value: Int64
    }

    private var gauges: [Gauge] {
        let handshakes = status.handshakes()
        return [
            Gauge(
                name: "uptime_seconds", help: "Seconds since the start.",
                value: (Monotonic.now() - status.startedAt).nanoseconds / 1_000_000_000),
            Gauge(
                name: "connections", help: "Open connections of players.",
                value: Int64(status.connections())),
            Gauge(
                name: "tls_handshakes_full_total",
                help: "TLS handshakes of players with certificate and key exchange.",
                value: Int64(handshakes.full)),
            Gauge(
                name: "tls_handshakes_resumed_total",
                help: "TLS handshakes of players that continued an earlier session.",
                value: Int64(handshakes.resumed)),
            Gauge(
                name: "tls_handshakes_failed_total",
                help: "Connections to the TLS port that ended before their handshake was over.",
                value: Int64(handshakes.failed)),
            Gauge(
                name: "slots_in_use", help: "Transfers that hold a slot.",
                value: Int64(upstream.slotsInUse)),
            Gauge(
                name: "slots_limit", help: "Slots that transfers may hold at once.",
                value: Int64(upstream.slotLimit)),
            Gauge(
                name: "held_in_use", help: "Requests that origins hold until there is more.",
                value: Int64(upstream.heldInUse)),
            Gauge(
                name: "express_in_use", help: "Transfers in the express lane.",
                value: Int64(upstream.expressInUse)),
            Gauge(
                name: "transfers_waiting", help: "Transfers that wait for a slot.",
                value: Int64(upstream.waiting.reduce(0, +))),
            Gauge(
                name: "ahead_running", help: "Fetches that no player has asked for yet.",
                value: Int64(aheadRunning)),
            Gauge(
                name: "ahead_limit", help: "Transfers that may run ahead of players.",
                value: Int64(concurrency.limit)),
            Gauge(
                name: "ahead_downloads_limit", help: "Of these for downloads.",
                value: Int64(concurrency.background)),
            Gauge(
                name: "peak_slots_in_use", help: "The most slots that were ever held at once.",
                value: Int64(upstream.peakSlotsInUse)),
            Gauge(
                name: "origins_down", help: "Origins that were found not to answer.",
                value: Int64(originsDown)),
            Gauge(
                name: "origin_connections_total", help: "Connections opened to origins.",
                value: Int64(transfers.connections.new)),
            Gauge(
                name: "origin_connections_reused_total",
                help: "Requests to origins on a connection that was there.",
                value: Int64(transfers.connections.reused)),
            Gauge(
                name: "origin_tls_full_total", help: "Full TLS handshakes with origins.",
                value: Int64(transfers.connections.full)),
            Gauge(
                name: "origin_tls_resumed_total",
                help: "TLS handshakes with origins that resumed a session.",
                value: Int64(transfers.connections.resumed)),
            Gauge(
                name: "longest_loop_hold_milliseconds",
                help: "The longest time that one handler, timer or job held a loop, if over 10 ms.",
                value: counters.longestLoopHold),
            Gauge(
                name: "stored_objects", help: "Objects in the store.", value: Int64(store.objects)),
            Gauge(
                name: "stored_bytes", help: "Bytes that the store takes on the disk.",
                value: store.bytes),
            Gauge(
                name: "deleting_objects",
                help: "Objects that were cleared and whose files are still to be deleted.",
                value: Int64(store.deletion.objects)),
            Gauge(
                name: "deleting_bytes", help: "Bytes of those, which count as stored until then.",
                value: store.deletion.bytes),
            Gauge(
                name: "store_budget_bytes", help: "Bytes that the store may take.",
                value: store.budgetBytes),
            Gauge(
                name: "store_min_free_bytes", help: "Bytes of the disk that the store leaves free.",
                value: space.minFree),
            Gauge(
                name: "store_suspended",
                help:
                    "1 while new objects are not stored because the disk refused a write, else 0.",
                value: store.isStoringSuspended ? 1 : 0),
            Gauge(
                name: "open_objects", help: "Objects held open.", value: Int64(store.openObjects)),
            Gauge(name: "evictions_total", help: "Objects evicted.", value: Int64(store.evictions)),
            Gauge(
                name: "storage_failures_total", help: "Writes that the disk refused.",
                value: Int64(store.storageFailures)),
            Gauge(
                name: "damaged_objects_total",
                help: "Objects dropped because they could not be proved.",
                value: Int64(store.damagedObjects)),
        ]
    }

    /// The share of answered requests for content that needed nothing of an origin's content.
    private var hitRatio: Double? {
        let kept: [Counters.Name] = [.hits, .revalidated, .stale]
        let all: [Counters.Name] = kept + [.partials, .misses, .collapsed, .bypassed]
        return Self.ratio(
            kept.reduce(0) { $0 + counters.value(of: $1) },
            all.reduce(0) { $0 + counters.value(of: $1) })
    }

    /// The share of bytes sent to players that plain hits sent.
    private var byteHitRatio: Double? {
        Self.ratio(counters.value(of: .bytesFromStore), counters.value(of: .bytesToPlayers))
    }

    /// Nil where nothing was counted.
    private static func ratio(_ part: Int64, _ whole: Int64) -> Double? {
        whole > 0 ? Double(min(part, whole)) / Double(whole) : nil
    }

    /// One flat object; names are those of the metrics.
    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init("version", .text(status.version)), .init("hit_ratio", .optional(hitRatio)),
            .init("byte_hit_ratio", .optional(byteHitRatio)),
        ]
        members += Counters.Name.allCases.map { .init($0.label, .number(counters.value(of: $0))) }
        members += gauges.map { .init($0.name, .number($0.value)) }
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

    private var earlyConnections: String {
        let name = "sluice_origin_early_connections_total"
        var text = "# HELP \(name) Connections to origins named by playlists, before any request.\n"
        text += "# TYPE \(name) counter\n"
        for (result, count) in zip(EarlyConnectionResult.allCases, upstream.early) {
            text += "\(name){result=\"\(result.rawValue)\"} \(count)\n"
        }
        return text
    }

    private var waitingByLane: String {
        let name = "sluice_lane_transfers_waiting"
        var text = "# HELP \(name) Transfers that wait for a slot, by lane.\n# TYPE \(name) gauge\n"
        for lane in Lane.allCases {
            text += "\(name){lane=\"\(lane.name)\"} \(upstream.waiting[lane.rawValue])\n"
        }
        return text
    }

    /// Empty where the file system does not say.
    private var freeOnDisk: String {
        guard let free = space.free else { return "" }
        let name = "sluice_store_free_bytes"
        return "# HELP \(name) Bytes free on the disk of the store.\n"
            + "# TYPE \(name) gauge\n\(name) \(free)\n"
    }

    /// Prometheus text exposition format 0.0.4.
    var prometheus: String {
        var text = ""
        for name in Counters.Name.allCases {
            text +=
                "# HELP sluice_\(name.label) \(name.help)\n# TYPE sluice_\(name.label) counter\n"
            text += "sluice_\(name.label) \(counters.value(of: name))\n"
        }
        for gauge in gauges {
            let type = gauge.name.hasSuffix("_total") ? "counter" : "gauge"
            text +=
                "# HELP sluice_\(gauge.name) \(gauge.help)\n# TYPE sluice_\(gauge.name) \(type)\n"
            text += "sluice_\(gauge.name) \(gauge.value)\n"
        }
        return text + freeOnDisk + waitingByLane + earlyConnections + transfers.prometheus
    }
}

extension Figures {
    /// Gathers the figures of this moment; `body` is called on the loop.
    static func gather(
        _ core: ProxyCore, _ status: StatusSource, on loop: EventLoop,
        _ body: @escaping (Figures) -> Void
    ) {
        let bound = LoopBound(body, to: loop)
        let (store, space) = (core.store.statistics(), core.store.space())
        let down = core.health.downCount
        let (counters, ahead) = (core.counters, core.ahead)
        let concurrency = core.concurrency.now
        core.flights.statistics { upstream, transfers in
            bound.enqueue { body, _ in
                body(
                    Figures(
                        counters: counters, store: store, space: space, upstream: upstream,
                        transfers: transfers, status: status, aheadRunning: ahead.running,
                        concurrency: concurrency, originsDown: down))
            }
        }
    }
}
