import Lookahead

/// Tables of the results of `sluice-lab bench feed`.
struct FeedResults {
    let terms: FeedBench.Terms
    let schemes: [FeedScheme]
    let patterns: [ViewerPattern]
    /// Indexed by scheme, viewer and run.
    private var all: [[[ViewerFigures]]]

    init(terms: FeedBench.Terms, schemes: [FeedScheme], patterns: [ViewerPattern]) {
        self.terms = terms
        self.schemes = schemes
        self.patterns = patterns
        let runs = Array(repeating: ViewerFigures(), count: terms.runs)
        all = schemes.map { _ in patterns.map { _ in runs } }
    }

    mutating func add(_ figures: ViewerFigures, scheme: Int, pattern: Int, run: Int) {
        all[scheme][pattern][run] = figures
    }

    // MARK: Tables

    private static let columns = [
        "scheme", "loaders per 1000", "start, median s", "stalls per 1000", "wasted, %",
        "MB from CDN", "swipe, median ms", "swipe, 99 % ms",
    ]

    /// One table for each viewer, and one for all together.
    var tables: [BenchTable] {
        let way = terms.isSimulated ? "in arithmetic" : "over"
        let what = "\(terms.visits) visits a run, \(terms.runs) runs of each viewer"
        var tables = patterns.indices.map { pattern in
            var table = BenchTable(
                "Feed \(way) \(terms.profile), viewer \(patterns[pattern].rawValue), \(what)",
                Self.columns)
            for scheme in schemes.indices {
                table.add(row(schemes[scheme].name, all[scheme][pattern].map { [$0] }))
            }
            return table
        }
        guard patterns.count > 1 else { return tables }
        var table = BenchTable(
            "Feed \(way) \(terms.profile), all viewers, \(what)",
            Self.columns + ["against published, %"])
        for scheme in schemes.indices {
            table.add(row(schemes[scheme].name, together(scheme)) + [against(scheme)])
        }
        tables.append(table)
        return tables
    }

    /// One row for each scheme, the best first.
    var grid: BenchTable {
        var table = BenchTable(
            "Feed \(terms.isSimulated ? "in arithmetic" : "over") \(terms.profile), all viewers",
            Self.columns)
        let rows = schemes.indices.map { scheme in
            let figures = Self.sum(together(scheme).flatMap { $0 })
            return (
                // Rounded, so that waste decides between schemes that differ by less than the
                // noise.
                ((figures.loadersOfThousand + figures.stallsOfThousand) / 2).rounded(),
                figures.wasted, scheme
            )
        }
        for (_, _, scheme) in rows.sorted(by: { ($0.0, $0.1) < ($1.0, $1.1) }) {
            table.add(row(schemes[scheme].name, together(scheme)))
        }
        return table
    }

    var bars: [BenchPlot.Bar] {
        schemes.indices.map { scheme in
            let figures = Self.sum(together(scheme).flatMap { $0 })
            return BenchPlot.Bar(
                group: "", name: schemes[scheme].name, value: figures.loadersOfThousand)
        }
    }

    /// For each loader of a scheme that preloads, what was stored of the item.
    var reasons: String {
        var lines: [String] = []
        for scheme in schemes.indices where schemes[scheme].parameters.isOn {
            for pattern in patterns.indices {
                for (run, figures) in all[scheme][pattern].enumerated() {
                    let name = "\(schemes[scheme].name), \(patterns[pattern].rawValue) \(run + 1)"
                    lines += figures.reasons.map { "\(name): \($0)" }
                }
            }
        }
        return lines.joined(separator: "\n")
    }

    // MARK: Figures

    /// The figures of all viewers, for each run.
    private func together(_ scheme: Int) -> [[ViewerFigures]] {
        (0..<terms.runs).map { run in patterns.indices.map { all[scheme][$0][run] } }
    }

    private func row(_ name: String, _ runs: [[ViewerFigures]]) -> [String] {
        let loaders = runs.map { Self.sum($0).loadersOfThousand }
        let sum = Self.sum(runs.flatMap { $0 })
        let stalls = Figure.short(sum.stallsOfThousand)
        let swipes = sum.swipes.sorted()
        return [
            name, Figure.withSpread(loaders), Figure.short(Figure.median(sum.startUps)),
            sum.broken == 0 ? stalls : "\(stalls), \(sum.broken) broken",
            Figure.short(sum.wasted), Figure.short(Double(sum.sent) / 1e6),
            Figure.short(Figure.median(swipes) * 1_000),
            swipes.isEmpty ? "" : Figure.short(swipes[swipes.count * 99 / 100] * 1_000),
        ]
    }

    /// The reduction in loaders against the published scheme, with the same viewers, run by run.
    private func against(_ scheme: Int) -> String {
        guard let published = schemes.firstIndex(where: { $0.name == "published" }),
            published != scheme
        else { return "" }
        let others = together(published).map { Self.sum($0).loadersOfThousand }
        let mean = max(1e-9, others.reduce(0, +) / Double(max(1, others.count)))
        let own = together(scheme).map { Self.sum($0).loadersOfThousand }
        return Figure.withSpread(zip(own, others).map { ($0 - $1) * 100 / mean })
    }

    private static func sum(_ figures: [ViewerFigures]) -> ViewerFigures {
        figures.reduce(into: ViewerFigures()) { $0.add($1) }
    }
}

extension ViewerFigures {
    var stallsOfThousand: Double { Double(stalls) * 1_000 / Double(max(1, visits)) }

    fileprivate mutating func add(_ other: ViewerFigures) {
        visits += other.visits
        loaders += other.loaders
        startUps += other.startUps
        stalls += other.stalls
        swipes += other.swipes
        played += other.played
        sent += other.sent
        broken += other.broken
    }
}

extension Figure {
    /// The mean, and half of its 95 % confidence interval by Student's distribution.
    static func withSpread(_ values: [Double]) -> String {
        let count = Double(values.count)
        let mean = values.reduce(0, +) / max(1, count)
        let sign = mean < 0 ? "-" : ""
        guard values.count > 1 else { return sign + short(abs(mean)) }
        let variance = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (count - 1)
        let small = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23]
        let freedom = values.count - 1
        let factor = freedom <= small.count ? small[freedom - 1] : 1.96 + 2.7 / Double(freedom)
        return "\(sign)\(short(abs(mean))) ± \(short(factor * (variance / count).squareRoot()))"
    }
}
