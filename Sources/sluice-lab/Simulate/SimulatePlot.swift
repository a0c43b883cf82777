// The plot of `sluice-lab simulate`: byte hit ratio over store size, a line per policy, as SVG.
import Glibc
import RetentionLab

/// Draws a report: sizes at even distances, ratios from 0 to the ceiling.
struct SimulationPlot {
    private static let colours = ["#888888", "#c77700", "#007a5a", "#7a3fb0", "#0058c7", "#b00040"]
    private static let area = (left: 60.0, top: 40.0, width: 480.0, height: 280.0)

    private let report: SimulationReport
    private let highest: Double

    init(_ report: SimulationReport) {
        self.report = report
        let all = report.rows.flatMap(\.byteHitRatios) + [report.ceiling]
        // Rounded up to the next tenth, so that the grid lines have round labels.
        highest = max(0.1, ((all.max() ?? 1) * 10).rounded(.up) / 10)
    }

    var svg: String {
        var parts = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 370" font-family="sans-serif" "#
                + #"font-size="12"><rect width="680" height="370" fill="white"/>"#,
            text(Self.area.left, 22, "\(report.trace): bytes from the store, per cent"),
        ]
        for tenth in 0...Int((highest * 10).rounded()) {
            let height = y(Double(tenth) / 10)
            parts.append(line([(Self.area.left, height), (right, height)], "#dddddd", 1))
            parts.append(text(28, height + 4, "\(tenth * 10)"))
        }
        for (index, size) in report.sizes.enumerated() {
            parts.append(text(x(index) - 10, 340, SimulationSize.text(size)))
        }
        parts.append(
            line([(Self.area.left, y(report.ceiling)), (right, y(report.ceiling))], "#222222", 1))
        parts.append(text(right + 8, y(report.ceiling) + 4, "everything kept"))
        for (index, row) in report.rows.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            let points = row.byteHitRatios.enumerated().map { (x($0.offset), y($0.element)) }
            parts.append(line(points, colour, 2))
            let place = Self.area.top + Self.area.height - 14 * Double(report.rows.count - index)
            parts.append(text(right + 8, place, row.policy.rawValue, colour))
        }
        return parts.joined(separator: "\n") + "\n</svg>\n"
    }

    private var right: Double { Self.area.left + Self.area.width }

    private func x(_ index: Int) -> Double {
        let steps = max(1, report.sizes.count - 1)
        return Self.area.left + 20 + (Self.area.width - 40) * Double(index) / Double(steps)
    }

    private func y(_ ratio: Double) -> Double {
        Self.area.top + Self.area.height * (1 - ratio / highest)
    }

    private func line(_ points: [(Double, Double)], _ colour: String, _ width: Int) -> String {
        let list = points.map { "\(Self.short($0.0)),\(Self.short($0.1))" }.joined(separator: " ")
        return #"<polyline fill="none" stroke="\#(colour)" stroke-width="\#(width)" "#
            + #"points="\#(list)"/>"#
    }

    private func text(_ x: Double, _ y: Double, _ text: String, _ colour: String = "#222222")
        -> String
    {
        var safe = ""
        for character in text {
            switch character {
            case "<": safe += "&lt;"
            case "&": safe += "&amp;"
            default: safe.append(character)
            }
        }
        let place = #"x="\#(Self.short(x))" y="\#(Self.short(y))""#
        return #"<text \#(place) fill="\#(colour)">\#(safe)</text>"#
    }

    private static func short(_ value: Double) -> String { String(Int(value.rounded())) }
}
