// The figures of a comparison: those of every proxy, their medians, and the ratio to the best peer.
import Glibc

/// One line of the comparison, for every measured proxy.
struct ComparedFigure {
    let line: Line
    /// By proxy name, one value per repetition.
    var values: [String: [Double]] = [:]

    /// The median of a proxy; nil if it has no values.
    func middle(_ name: String) -> Double? {
        guard let found = values[name], !found.isEmpty else { return nil }
        return median(found)
    }

    /// The peer with the best median; of several, the first by name.
    var bestPeer: String? {
        let peers = values.keys.filter { $0 != Comparison.own && $0 != Comparison.direct }.sorted()
        let found = peers.compactMap { name in middle(name).map { (name, $0) } }
        let best = found.min { line.isMoreBetter ? $0.1 > $1.1 : $0.1 < $1.1 }
        return best?.0
    }

    /// Our median divided by the best peer's.
    ///
    /// Nil if either is missing or negative (a difference may be), or the peer's is 0.
    var ratio: Double? {
        guard let ours = middle(Comparison.own), let best = bestPeer.flatMap(middle), best > 0,
            ours >= 0
        else { return nil }
        return ours / best
    }

    /// The binary logarithm of how many times better we are than the best peer; nil without a
    /// ratio.
    var gain: Double? {
        guard let ratio else { return nil }
        let better = line.isMoreBetter ? ratio : 1 / max(ratio, 1e-9)
        return log2(max(better, 1e-9))
    }

    /// The larger spread of the two values in the ratio.
    var spread: Double? {
        let names = [Comparison.own] + (bestPeer.map { [$0] } ?? [])
        return names.compactMap { values[$0].flatMap(Bench.spread) }.max()
    }
}

/// All figures of a comparison, in the order of `Line.all`.
struct Comparison {
    /// The name of the daemon.
    static let own = "sluice"
    /// The name of the origin itself, which is the ceiling, not a peer.
    static let direct = "direct"

    private(set) var figures: [ComparedFigure]
    /// The proxies, in the order of the columns.
    let names: [String]
    /// Facts about the machine, what was left out and why, other load.
    var notes: [String] = []

    init(names: [String], selection: LineSelection) {
        self.names = names
        figures = Line.all.filter { selection.shows($0.id) }.map { ComparedFigure(line: $0) }
    }

    /// Adds a value; values of lines that were not requested are dropped.
    mutating func add(_ id: String, _ name: String, _ value: Double) {
        guard let index = figures.firstIndex(where: { $0.line.id == id }) else {
            precondition(Line.all.contains { $0.id == id }, "no line \(id)")
            return
        }
        figures[index].values[name, default: []].append(value)
    }

    // MARK: Forms

    /// A Markdown table: a row per figure, a column per proxy; followed by the notes.
    var table: String {
        let head =
            ["measured", "unit", "better"] + names
            + ["best peer", "ratio to it", "spread", "to repeat"]
        let rows = figures.map { figure -> [String] in
            let line = figure.line
            return [line.what, line.unit, line.isMoreBetter ? "more" : "less"]
                + names.map { figure.middle($0).map(NumberText.short) ?? "-" }
                + [
                    figure.bestPeer ?? "-", figure.ratio.map(NumberText.short) ?? "-",
                    figure.spread.map(NumberText.hundredths) ?? "-", "`\(line.command)`",
                ]
        }
        let numbers = Set(3..<(3 + names.count)).union([4 + names.count, 5 + names.count])
        return markdownTable(head, rows, numbers: numbers) + notes.map { "\n\($0)\n" }.joined()
    }

    /// JSON: one object per line and proxy, and one per note.
    var json: String {
        let lines = figures.flatMap { figure in
            names.compactMap { name -> String? in
                guard let middle = figure.middle(name), let values = figure.values[name] else {
                    return nil
                }
                return Self.json(figure, name, middle, values)
            }
        }
        return (lines + notes.map { "{\"note\":\(quotedJSON($0))}" }).map { $0 + "\n" }.joined()
    }

    private static func json(
        _ figure: ComparedFigure, _ name: String, _ middle: Double, _ values: [Double]
    ) -> String {
        let line = figure.line
        let list = values.map { "\($0)" }.joined(separator: ",")
        let ratio = name == own ? figure.ratio : nil
        return "{\"line\":\(quotedJSON(line.id)),\"what\":\(quotedJSON(line.what)),"
            + "\"unit\":\(quotedJSON(line.unit)),"
            + "\"better\":\"\(line.isMoreBetter ? "more" : "less")\","
            + "\"proxy\":\(quotedJSON(name)),\"median\":\(middle),\"values\":[\(list)],"
            + (ratio.map { "\"ratio\":\($0)," } ?? "") + "\"command\":\(quotedJSON(line.command))}"
    }

    /// Bars of how many times better or worse than the best peer each figure is, as SVG.
    ///
    /// Twice as good and half as good are equally far from parity; a bar ends at eight times.
    var plot: String {
        let lines = figures.filter { $0.gain != nil }
        let height = 40 + 20 * lines.count
        var text =
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"\(height)\" "
            + "font-family=\"sans-serif\" font-size=\"12\">\n"
            + "<text x=\"10\" y=\"18\">Sluice in terms of the best peer of each line: green is "
            + "better, red worse, a full bar eight times</text>\n"
        for (index, figure) in lines.enumerated() {
            let y = 32 + 20 * index
            let width = min(130, max(-130, (figure.gain ?? 0) / 3 * 130))
            let x = 600 + min(0, width)
            text +=
                "<text x=\"10\" y=\"\(y + 12)\">\(escapedXML(figure.line.what))</text>"
                + "<rect x=\"\(x)\" y=\"\(y)\" width=\"\(abs(width))\" height=\"14\" "
                + "fill=\"\(width < 0 ? "#c33" : "#393")\"/>"
                + "<text x=\"740\" y=\"\(y + 12)\">\(NumberText.short(figure.ratio ?? 1)) of "
                + "\(escapedXML(figure.bestPeer ?? ""))</text>\n"
        }
        return text
            + "<line x1=\"600\" y1=\"26\" x2=\"600\" y2=\"\(height)\" stroke=\"black\"/>\n</svg>\n"
    }
}
