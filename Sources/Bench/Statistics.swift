// Statistics of repeated measurements: median, spread, and their formatting.
import Glibc

/// The median, or the lower of the two middle values; 0 for none.
func median(_ values: [Double]) -> Double { quantile(values, 0.5) }

/// The value below which `part` (0...1) of the values lie; 0 for none.
func quantile(_ values: [Double], _ part: Double) -> Double {
    guard !values.isEmpty else { return 0 }
    return values.sorted()[Int(Double(values.count - 1) * part)]
}

/// Half of the range of the values, divided by their median; nil for fewer than two values, or a
/// median of 0.
func spread(_ values: [Double]) -> Double? {
    let middle = median(values)
    guard values.count > 1, middle != 0, let least = values.min(), let most = values.max() else {
        return nil
    }
    return (most - least) / 2 / abs(middle)
}

enum NumberText {
    /// Three significant digits, which is more than a shared machine reproduces.
    static func short(_ value: Double) -> String {
        guard value != 0, value.isFinite else { return "0" }
        let digits = max(0, 2 - Int(floor(log10(abs(value)))))
        guard digits > 0 else { return "\(Int(value.rounded()))" }
        let scale = pow(10, Double(digits))
        let text = "\((value * scale).rounded() / scale)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// A fraction in per cent: `±4 %`.
    static func hundredths(_ part: Double) -> String { "±\(Int((part * 100).rounded())) %" }
}

/// Text as a JSON string (RFC 8259 section 7).
func quotedJSON(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": quoted += "\\\(scalar)"
        case "\u{0}"..<" ":
            let digits = String(scalar.value, radix: 16)
            quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: quoted.unicodeScalars.append(scalar)
        }
    }
    return quoted + "\""
}

/// Text escaped for XML.
func escapedXML(_ text: String) -> String {
    text.reduce(into: "") { escaped, character in
        switch character {
        case "&": escaped += "&amp;"
        case "<": escaped += "&lt;"
        case ">": escaped += "&gt;"
        default: escaped.append(character)
        }
    }
}

/// A Markdown table whose columns are as wide as their widest cell.
///
/// The first column is aligned left, columns in `numbers` right.
func markdownTable(_ head: [String], _ rows: [[String]], numbers: Set<Int> = []) -> String {
    let widths = head.indices.map { column in
        ([head] + rows).map { $0[column].count }.max() ?? 0
    }
    func line(_ cells: [String]) -> String {
        let padded = cells.indices.map { column in
            let space = String(repeating: " ", count: widths[column] - cells[column].count)
            return numbers.contains(column) ? space + cells[column] : cells[column] + space
        }
        return "| " + padded.joined(separator: " | ") + " |\n"
    }
    let rule = head.indices.map { column in
        String(repeating: "-", count: max(1, widths[column] - 1))
            + (numbers.contains(column) ? ":" : "-")
    }
    return line(head) + line(rule) + rows.map(line).joined()
}
