// Listings as text: aligned columns, formatted sizes and times.
import CommandSupport
import Posix

/// The table of titles.
struct TitleTable {
    private let titles: [TitleLine]
    private let showsAll: Bool
    private let showsURLs: Bool
    /// Names that several titles share.
    private let ambiguous: Set<String>

    /// - Parameters:
    ///   - titles: the titles, in display order.
    ///   - showsAll: whether variants are listed of which nothing is stored.
    ///   - showsURLs: whether a title's entry URL is printed at the end of its line.
    init(_ titles: [TitleLine], showsAll: Bool, showsURLs: Bool = false) {
        self.titles = titles
        self.showsAll = showsAll
        self.showsURLs = showsURLs
        ambiguous = Set(Dictionary(grouping: titles, by: \.name).filter { $0.value.count > 1 }.keys)
    }

    /// Returns the name; if others share it, with the end of its URL's path.
    private func name(_ title: TitleLine) -> String {
        guard !showsURLs, ambiguous.contains(title.name), let url = title.url else {
            return OutputFormat.cut(title.name, 48)
        }
        let path = url.prefix { $0 != "?" }.split(separator: "/").dropFirst().joined(separator: "/")
        let shown = path.count <= 48 ? path : "…" + path.suffix(47)
        return "\(OutputFormat.cut(title.name, 24)) (\(shown))"
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
                Self.length(title.keptSeconds, title.seconds), OutputFormat.size(title.bytes),
                OutputFormat.past(title.lastPlayed, now: now), Self.notes(title),
                showsURLs ? title.url ?? "-" : "")
            let shown = title.variants.filter { showsAll || $0.percent > 0 || $0.keptSeconds > 0 }
            guard showsAll || title.variants.count > 1 else { continue }
            for variant in shown {
                table.add(
                    "", "  " + OutputFormat.cut("\(variant.kind) \(variant.label)", 46), "",
                    "\(variant.percent) %", Self.length(variant.keptSeconds, variant.seconds))
            }
        }
        guard showsAll, titles.count == 1 else { return table.text }
        var notes = ""
        if let url = titles[0].url { notes += "\n\nstarts at \(url)" }
        if titles[0].sharedBytes > 0 {
            notes +=
                "\nneeds \(OutputFormat.size(titles[0].sharedBytes)) more that other titles brought"
        }
        return table.text + notes
    }

    private static func notes(_ title: TitleLine) -> String {
        [title.pinned ? "pinned" : nil, title.encryption?.text].compactMap { $0 }
            .joined(separator: ", ")
    }

    /// Formats `12:04 of 24:10`; empty if no stored list gives the length.
    private static func length(_ kept: Double, _ all: Double?) -> String {
        guard let all, all > 0 else { return "" }
        return kept >= all - 0.05
            ? OutputFormat.length(all)
            : "\(OutputFormat.length(kept)) of \(OutputFormat.length(all))"
    }
}
