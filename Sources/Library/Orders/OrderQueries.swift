// Orders as query arguments, from which any node can make them again.
import DurableState
import HTTP
import Numbers
import Posix
import Routing
import URISyntax

extension DownloadOrder {
    /// The arguments that make this order again.
    package var query: String {
        var pairs = [("url", url.text)]
        pairs += headers.map { ("h_\($0.name)", $0.value) }
        pairs += choices
        if let rate { pairs.append(("rate", "\(rate)")) }
        return Self.query(pairs)
    }

    /// The arguments that say what of the title is downloaded.
    package var choice: String { Self.query(choices) }

    private var choices: [(String, String)] {
        let kept = record
        let variant: String? =
            if case .heights(let heights) = variants {
                heights.map { "\($0)p" }.joined(separator: ",")
            } else {
                kept.variant
            }
        let all: [(String, String?)] = [
            ("variant", variant), ("audio", kept.audio), ("subtitles", kept.subtitles),
            ("from", from.map { "\($0)" }), ("to", to.map { "\($0)" }),
        ]
        // A list is written as repeated arguments: its commas would be escaped.
        return all.flatMap { name, value -> [(String, String)] in
            (value ?? "").split(separator: ",").map { (name, String($0)) }
        }
    }

    /// True if it holds what only nodes may see: headers, or a password in the URL.
    package var holdsSecrets: Bool { !headers.isEmpty || url.withoutUserinfo != url }

    fileprivate static func query(_ pairs: [(String, String)]) -> String {
        pairs.map { "\($0)=\(PercentCoding.queryComponent($1))" }.joined(separator: "&")
    }

    /// Parses `query` of another node; nil for any other text.
    package init?(sharedQuery query: String) {
        let order = try? DownloadOrder(query: query) { try? AbsoluteURL($0) }
        guard let order else { return nil }
        self = order
    }
}

extension RecordingOrder {
    private static let own = ["started", "until", "name"]

    /// The arguments that make this recording again on another node.
    package var query: String {
        var pairs = [("started", "\(started.seconds)"), ("until", "\(until.seconds)")]
        if let name { pairs.append(("name", name)) }
        return choice.query + "&" + DownloadOrder.query(pairs)
    }

    /// Parses `query` of another node; nil for any other text.
    package init?(id: String, sharedQuery query: String) {
        let items = QueryItem.items(of: query)
        func time(_ name: String) -> WallTime? {
            let value = items.first { $0.rawName == name }?.value() ?? ""
            return ExternalNumber.integer(value, in: 0...Int64(ExternalNumber.largest))
                .map { WallTime(seconds: $0) }
        }
        let others = items.filter { !Self.own.contains($0.rawName) }
        guard let started = time("started"), let until = time("until"), until >= started,
            until.seconds - started.seconds <= Int64(Self.longest),
            let choice = DownloadOrder(
                sharedQuery: others.map(\.text).joined(separator: "&"))
        else { return nil }
        self.init(id: id, choice: choice, started: started, until: until)
        name = items.first { $0.rawName == "name" }.map { String($0.value().prefix(80)) }
    }
}
