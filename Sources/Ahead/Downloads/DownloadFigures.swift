import HLS
import HTTP
import Library
import Lookahead
package import Model
import Numbers
import Origin
import Posix
import Routing
import SharedStore
import Upstream
import URISyntax

/// The figures of a download: what it shows while it runs, and what is kept of them after that.
extension Download {
    private var summary: Summary {
        Summary(
            pieces: plan.pieces.count, done: present.count, bytes: presentBytes,
            seconds: plan.seconds, labels: plan.labels,
            expectedBytes: plan.expectedTotal(knowing: present), isExact: plan.isExact)
    }

    /// Keeps the figures of the plan before it is replaced or stops running.
    func keepSummary() {
        if !plan.pieces.isEmpty { kept = summary }
    }

    /// Returns whole per cents, below 100 until it is complete and checked.
    ///
    /// - Parameter share: the pieces in flight as a fraction of pieces.
    /// - Returns: 0...99.
    package func percent(_ share: Double) -> Int64 {
        let done = Double(present.count) + share
        return Int64(min(99, max(0, done / Double(max(1, plan.pieces.count)) * 100)))
    }

    /// The member of a listing; figures are in bytes, seconds and bytes per second.
    package var json: JSONValue {
        let now = progress
        return .object([
            .init("id", .text(id.text)),
            .init("name", .text(name)),
            // Redacted, since queries may contain tokens.
            .init("url", .text(order.url.redacted)),
            .init("choice", .text(order.choice)),
            .init("state", .text(stateName)),
            .init("reason", reason.map(JSONValue.text) ?? .null),
            .init("refreshing", table.refreshes[id].map { .text($0.stateName) } ?? .null),
            .init("refreshed", .optional(lastRefresh?.ended.seconds)),
            .init(
                "streams",
                .list((plan.labels.isEmpty ? kept.labels : plan.labels).map(JSONValue.text))),
            .init("pieces", .number(Int64(now.figures.pieces))),
            .init("pieces_done", .number(Int64(now.figures.done))),
            .init("percent", .number(now.percent)),
            .init("bytes", .number(now.figures.bytes)),
            .init("bytes_expected", .optional(now.figures.expectedBytes)),
            .init("is_estimate", .truth(now.isEstimate)),
            .init("brought_bytes", .number(broughtBytes)),
            .init("seconds", .fraction(max(plan.seconds, kept.seconds))),
            .init("rate", .number(now.rate)),
            .init("transfers", .number(Int64(now.transfers))),
            .init("seconds_left", .optional(now.secondsLeft)),
            .init("encryption", plan.protection.json),
            .init("node", table.services.flights.orders.map { .text($0.name) } ?? .null),
        ])
    }

    /// The answer to a dry run: what the planned order would fetch, and the bytes that are stored.
    func dryRunJSON() -> JSONValue {
        // The length of a file is known if a part of it was fetched before.
        if isFirstPart, let first = plan.pieces.first, let total = table.length(of: first, self) {
            plan.addParts(of: order.url, total: total)
        }
        var stored: Int64 = 0
        var lengths: [Int: Int64] = [:]
        for index in plan.pieces.indices {
            let (bytes, length) = table.present(index, of: self)
            stored = stored.addingSaturated(bytes)
            lengths[index] = length
        }
        let expected = plan.expectedTotal(knowing: lengths)
        let isExact = plan.isExact || lengths.count == plan.pieces.count
        return .object([
            .init("name", .text(name)),
            .init("url", .text(order.url.redacted)),
            .init("choice", .text(order.choice)),
            .init("streams", .list(plan.labels.map(JSONValue.text))),
            .init("pieces", .number(Int64(plan.pieces.count))),
            .init("seconds", .fraction(plan.seconds)),
            .init("bytes", .number(stored)),
            .init("bytes_expected", .optional(expected)),
            .init("is_estimate", .truth(expected != nil && !isExact)),
            .init("encryption", plan.protection.json),
        ])
    }

    /// What other nodes list of it.
    func shown(as id: SharedOrderID) -> SharedOrderProgress {
        let now = progress
        return SharedOrderProgress(
            id: id, state: stateName, percent: now.percent, bytes: now.figures.bytes,
            name: name)
    }

    private var stateName: String {
        switch state {
        case .queued: "queued"
        case .planning: "planning"
        case .running: "running"
        case .waiting: "waiting"
        case .checking: "checking"
        case .paused: "paused"
        case .complete, .presumedComplete: "complete"
        case .failed: "failed"
        }
    }

    private var reason: String? {
        switch state {
        case .waiting(let reason, _), .failed(let reason): reason
        case .paused(let reason): reason
        case .complete, .presumedComplete: lastRefresh?.failure
        default: nil
        }
    }

    private struct Progress {
        var figures: Summary
        var percent: Int64
        var rate: Int64 = 0
        var transfers = 0
        var secondsLeft: Int64?

        var isEstimate: Bool { figures.expectedBytes != nil && !figures.isExact }
    }

    /// The fetches that may be in transfer now; the others wait for these.
    private var transfers: Int {
        var count = running.count
        let settings = table.services.settings
        if settings.hostLimit > 0 || !settings.hostLimits.isEmpty {
            var byHost: [String: (count: Int, limit: Int)] = [:]
            for index in running.keys where plan.pieces.indices.contains(index) {
                let url = plan.pieces[index].url
                let limit = settings.hostLimit(of: url.origin)
                byHost[url.host, default: (count: 0, limit: limit)].count += 1
            }
            count = byHost.values.reduce(0) { sum, host in
                sum + (host.limit > 0 ? min(host.count, host.limit) : host.count)
            }
        }
        return min(count, table.services.concurrency.now.limit)
    }

    private var progress: Progress {
        if state.isComplete {
            var figures = kept
            figures.done = kept.pieces
            figures.expectedBytes = kept.bytes
            figures.isExact = true
            return Progress(figures: figures, percent: 100)
        }
        if plan.pieces.isEmpty { return Progress(figures: kept, percent: kept.percent) }
        let parts = table.partsUnderWay(of: self)
        var figures = summary
        figures.bytes += parts.bytes
        figures.expectedBytes = figures.expectedBytes.map { [bytes = figures.bytes] in
            max($0, bytes)
        }
        var progress = Progress(figures: figures, percent: percent(parts.share))
        guard state == .running else { return progress }
        progress.transfers = transfers
        progress.rate = Int64(saturating: goodput.bytesPerSecond ?? 0)
        let share = Double(figures.done) + parts.share
        if share > 0, progress.rate > 0 {
            let left = Double(figures.bytes) / share * (Double(figures.pieces) - share)
            progress.secondsLeft = Int64(
                saturating: min(Double(1 << 40), (left / Double(progress.rate)).rounded(.up)))
        }
        return progress
    }
}
