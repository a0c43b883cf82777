// The results of `sluice-lab capacity`, as tables with advice and as JSON.
import CommandSupport
import Numbers
import RetentionLab

/// The flows of a scenario at several numbers of nodes.
struct CapacityReport {
    struct Row {
        let nodes: Int
        let flow: CapacityFlow
        /// The same with twice the disk.
        let doubled: CapacityFlow
        let event: LiveEvent.Flow
        let price: Double
        let doubledPrice: Double
    }

    let scenario: CapacityScenario
    let event: LiveEvent
    let rows: [Row]

    init(
        _ scenario: CapacityScenario, _ event: LiveEvent, _ prices: CapacityPrices, nodes: [Int],
        seed: UInt64
    ) {
        self.scenario = scenario
        self.event = event
        let hasSecond = scenario.second != nil
        rows = nodes.map { count in
            var tier = scenario
            tier.nodes = count
            let flow = CapacityModel.run(tier, seed: seed)
            tier.disk = tier.disk.multipliedSaturated(by: 2)
            let doubled = CapacityModel.run(tier, seed: seed)
            return Row(
                nodes: count, flow: flow, doubled: doubled, event: event.flow(nodes: count),
                price: prices.month(flow, hasSecond: hasSecond),
                doubledPrice: prices.month(doubled, hasSecond: hasSecond))
        }
    }

    /// A node is full at this share of its line: peaks within a minute and a node that goes need room.
    private static let fullShare = 0.7

    /// The least number of nodes whose lines carry this many bits a second.
    private func nodesNeeded(for rate: Double) -> Int {
        max(1, Int(saturating: (rate / (scenario.line * Self.fullShare)).rounded(.up)))
    }

    var text: String {
        var films = TextTable(rightAligned: Set(1...8))
        films.add(
            "nodes", "players", "node hits", "node misses", "", "second hits", "origin", "",
            "busiest node")
        for row in rows {
            films.add(
                "\(row.nodes)", Self.bits(row.flow.playerRate),
                SimulationReport.perCent(row.flow.nodeHitRatio) + " %",
                Self.perSecond(row.flow.nodeMissRequests), Self.bits(row.flow.nodeMissRate),
                SimulationReport.perCent(row.flow.secondHitRatio) + " %",
                Self.perSecond(row.flow.originRequests), Self.bits(row.flow.originRate),
                Self.bits(row.flow.peakRate))
        }
        var live = TextTable(rightAligned: Set(1...7))
        live.add(
            "nodes", "players", "", "copies", "node misses", "", "origin behind a parent", "")
        for row in rows {
            live.add(
                "\(row.nodes)", Self.perSecond(row.event.playerRequests),
                Self.bits(row.event.playerRate), "\(row.event.copies)",
                Self.perSecond(row.event.nodeRequests), Self.bits(row.event.nodeRate),
                Self.perSecond(row.event.parentRequests), Self.bits(row.event.parentRate))
        }
        let catalogue = Int64(saturating: scenario.catalogue)
        return """
            \(scenario.players) players of \(scenario.titles) films (\(SimulationSize.text(catalogue))), \
            \(SimulationSize.text(scenario.disk)) a node:
            \(films.text)

            \(event.players) players of one live event in \(event.variants) variants:
            \(live.text)

            \(rows.map(advice).joined(separator: "\n"))
            """
    }

    /// What to add to a tier, the most urgent first.
    func advice(_ row: Row) -> String {
        var words: [String] = []
        let films = nodesNeeded(for: row.flow.playerRate)
        if row.flow.peakRate > scenario.line * Self.fullShare {
            words.append("the lines are full: \(max(films, row.nodes + 1)) nodes for the films")
        }
        let both = nodesNeeded(for: row.flow.playerRate + row.event.playerRate)
        if event.players > 0, both > row.nodes {
            words.append("\(both) nodes while the live event is on")
        }
        words.append(
            "\(Self.price(row.price)) a month; twice the disk saves "
                + Self.price(max(0, row.price - row.doubledPrice)))
        if scenario.second == nil, row.nodes > 1 {
            words.append("a second level would answer the misses after a replacement of a node")
        }
        if row.event.copies > 1 {
            words.append(
                "a parent saves the live origin \(row.event.copies - 1) of "
                    + "\(row.event.copies) requests")
        }
        return "\(row.nodes) nodes: " + words.joined(separator: "; ")
    }

    var json: String {
        let items = rows.map { row in
            "{\"nodes\":\(row.nodes),\"node_hit_ratio\":\(Self.fixed(row.flow.nodeHitRatio, 4)),"
                + "\"second_hit_ratio\":\(Self.fixed(row.flow.secondHitRatio, 4)),"
                + "\"player_bits\":\(Self.whole(row.flow.playerRate)),"
                + "\"node_miss_requests\":\(Self.fixed(row.flow.nodeMissRequests, 3)),"
                + "\"node_miss_bits\":\(Self.whole(row.flow.nodeMissRate)),"
                + "\"origin_requests\":\(Self.fixed(row.flow.originRequests, 3)),"
                + "\"origin_bits\":\(Self.whole(row.flow.originRate)),"
                + "\"busiest_node_bits\":\(Self.whole(row.flow.peakRate)),"
                + "\"price\":\(Self.fixed(row.price, 2)),"
                + "\"price_with_twice_the_disk\":\(Self.fixed(row.doubledPrice, 2)),"
                + "\"live\":{\"copies\":\(row.event.copies),"
                + "\"player_bits\":\(Self.whole(row.event.playerRate)),"
                + "\"node_requests\":\(Self.fixed(row.event.nodeRequests, 3)),"
                + "\"node_bits\":\(Self.whole(row.event.nodeRate)),"
                + "\"parent_requests\":\(Self.fixed(row.event.parentRequests, 3)),"
                + "\"parent_bits\":\(Self.whole(row.event.parentRate))}}"
        }
        return "{\"titles\":\(scenario.titles),\"players\":\(scenario.players),"
            + "\"catalogue\":\(Self.whole(scenario.catalogue)),\"disk\":\(scenario.disk),"
            + "\"tiers\":[\(items.joined(separator: ","))]}"
    }

    private static func whole(_ value: Double) -> Int { Int(saturating: value.rounded()) }

    /// A number that is not negative with this many decimals.
    private static func fixed(_ value: Double, _ decimals: Int) -> String {
        var scale = 1
        for _ in 0..<decimals { scale *= 10 }
        let scaled = Int(saturating: (value * Double(scale)).rounded())
        guard decimals > 0 else { return "\(scaled)" }
        return "\(scaled / scale).\(String(scaled % scale, width: decimals))"
    }

    private static func price(_ value: Double) -> String { fixed(value, value < 100 ? 2 : 0) }
    private static func perSecond(_ value: Double) -> String {
        fixed(value, value < 100 ? 1 : 0) + "/s"
    }

    private static func bits(_ value: Double) -> String {
        for (name, unit) in [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)] where value >= unit {
            return fixed(value / unit, value < 100 * unit ? 1 : 0) + " \(name)bit/s"
        }
        return fixed(value, 0) + " bit/s"
    }
}
