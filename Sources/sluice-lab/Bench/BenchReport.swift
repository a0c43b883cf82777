// The output of `sluice-lab bench`: a table for people and records, and a plot of it.
import Numbers

/// A table in Markdown.
struct BenchTable {
    let title: String
    let columns: [String]
    private(set) var rows: [[String]] = []

    init(_ title: String, _ columns: [String]) {
        self.title = title
        self.columns = columns
    }

    mutating func add(_ row: [String]) { rows.append(row) }

    var text: String {
        let widths = columns.indices.map { column in
            ([columns] + rows).map { $0[column].count }.max() ?? 0
        }
        let line = { (cells: [String]) in
            "| "
                + zip(cells, widths).map { cell, width in
                    cell + String(repeating: " ", count: width - cell.count)
                }.joined(separator: " | ") + " |"
        }
        let rule = "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|")
        return ([title, "", line(columns), rule + "|"] + rows.map(line)).joined(separator: "\n")
            + "\n"
    }
}

/// Grouped bars as SVG: one group for each profile.
struct BenchPlot {
    struct Bar {
        let group: String
        let name: String
        let value: Double
    }

    let title: String
    let unit: String
    let bars: [Bar]

    var svg: String {
        let step = 26
        let height = 60 + bars.count * step
        let most = max(bars.map(\.value).max() ?? 1, 1e-9)
        var parts = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 \#(height)" "#
                + #"font-family="sans-serif" font-size="12"><rect width="760" height="\#(height)" fill="white"/>"#,
            #"<text x="10" y="22" font-size="14">\#(escaped(title)) (\#(escaped(unit)))</text>"#,
        ]
        let colours = ["#0058c7", "#c77700", "#007a5a", "#7a3fb0", "#b00040"]
        let groups = bars.map(\.group).reduce(into: [String]()) { known, group in
            if !known.contains(group) { known.append(group) }
        }
        for (index, bar) in bars.enumerated() {
            let y = 40 + index * step
            let colour = colours[(groups.firstIndex(of: bar.group) ?? 0) % colours.count]
            let width = Int(bar.value / most * 440)
            parts.append(
                #"<text x="10" y="\#(y + 13)">\#(escaped("\(bar.group) \(bar.name)"))</text>"#
                    + #"<rect x="220" y="\#(y)" width="\#(width)" height="18" fill="\#(colour)"/>"#
                    + #"<text x="\#(226 + width)" y="\#(y + 13)">\#(Figure.short(bar.value))</text>"#
            )
        }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }

    private func escaped(_ text: String) -> String {
        String(text.flatMap { $0 == "<" ? Array("&lt;") : $0 == "&" ? Array("&amp;") : [$0] })
    }
}

enum Figure {
    /// Formats a value with two decimals, fewer if it is large.
    static func short(_ value: Double) -> String {
        guard value < 100 else { return String(Int(value.rounded())) }
        let hundredths = Int((value * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(String(rest, width: 2))"
    }

    /// Formats a value with three decimals.
    static func thousandths(_ value: Double) -> String {
        guard value.isFinite else { return "" }
        let count = Int((value * 1_000).rounded())
        return "\(count / 1_000).\(String(count % 1_000, width: 3))"
    }

    /// The median; 0 without values.
    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }
}
