import HTTP
package import Posix
import Routing

/// Reads what a person asked to have recorded from the arguments of a request.
extension RecordingOrder {
    /// The longest time that a recording runs, in seconds: a week.
    package static let longest = 7 * 86_400

    /// Reads a request's arguments.
    ///
    /// - Parameters:
    ///   - query: of the request: `url`, `for`, `name`, and what chooses renditions.
    ///   - now: when it starts.
    ///   - origin: the origin's URL that a text means.
    /// - Throws: `StoreAdministration.Refusal` with what is wrong.
    package init(query: String, now: WallTime, origin: StoreAdministration.OriginURL)
        throws(StoreAdministration.Refusal)
    {
        let items = QueryItem.items(of: query)
        let others = items.filter { $0.rawName != "for" && $0.rawName != "name" }
        var choice = try DownloadOrder(
            query: others.map(\.text).joined(separator: "&"), origin: origin)
        let fixed = ["from", "to", "rate"].filter { name in items.contains { $0.rawName == name } }
        if let name = fixed.first {
            throw StoreAdministration.Refusal(
                status: .badRequest, reason: "there is no setting '\(name)' of a recording")
        }
        // Whoever records has no second chance to fetch a rendition.
        if !items.contains(where: { $0.rawName == "audio" }) { choice.audio = .all }
        if !items.contains(where: { $0.rawName == "subtitles" }) { choice.subtitles = .all }
        guard let text = items.first(where: { $0.rawName == "for" })?.value() else {
            throw .missing("for")
        }
        guard let seconds = WindowLength.seconds(text, longest: Self.longest) else {
            throw StoreAdministration.Refusal(
                status: .badRequest,
                reason: "for is a length of time up to 7d, such as 30m, 2h or 1h30m, not '\(text)'")
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
