// The figures of the last day, at decreasing resolution.
package import Model
import Numbers

/// Counts of the last day, at three resolutions.
///
/// Kept by the minute for two hours, by five minutes for eight, and by the quarter of an hour for
/// the whole day. Intervals without counts have no entry.
///
/// Without I/O: counts and time are parameters. At most 312 entries of six numbers, about 20 kB as
/// text.
package struct FigureHistory: Equatable, Sendable {
    /// The names of the counts, in their order.
    package static let series = ["player_bytes", "origin_bytes", "requests", "hits", "errors"]
    /// The seconds of one entry and the most entries of each resolution.
    static let tiers: [(step: Int64, most: Int)] = [(60, 120), (300, 96), (900, 96)]
    private static let day: Int64 = 86_400
    /// The largest integer that all JSON parsers represent exactly.
    private static let largest: Int64 = 1 << 53

    struct Entry: Equatable, Sendable {
        /// Seconds since 1970, a multiple of the tier's step.
        let start: Int64
        var counts: [Int64]
    }

    private(set) var entries: [[Entry]] = tiers.map { _ in [] }

    package init() {}

    package var isEmpty: Bool { entries.allSatisfy(\.isEmpty) }

    /// Adds the counts since the last call.
    ///
    /// - Parameters:
    ///   - counts: one number for each of `series`; negative ones count as 0.
    ///   - now: seconds since 1970. If the clock was set back, the counts are added to the latest
    ///     entry.
    package mutating func add(_ counts: [Int64], now: Int64) {
        guard counts.count == Self.series.count, counts.contains(where: { $0 > 0 }) else { return }
        let counts = counts.map { min(max(0, $0), Self.largest) }
        for (index, tier) in Self.tiers.enumerated() {
            let start = now - now % tier.step
            if let last = entries[index].last, last.start >= start {
                let place = entries[index].count - 1
                for number in counts.indices {
                    let sum = last.counts[number] + counts[number]
                    entries[index][place].counts[number] = min(sum, Self.largest)
                }
            } else {
                entries[index].append(Entry(start: start, counts: counts))
            }
        }
        forget(now: now)
    }

    private mutating func forget(now: Int64) {
        for (index, tier) in Self.tiers.enumerated() {
            let oldest = now - min(Self.day, tier.step * Int64(tier.most))
            entries[index].removeAll { $0.start < oldest }
            if entries[index].count > tier.most {
                entries[index].removeFirst(entries[index].count - tier.most)
            }
        }
    }

    // MARK: As JSON

    /// The history as JSON, for the API and for the file that keeps it across restarts.
    package var json: JSONValue {
        let tiers = zip(Self.tiers, entries).map { tier, entries in
            JSONValue.object([
                .init("step", .number(tier.step)),
                .init(
                    "points",
                    .list(
                        entries.map { entry in
                            .list(([entry.start] + entry.counts).map(JSONValue.number))
                        })),
            ])
        }
        return .object([
            .init("v", .number(1)), .init("series", .list(Self.series.map(JSONValue.text))),
            .init("tiers", .list(tiers)),
        ])
    }

    /// Parses the result of `json`; invalid parts are left out.
    ///
    /// - Parameters:
    ///   - text: any bytes.
    ///   - now: seconds since 1970; entries in the future, and those older than a day, are left
    ///     out.
    package init(reading text: [UInt8], now: Int64) {
        self.init()
        guard let value = try? JSONValue(parsing: text), value["v"]?.asNumber == 1,
            value["series"]?.asList == Self.series.map(JSONValue.text),
            let tiers = value["tiers"]?.asList, tiers.count == Self.tiers.count
        else { return }
        for (index, tier) in tiers.enumerated() {
            let step = Self.tiers[index].step
            guard tier["step"]?.asNumber == Double(step), let points = tier["points"]?.asList else {
                continue
            }
            for point in points.suffix(Self.tiers[index].most) {
                let numbers = (point.asList ?? []).compactMap(Self.count)
                guard numbers.count == Self.series.count + 1, let start = numbers.first,
                    start % step == 0, start <= now, start > entries[index].last?.start ?? -1
                else { continue }
                entries[index].append(Entry(start: start, counts: Array(numbers.dropFirst())))
            }
        }
        forget(now: now)
    }

    private static func count(_ value: JSONValue) -> Int64? {
        guard let number = value.asNumber, number >= 0, number <= Double(largest) else {
            return nil
        }
        return Int64(number)
    }
}
