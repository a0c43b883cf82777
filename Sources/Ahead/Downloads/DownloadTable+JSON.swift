// The listing of downloads as the API shows it.
import HTTP
import Library
import Lookahead
import Model
import Numbers
import Origin
import Routing
import SharedStore
import Upstream
import URISyntax

extension DownloadTable {
    /// Returns the listing: downloads in the order of their creation, and the common limits.
    ///
    /// - Parameter most: the most downloads listed: first those that are not over, then the newest
    ///   of the others.
    /// - Returns: the downloads, the number of all of them, and the limits.
    func json(atMost most: Int) -> JSONValue {
        let concurrency = services.concurrency.now
        let all = order.compactMap { downloads[$0] }
        let others = services.flights.orders?.elsewhere(.download) ?? []
        var shown = all
        if all.count + others.count > most {
            shown = Array(all.filter { !$0.isOver }.prefix(most))
            shown += all.filter(\.isOver).suffix(max(0, most - shown.count - others.count))
        }
        return .object([
            .init(
                "downloads",
                .list(
                    shown.map(\.json)
                        + others.prefix(max(0, most - shown.count)).map(\.downloadJSON))),
            .init("total", .number(Int64(all.count + others.count))),
            .init(
                "concurrency",
                .object([
                    .init("plan", .text(concurrency.plan.description)),
                    .init("limit", .number(Int64(concurrency.limit))),
                    .init("downloads_limit", .number(Int64(concurrency.background))),
                    .init("host_limit", .number(Int64(services.settings.hostLimit))),
                    .init("host_limits", ownHostLimits),
                    .init("reason", .text(concurrency.reason)),
                    .init("in_flight", .number(Int64(concurrency.inFlight))),
                    .init("goodput", .number(concurrency.goodput)),
                ])),
        ])
    }

    /// The limits of single hosts that downloads which are not over, and refreshes, are fetched
    /// from, by host.
    private var ownHostLimits: JSONValue {
        let limits = services.settings.hostLimits
        var found: [String: Int] = [:]
        if !limits.isEmpty {
            let fetched = downloads.values.filter { !$0.isOver } + Array(refreshes.values)
            for origin in Set(fetched.flatMap(\.origins)) {
                let limit = limits.limit(of: origin)
                // Transfers to all ports of a host count.
                if limit > 0 { found[origin.host] = min(found[origin.host] ?? limit, limit) }
            }
        }
        return .object(
            found.sorted { $0.key < $1.key }.map {
                JSONValue.Member($0.key, .number(Int64($0.value)))
            })
    }
}

extension Download {
    /// The origins of its URL and of the pieces that are being fetched.
    fileprivate var origins: [Origin] {
        let pieces = running.keys.filter { plan.pieces.indices.contains($0) }
        return [order.url.origin] + pieces.map { plan.pieces[$0].url.origin }
    }

    /// True if it will not go on.
    fileprivate var isOver: Bool {
        switch state {
        case .complete, .presumedComplete, .failed: true
        default: false
        }
    }
}
