import Library
import Lookahead
package import Model

/// The state of a feed for clients.
extension Feed {
    /// Returns the state; compares it with the store first if the last comparison is some seconds
    /// old and the feed is in use.
    func comparedState() -> JSONValue {
        compareAgain()
        return state
    }

    /// The response to `GET /api/feeds/<name>`.
    package var state: JSONValue {
        let window = planner.window.map { member -> JSONValue in
            let report = planner.report(on: member)
            return .object([
                .init("index", .number(Int64(member.index))),
                .init("rank", .number(Int64(member.rank))),
                .init("state", .text(report.readiness.rawValue)),
                .init("bytes", .number(report.bytes)),
                .init("seconds", .fraction(report.seconds)),
                .init("height", .optional(chosenHeight(of: member.content))),
                .init("reason", report.reason.map(JSONValue.text) ?? .null),
            ])
        }
        return .object([
            .init("name", .text(name)), .init("entries", .number(Int64(order.items.count))),
            .init("index", .number(Int64(planner.index))),
            .init("paused", pauseReason.map(JSONValue.text) ?? .null),
            .init("direction", .text(planner.direction.rawValue)),
            .init("window", .list(window)),
            .init("fetches", .number(Int64(fetches.count))),
            .init("bytesFetched", .number(planner.fetchedBytes)),
            .init("bytesWasted", .number(planner.wastedBytes)),
            .init("faults", .list(faults)),
        ])
    }

    private func chosenHeight(of content: Int) -> Int64? {
        streams.chosen(of: content)?.height.map(Int64.init)
    }

    /// The first entries that cannot be requested.
    private var faults: [JSONValue] {
        order.items.enumerated().lazy.filter { $0.element.fault != nil }.prefix(20).map {
            .object([
                .init("index", .number(Int64($0.offset))),
                .init("reason", .text($0.element.fault ?? "")),
            ])
        }
    }
}
