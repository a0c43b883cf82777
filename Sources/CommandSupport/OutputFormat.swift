/// A text table whose columns are as wide as their widest cell; the last one is not padded.
package struct TextTable {
    /// The right-aligned columns, counted from 0.
    package var rightAligned: Set<Int> = []
    package private(set) var rows: [[String]] = []

    package init(rightAligned: Set<Int> = []) { self.rightAligned = rightAligned }

    /// Adds a row; what of its texts acts on a terminal is left out.
    package mutating func add(_ cells: String...) { rows.append(cells.map(PrintableText.oneLine)) }

    package var text: String {
        var widths: [Int] = []
        for row in rows {
            for (column, cell) in row.enumerated() {
                if column == widths.count { widths.append(0) }
                widths[column] = max(widths[column], cell.count)
            }
        }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                let fill = String(repeating: " ", count: widths[column] - cell.count)
                line += rightAligned.contains(column) ? fill + cell : cell + fill
                line += "  "
            }
            while line.last == " " { line.removeLast() }
            return line
        }.joined(separator: "\n")
    }
}

/// Formats sizes, durations and times for output.
package enum OutputFormat {
    /// Formats a size as `0 B`, `12 kB` or `1.3 GB`: powers of 1000, at least two digits above
    /// bytes.
    package static func size(_ bytes: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB", "PB"]
        var value = Double(bytes), unit = 0
        while value >= 999.5, unit < units.count - 1 {
            value /= 1_000
            unit += 1
        }
        guard unit > 0, value < 9.95 else { return "\(Int64(value.rounded())) \(units[unit])" }
        let tenths = Int64((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// Formats a duration as `45 s`, `24:10` or `1:24:10`.
    package static func length(_ seconds: Double) -> String {
        let whole = Int64(max(0, min(seconds, 1e12)).rounded())
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        if whole < 60 { return "\(whole) s" }
        if whole < 3_600 { return "\(whole / 60):\(two(whole % 60))" }
        return "\(whole / 3_600):\(two(whole / 60 % 60)):\(two(whole % 60))"
    }

    /// Formats the age of a time as `just now`, `3 min ago` or `2 d ago`; `never` for nil.
    package static func past(_ seconds: Int64?, now: Int64) -> String {
        guard let seconds else { return "never" }
        let age = max(0, now - seconds)
        switch age {
        case ..<60: return age < 5 ? "just now" : "\(age) s ago"
        case ..<3_600: return "\(age / 60) min ago"
        case ..<86_400: return "\(age / 3_600) h ago"
        default: return "\(age / 86_400) d ago"
        }
    }

    /// Truncates a text to a number of characters, the last of which is an ellipsis then.
    package static func cut(_ text: String, _ count: Int) -> String {
        text.count <= count ? text : text.prefix(count - 1) + "…"
    }
}
