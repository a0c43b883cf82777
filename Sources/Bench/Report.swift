/// The figures of one run: gathered, then printed as a table or as JSON.
import Glibc

/// One measured figure.
struct Figure {
    /// The group whose name repeats it: `Bench GROUP`.
    let group: String
    let what: String
    let value: Double
    let unit: String
}

struct Report {
    private(set) var figures: [Figure] = []

    mutating func add(_ group: String, _ what: String, _ value: Double, _ unit: String) {
        figures.append(Figure(group: group, what: what, value: value, unit: unit))
    }

    /// A Markdown table, a figure a line.
    var table: String {
        let rows = figures.map { ["\($0.what)", Self.text($0.value), $0.unit, $0.group] }
        let head = ["measured", "value", "unit", "group"]
        let widths = head.indices.map { column in
            ([head] + rows).map { $0[column].count }.max() ?? 0
        }
        func line(_ cells: [String]) -> String {
            let padded = cells.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - cells[column].count)
                return column == 1 ? space + cells[column] : cells[column] + space
            }
            return "| " + padded.joined(separator: " | ") + " |\n"
        }
        let rule = widths.indices.map { column in
            String(repeating: "-", count: widths[column] - 1) + (column == 1 ? ":" : "-")
        }
        return line(head) + line(rule) + rows.map(line).joined()
    }

    /// One object a line.
    ///
    /// No text of ours holds a character that JSON escapes.
    var json: String {
        figures.map {
            "{\"group\":\"\($0.group)\",\"what\":\"\($0.what)\",\"value\":\(Self.text($0.value)),"
                + "\"unit\":\"\($0.unit)\"}\n"
        }.joined()
    }

    /// Three significant digits, which is more than a shared machine repeats.
    static func text(_ value: Double) -> String {
        guard value != 0, value.isFinite else { return "0" }
        let digits = max(0, 2 - Int(floor(log10(abs(value)))))
        guard digits > 0 else { return "\(Int(value.rounded()))" }
        let scale = pow(10, Double(digits))
        let text = "\((value * scale).rounded() / scale)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

/// The middle one, or the lower of the two in the middle; 0 for none.
func median(_ values: [Double]) -> Double { quantile(values, 0.5) }

/// The value below which `part` (0...1) of the values lie; 0 for none.
func quantile(_ values: [Double], _ part: Double) -> Double {
    guard !values.isEmpty else { return 0 }
    return values.sorted()[Int(Double(values.count - 1) * part)]
}
