// The figures of the benches without peers: collected, then printed.

/// One measured figure.
struct Figure {
    /// The group that measures it again: `Bench GROUP`.
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

    /// A Markdown table with a row per figure.
    var table: String {
        markdownTable(
            ["measured", "value", "unit", "to repeat"],
            figures.map {
                [
                    $0.what, NumberText.short($0.value), $0.unit,
                    "`make bench BENCH_FLAGS='\($0.group)'`",
                ]
            }, numbers: [1])
    }

    /// JSON with one object per line.
    var json: String {
        figures.map {
            "{\"group\":\(quotedJSON($0.group)),\"what\":\(quotedJSON($0.what)),"
                + "\"value\":\($0.value),\"unit\":\(quotedJSON($0.unit))}\n"
        }.joined()
    }
}
