/// The figures of a comparison: every proxy's, their medians, and the ratio to the best peer.
import Glibc

/// One figure of one workload, of every proxy that was measured.
struct ComparedFigure {
    /// The group whose name repeats it.
    let group: String
    let what: String
    let unit: String
    /// True where more is better.
    let isMoreBetter: Bool
    /// By the proxy's name, one value a repetition.
    var values: [String: [Double]] = [:]

    /// The middle value of a proxy; nil where it has none.
    func middle(_ name: String) -> Double? {
        guard let found = values[name], !found.isEmpty else { return nil }
        return median(found)
    }

    /// The best middle value of the peers.
    var best: Double? {
        let peers = values.keys.filter { $0 != "sluice" && $0 != "direct" }.compactMap(middle)
        return isMoreBetter ? peers.max() : peers.min()
    }

    /// Ours in terms of the best peer's; nil where there is none, or it is 0.
    var ratio: Double? {
        guard let ours = middle("sluice"), let best, best != 0 else { return nil }
        return ours / best
    }

    /// What to type to measure it again.
    var command: String { "make bench BENCH_FLAGS='\(group)'" }
}

/// All figures of a comparison, in the order in which they were first met.
struct Comparison {
    private(set) var figures: [ComparedFigure] = []
    /// The proxies, in the order of the columns.
    var names: [String] = []
    /// What was left out, and why.
    var notes: [String] = []

    /// What a figure is, apart from whose.
    struct Kind {
        let group: String
        let what: String
        let unit: String
        var isMoreBetter = false
    }

    mutating func add(_ kind: Kind, _ name: String, _ value: Double) {
        let known = figures.firstIndex { $0.group == kind.group && $0.what == kind.what }
        let index = known ?? figures.count
        if known == nil {
            figures.append(
                ComparedFigure(
                    group: kind.group, what: kind.what, unit: kind.unit,
                    isMoreBetter: kind.isMoreBetter))
        }
        figures[index].values[name, default: []].append(value)
    }

    var isEmpty: Bool { figures.isEmpty }

    // MARK: Forms

    /// A Markdown table: a line a figure, a column a proxy.
    var table: String {
        let head =
            ["measured", "unit", "better"] + names + ["sluice : best peer", "to repeat"]
        let rows = figures.map { figure in
            [figure.what, figure.unit, figure.isMoreBetter ? "more" : "less"]
                + names.map { figure.middle($0).map(Report.text) ?? "-" }
                + [figure.ratio.map(Report.text) ?? "-", "`\(figure.command)`"]
        }
        let widths = head.indices.map { column in
            ([head] + rows).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            let padded = cells.indices.map { column in
                cells[column] + String(repeating: " ", count: widths[column] - cells[column].count)
            }
            return "| " + padded.joined(separator: " | ") + " |\n"
        }
        let rule = widths.map { String(repeating: "-", count: $0) }
        return line(head) + line(rule) + rows.map(line).joined()
            + notes.map { "\n\($0)\n" }.joined()
    }

    /// One object a line and proxy.
    ///
    /// No text of ours holds a character that JSON escapes.
    var json: String {
        figures.map { figure in
            names.compactMap { name in
                guard let middle = figure.middle(name), let values = figure.values[name] else {
                    return nil
                }
                let list = values.map { "\($0)" }.joined(separator: ",")
                return "{\"group\":\"\(figure.group)\",\"what\":\"\(figure.what)\",\"unit\":"
                    + "\"\(figure.unit)\",\"better\":\"\(figure.isMoreBetter ? "more" : "less")\","
                    + "\"proxy\":\"\(name)\",\"median\":\(middle),\"values\":[\(list)],"
                    + "\"command\":\"\(figure.command)\"}\n"
            }.joined()
        }.joined()
    }

    /// Bars of how many times better or worse than the best peer each figure is, as SVG.
    var plot: String {
        let lines = figures.filter { $0.ratio != nil }
        let height = 40 + 22 * lines.count
        var text =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"\(height)\" "
            + "font-family=\"sans-serif\" font-size=\"12\">\n"
            + "<text x=\"10\" y=\"18\">Sluice in terms of the best peer; green is ahead, "
            + "red behind, the line is parity, a bar's end eight times</text>\n"
            + "<line x1=\"650\" y1=\"26\" x2=\"650\" y2=\"\(height)\" stroke=\"black\"/>\n"
        for (index, figure) in lines.enumerated() {
            let y = 34 + 22 * index
            let ratio = figure.ratio ?? 1
            // As how many times better, on a scale where twice and half are as far from parity.
            let gain = figure.isMoreBetter ? ratio : 1 / max(ratio, 1e-9)
            let width = min(200, max(-200, log2(gain) / 3 * 200))
            let x = 650 + min(0, width)
            text +=
                "<text x=\"10\" y=\"\(y + 12)\">\(figure.what)</text>"
                + "<rect x=\"\(x)\" y=\"\(y)\" width=\"\(abs(width))\" height=\"16\" "
                + "fill=\"\(width < 0 ? "#c33" : "#393")\"/>"
                + "<text x=\"860\" y=\"\(y + 12)\">\(Report.text(ratio))</text>\n"
        }
        return text + "</svg>\n"
    }
}
