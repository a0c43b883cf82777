import HTTP
package import Posix
import Routing
package import URISyntax

/// Parsing of a recording order from the arguments of a request.
extension RecordingOrder {
    /// The longest duration of a recording in seconds: a week.
    package static let longest = 7 * 86_400

    /// Parses a request's arguments.
    ///
    /// - Parameters:
    ///   - query: the query of the request: `url`, `for`, `name`, and the choice of renditions.
    ///   - now: the time of the start.
    ///   - origin: returns the origin URL that a text names.
    /// - Throws: `AdministrationRefusal` with the fault.
    package init(
        query: String, now: WallTime, origin: (String) -> AbsoluteURL?
    ) throws(AdministrationRefusal) {
        let items = QueryItem.items(of: query)
        let others = items.filter { $0.rawName != "for" && $0.rawName != "name" }
        var choice = try DownloadOrder(
            query: others.map(\.text).joined(separator: "&"), origin: origin)
        let fixed = ["from", "to", "rate"].filter { name in items.contains { $0.rawName == name } }
        if let name = fixed.first {
            throw AdministrationRefusal(
                .badRequest, "there is no setting '\(name)' of a recording")
        }
        // By default everything is recorded, since a rendition cannot be fetched later.
        if !items.contains(where: { $0.rawName == "audio" }) { choice.audio = .all }
        if !items.contains(where: { $0.rawName == "subtitles" }) { choice.subtitles = .all }
        guard let text = items.first(where: { $0.rawName == "for" })?.value() else {
            throw .missing("for")
        }
        guard let seconds = WindowLength.seconds(text, longest: Self.longest) else {
            throw AdministrationRefusal(
                .badRequest,
                "for is a length of time up to 7d, such as 30m, 2h or 1h30m, not '\(text)'")
        }
        let number = UInt32.random(in: 0x1000_0000 ... .max)
        self.init(
            id: String(number, radix: 16), choice: choice, started: now,
            until: now + .seconds(Int64(seconds)))
        if let name = items.first(where: { $0.rawName == "name" })?.value() {
            let visible = name.filter { !$0.isNewline }.prefix(80)
            self.name = visible.isEmpty ? nil : String(visible)
        }
    }
}
