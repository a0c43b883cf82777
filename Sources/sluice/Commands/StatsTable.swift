/// The figures as lines of `name value`, in the daemon's order.
struct StatsTable {
    let lines: [String]

    /// Reads the object of /api/stats: values are numbers, texts, or objects of numbers.
    init(json: String) {
        var lines: [String] = []
        var outer = ""
        var rest = json[...]
        while let open = rest.firstIndex(of: "\"") {
            rest = rest[rest.index(after: open)...]
            guard let close = rest.firstIndex(of: "\"") else { break }
            let name = String(rest[..<close])
            rest = rest[rest.index(after: close)...].dropFirst()
            if rest.first == "{" {
                outer = name + "."
                continue
            }
            let end = rest.firstIndex { $0 == "," || $0 == "}" } ?? rest.endIndex
            let value = rest[..<end].filter { $0 != "\"" }
            lines.append("\(outer)\(name) \(value)")
            let closesInner = end < rest.endIndex && rest[end] == "}"
            rest = rest[end...]
            if closesInner { outer = "" }
        }
        self.lines = lines
    }
}
