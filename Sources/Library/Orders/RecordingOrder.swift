// What a person asked to have recorded, and what has become of it: as lines of a file, so that a
// restart goes on with it.
import Numbers
package import Posix
package import Routing
import URISyntax

/// One recording's books.
package struct RecordingOrder: Sendable, Equatable {
    package enum State: String, Sendable {
        /// Its playlists are followed.
        case running
        /// Not taken up again after crashes, until a person resumes it.
        case paused
        /// The last segments are fetched and the playlists written.
        case finishing
        /// It plays from the store.
        case done
        /// Nothing that plays has come of it.
        case failed

        package var isOver: Bool { self == .done || self == .failed }
    }

    /// Eight hexadecimal digits.
    package let id: String
    /// URL, headers, variants and renditions.
    package var choice: DownloadOrder
    /// For listings; nil for what the URL or the playlist tells.
    package var name: String?
    package var started: WallTime
    package var until: WallTime
    /// When it was over; nil while it is not, and for one that an earlier version has ended.
    package var ended: WallTime?
    package var state = State.running
    /// Why it ended, or what is wrong now; empty for nothing.
    package var reason = ""
    /// The media playlists; empty until the entry was read.
    package var lists: [ChosenPlaylist] = []
    /// Whether the entry names the lists, or is the only one itself.
    package var isMultivariant = false
    /// Bytes fetched by former runs, or of all once it is over.
    package var bytes: Int64 = 0
    /// Of the longest list, once it is over.
    package var seconds = 0.0
    package var segments = 0
    package var lost = 0

    package init(id: String, choice: DownloadOrder, started: WallTime, until: WallTime) {
        self.id = id
        self.choice = choice
        self.started = started
        self.until = until
    }

    /// What a player would start from.
    package var entry: Entry { choice.entry }

    // MARK: Lines

    private static let firstLine = "SLUICE RECORDING 1"

    /// The file's text.
    package var text: String {
        var lines = [Self.firstLine, "id \(id)", "url \(choice.url.text)"]
        lines += choice.headers.map { "header \($0.name): \($0.value)" }
        lines += choice.settings.map { "set \($0.name) \($0.value)" }
        if let name { lines.append("name \(name)") }
        lines += [
            "started \(started.seconds)", "until \(until.seconds)", "state \(state.rawValue)",
        ]
        if let ended { lines.append("ended \(ended.seconds)") }
        if !reason.isEmpty { lines.append("reason \(reason)") }
        if isMultivariant { lines.append("multivariant 1") }
        // The number says nothing any more; earlier versions read it.
        lines += lists.map { "list 0 \($0.url.text) \($0.label)" }
        lines += ["bytes \(bytes)", "milliseconds \(Int64(saturating: seconds * 1_000))"]
        lines += ["segments \(segments)", "lost \(lost)", "END"]
        return lines.map { $0.filter { $0 != "\n" } + "\n" }.joined()
    }

    /// Reads a file's text; nil for one that is not whole.
    package init?(text: String) {
        let lines = text.split(separator: "\n")
        guard lines.first.map(String.init) == Self.firstLine, lines.last == "END" else {
            return nil
        }
        var values: [Substring: [Substring]] = [:]
        for line in lines.dropFirst().dropLast() {
            let parts = line.split(separator: " ", maxSplits: 1)
            values[parts[0], default: []].append(parts.count == 2 ? parts[1] : "")
        }
        func number(_ name: Substring) -> Int64 {
            let largest = Int64(OutsideNumber.largest)
            return values[name]?.first.flatMap { OutsideNumber.integer($0, in: 0...largest) } ?? 0
        }
        guard let id = values["id"]?.first, let url = values["url"]?.first,
            let parsed = try? AbsoluteURL(String(url)),
            let state = values["state"]?.first.flatMap({ State(rawValue: String($0)) })
        else { return nil }
        var choice = DownloadOrder(url: parsed)
        for line in values["header"] ?? [] {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            choice.headers.append(.init(name: String(line[..<colon]), value: String(value)))
        }
        for line in values["set"] ?? [] {
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            guard parts.count == 2, choice.set(parts[0], parts[1]) == nil else { return nil }
        }
        self.init(
            id: String(id), choice: choice, started: WallTime(seconds: number("started")),
            until: WallTime(seconds: number("until")))
        if values["ended"] != nil { ended = WallTime(seconds: number("ended")) }
        name = values["name"]?.first.map(String.init)
        self.state = state
        reason = values["reason"]?.first.map(String.init) ?? ""
        isMultivariant = values["multivariant"] != nil
        lists = (values["list"] ?? []).compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count >= 2, let url = try? AbsoluteURL(String(parts[1])) else { return nil }
            return ChosenPlaylist(url: url, label: parts.count == 3 ? String(parts[2]) : "")
        }
        bytes = number("bytes")
        seconds = Double(number("milliseconds")) / 1_000
        segments = Int(number("segments"))
        lost = Int(number("lost"))
    }
}
