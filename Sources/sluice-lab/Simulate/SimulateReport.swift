// The results of `sluice-lab simulate`, as a table and as JSON.
import Numbers
import Retention
import RetentionLab

/// The mean of the replays of all seeds, for each policy and size.
struct SimulationReport {
    struct Row {
        let policy: RetentionPolicyName
        /// One per size, 0 to 1.
        var hitRatios: [Double] = []
        var byteHitRatios: [Double] = []
    }

    let trace: String
    let sizes: [Int64]
    let requests: Int
    let bytes: Int64
    /// The byte hit ratio of a store that keeps everything.
    let ceiling: Double
    let rows: [Row]

    init(
        trace: String, _ traces: [[TraceRequest]], policies: [RetentionPolicyName],
        sizes: [Int64], warmUp: Double
    ) {
        self.trace = trace
        self.sizes = sizes
        let all = traces.map {
            Replay.run($0, policy: .lru, capacity: .max, warmUp: warmUp)
        }
        requests = all.reduce(0) { $0 + $1.requests }
        bytes = all.reduce(0) { $0 + $1.bytes }
        ceiling = Self.mean(all.map(\.byteHitRatio))
        rows = policies.map { policy in
            var row = Row(policy: policy)
            for size in sizes {
                let results = traces.map {
                    Replay.run($0, policy: policy, capacity: size, warmUp: warmUp)
                }
                row.hitRatios.append(Self.mean(results.map(\.hitRatio)))
                row.byteHitRatios.append(Self.mean(results.map(\.byteHitRatio)))
            }
            return row
        }
    }

    private static func mean(_ values: [Double]) -> Double {
        values.reduce(0, +) / Double(max(values.count, 1))
    }

    var table: String {
        var lines = [
            "\(trace): \(requests) requests, \(SimulationSize.text(bytes)) read, "
                + "\(Self.perCent(ceiling)) % of the bytes if everything were kept"
        ]
        for (title, ratios) in [("bytes", \Row.byteHitRatios), ("requests", \Row.hitRatios)] {
            lines.append("")
            let heads = sizes.map { column(SimulationSize.text($0)) }
            lines.append(Self.padded(title, 10) + heads.joined())
            for row in rows {
                let cells = row[keyPath: ratios].map { column(Self.perCent($0)) }
                lines.append(Self.padded(row.policy.rawValue, 10) + cells.joined())
            }
        }
        return lines.joined(separator: "\n")
    }

    var json: String {
        let rows = rows.map { row in
            let cells = sizes.indices.map { index in
                "{\"size\":\(sizes[index]),\"hit_ratio\":\(Self.fraction(row.hitRatios[index])),"
                    + "\"byte_hit_ratio\":\(Self.fraction(row.byteHitRatios[index]))}"
            }
            return "{\"policy\":\"\(row.policy.rawValue)\","
                + "\"sizes\":[\(cells.joined(separator: ","))]}"
        }
        return "{\"trace\":\"\(Self.escaped(trace))\",\"requests\":\(requests),\"bytes\":\(bytes),"
            + "\"ceiling\":\(Self.fraction(ceiling)),\"policies\":[\(rows.joined(separator: ","))]}"
    }

    /// A ratio in per cent with one decimal.
    static func perCent(_ ratio: Double) -> String {
        let tenths = Int((ratio * 1_000).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func fraction(_ ratio: Double) -> String {
        let digits = Int((ratio * 10_000).rounded()) % 10_000
        return ratio >= 0.99995 ? "1" : "0.\(String(digits, width: 4))"
    }

    /// Escapes a file name: its bytes are not trusted.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case _ where scalar.value < 0x20: result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private func column(_ text: String) -> String {
        String(repeating: " ", count: max(1, 9 - text.count)) + text
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}
