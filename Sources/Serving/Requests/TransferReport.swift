// What requests to origins have cost, as JSON and as a metric.
import HTTP
import Model
import Posix
import SharedStore
import Upstream
import URISyntax

extension HTTPVersion {
    /// The name in logs and JSON: HTTP/2 and later have no minor version (RFC 9113 section 3.1).
    var logName: String { major >= 2 ? "HTTP/\(major)" : description }
}

extension YieldState {
    /// The state as an object; the queue in milliseconds.
    fileprivate var json: JSONValue {
        .object([
            .init("purpose", .text(purpose.name)),
            .init("connections", .number(Int64(connections))),
            .init("window_bytes", .number(Int64(window))),
            .init("queue_ms", .optional((queue * 10_000).rounded() / 10)),
        ])
    }
}

extension TransferFigures {
    /// Returns the body of `/api/origins`, the most recently used origins first.
    ///
    /// - Parameters:
    ///   - states: the states of origins and parents.
    ///   - hostLimits: the configured limits of single hosts.
    ///   - limit: the most origins that are listed.
    ///   - shared: the second level; nil without one.
    /// - Returns: an object with the list.
    func originsJSON(
        _ states: OriginStates, hostLimits: HostLimits, limit: Int = .max,
        shared: SharedStoreReport? = nil
    ) -> JSONValue {
        let rows = origins.latestFirst.prefix(limit).map { origin, row in
            let state = max(
                states.health.state(of: origin), states.parents.health.state(of: origin))
            let most = singleHosts.contains(origin.host) ? 1 : hostLimits.limit(of: origin)
            return JSONValue.object(
                Self.members(origin, row, state)
                    + [
                        .init("connection_limit", most > 0 ? .number(Int64(most)) : .null),
                        .init("yielding", yields[origin]?.json ?? .null),
                    ])
        }
        guard let shared else { return .object([.init("origins", .list(rows))]) }
        let store = JSONValue.object([
            .init("store", .text("\(shared.location)")),
            .init("state", .text(shared.isUp ? "up" : "left-out")),
            .init("reason", shared.isUp ? .null : shared.lastFailure.map(JSONValue.text) ?? .null),
            .init("waiting", .number(Int64(shared.waiting))),
            .init(
                "failing",
                .list(
                    shared.failing.map { failing in
                        .object([
                            .init("task", .text(failing.task.rawValue)),
                            .init("reason", .text(failing.reason)),
                        ])
                    })),
        ])
        return .object([.init("origins", .list(rows)), .init("shared_store", store)])
    }

    private static func members(
        _ origin: Origin, _ row: OriginTable.Row, _ state: OriginHealth.State
    ) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = [
            .init("origin", .text(origin.description)), .init("state", .text("\(state)")),
            .init("protocol", row.version.map { .text($0.logName) } ?? .null),
            .init("address", row.address.map { .text($0.host) } ?? .null),
            .init("requests", .number(Int64(row.requests))),
            .init("errors", .number(Int64(row.errors))), .init("bytes", .number(row.bytes)),
            .init("reused_percent", .optional(row.reusedPercent)),
            .init("resumed_percent", .optional(row.resumedPercent)),
        ]
        for phase in TransferPhase.allCases {
            let times = row.histogram(of: phase)
            let percentiles = [("p50", 0.5), ("p99", 0.99)].map { name, share in
                JSONValue.Member(
                    name, .optional(times.percentile(share).map { Double($0) / 1_000 }))
            }
            members.append(.init("\(phase.name)_ms", .object(percentiles)))
        }
        return members
    }

    /// Each phase in each lane, in seconds.
    var phases: Metric {
        var samples: [Metric.Sample] = []
        for phase in TransferPhase.allCases {
            for lane in Lane.allCases {
                let labels = [("phase", phase.name), ("lane", lane.name)]
                let held = counts(of: phase, in: lane)
                var seen: UInt64 = 0
                for (index, count) in held.counts.enumerated() {
                    seen &+= count
                    let isLast = index == PhaseCounts.bounds.count
                    let bound = isLast ? "+Inf" : Self.seconds(UInt64(PhaseCounts.bounds[index]))
                    samples.append(
                        .init(
                            suffix: "_bucket", labels: labels + [("le", bound)], value: "\(seen)"))
                }
                samples.append(
                    .init(suffix: "_sum", labels: labels, value: Self.seconds(held.sum)))
                samples.append(.init(suffix: "_count", labels: labels, value: "\(seen)"))
            }
        }
        return Metric(
            .histogram, "origin_phase_seconds", "Time of a phase of requests to origins.",
            samples: samples)
    }

    private static func seconds(_ microseconds: UInt64) -> String {
        "\(Double(microseconds) / 1_000_000)"
    }
}
