/// Listings for people: aligned columns, sizes and times in words.
import Posix

/// Columns as wide as their widest cell; the last is not filled up.
struct TextTable {
    /// Columns whose cells end in one line, counted from 0.
    var rightAligned: Set<Int> = []
    private(set) var rows: [[String]] = []

    init(rightAligned: Set<Int> = []) { self.rightAligned = rightAligned }

    mutating func add(_ cells: String...) { rows.append(cells) }

    var text: String {
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

/// Figures in words.
enum Words {
    /// `0 B`, `12 kB`, `1.3 GB`: powers of 1000, two or more digits.
    static func size(_ bytes: Int64) -> String {
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

    /// `45 s`, `24:10`, `1:24:10`.
    static func length(_ seconds: Double) -> String {
        let whole = Int64(max(0, min(seconds, 1e12)).rounded())
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        if whole < 60 { return "\(whole) s" }
        if whole < 3_600 { return "\(whole / 60):\(two(whole % 60))" }
        return "\(whole / 3_600):\(two(whole / 60 % 60)):\(two(whole % 60))"
    }

    /// `just now`, `3 min ago`, `2 d ago`; `never` for none.
    static func past(_ seconds: Int64?, now: Int64) -> String {
        guard let seconds else { return "never" }
        let age = max(0, now - seconds)
        switch age {
        case ..<60: return age < 5 ? "just now" : "\(age) s ago"
        case ..<3_600: return "\(age / 60) min ago"
        case ..<86_400: return "\(age / 3_600) h ago"
        default: return "\(age / 86_400) d ago"
        }
    }

    /// Cut to a number of characters, with an ellipsis in place of the rest.
    static func cut(_ text: String, _ count: Int) -> String {
        text.count <= count ? text : text.prefix(count - 1) + "…"
    }
}

/// The listing of titles.
struct TitleTable {
    private let titles: [TitleLine]
    private let showsAll: Bool
    private let showsURLs: Bool
    /// Names that several of the titles have.
    private let ambiguous: Set<String>

    /// - Parameters:
    ///   - titles: in the order wanted.
    ///   - showsAll: whether variants stand there of which nothing is kept.
    ///   - showsURLs: whether the URL that a title starts from stands at the end of its line.
    init(_ titles: [TitleLine], showsAll: Bool, showsURLs: Bool = false) {
        self.titles = titles
        self.showsAll = showsAll
        self.showsURLs = showsURLs
        ambiguous = Set(Dictionary(grouping: titles, by: \.name).filter { $0.value.count > 1 }.keys)
    }

    /// The name, with what tells it from others of the same name: the end of its URL's path.
    private func name(_ title: TitleLine) -> String {
        guard !showsURLs, ambiguous.contains(title.name), let url = title.url else {
            return Words.cut(title.name, 48)
        }
        let path = url.prefix { $0 != "?" }.split(separator: "/").dropFirst().joined(separator: "/")
        let shown = path.count <= 48 ? path : "…" + path.suffix(47)
        return "\(Words.cut(title.name, 24)) (\(shown))"
    }

    var text: String {
        let now = WallTime.now().seconds
        var table = TextTable(rightAligned: [3, 4, 5])
        table.add(
            "number", "title", "kind", "kept", "length", "size", "played", "",
            showsURLs ? "url" : "")
        for title in titles {
            table.add(
                title.id, name(title), title.kind,
                title.kind == "parts" ? "-" : "\(title.percent) %",
                Self.length(title.keptSeconds, title.seconds), Words.size(title.bytes),
                Words.past(title.lastPlayed, now: now), Self.notes(title),
                showsURLs ? title.url ?? "-" : "")
            let shown = title.variants.filter { showsAll || $0.percent > 0 || $0.keptSeconds > 0 }
            guard showsAll || title.variants.count > 1 else { continue }
            for variant in shown {
                table.add(
                    "", "  " + Words.cut("\(variant.kind) \(variant.label)", 46), "",
                    "\(variant.percent) %", Self.length(variant.keptSeconds, variant.seconds))
            }
        }
        guard showsAll, titles.count == 1 else { return table.text }
        var notes = ""
        if let url = titles[0].url { notes += "\n\nstarts at \(url)" }
        if titles[0].sharedBytes > 0 {
            notes += "\nneeds \(Words.size(titles[0].sharedBytes)) more that other titles brought"
        }
        return table.text + notes
    }

    private static func notes(_ title: TitleLine) -> String {
        [title.pinned ? "pinned" : nil, title.encryption?.text].compactMap { $0 }
            .joined(separator: ", ")
    }

    /// `12:04 of 24:10`; nothing where no list is kept that would tell.
    private static func length(_ kept: Double, _ all: Double?) -> String {
        guard let all, all > 0 else { return "" }
        return kept >= all - 0.05
            ? Words.length(all) : "\(Words.length(kept)) of \(Words.length(all))"
    }
}
