// What the daemon says of downloads, as text.
import CommandSupport
import Numbers

/// The answer to a dry run.
struct DryRunLine: Decodable {
    let name: String
    let streams: [String]
    let pieces: Int
    let seconds: Double
    /// What of it is stored.
    let bytes: Int64
    let bytesExpected: Int64?
    let isEstimate: Bool
    let encryption: EncryptionLine?

    var text: String {
        var parts = [partCount(pieces)]
        if seconds > 0 { parts.insert(OutputFormat.length(seconds), at: 0) }
        let about = isEstimate ? "about " : ""
        parts.append(bytesExpected.map { about + OutputFormat.size($0) } ?? "size unknown")
        if bytes > 0 { parts.append("\(OutputFormat.size(bytes)) of it in the store") }
        return "\(name) (\(streams.joined(separator: ", "))): \(parts.joined(separator: ", "))"
    }
}

/// A download in the API's form.
struct DownloadLine: Decodable {
    let id: String
    let name: String
    let state: String
    let reason: String?
    let streams: [String]
    let pieces: Int
    let piecesDone: Int
    let percent: Int
    let bytes: Int64
    /// Nil if unknown, and from a daemon of an earlier version.
    let bytesExpected: Int64?
    let isEstimate: Bool?
    let rate: Int64
    let transfers: Int
    let secondsLeft: Int64?
    let encryption: EncryptionLine?
    /// What of the title is fetched; nil from a daemon of an earlier version, and of a download
    /// that another node holds.
    let choice: String?
    /// The daemon that holds it; nil without a shared store.
    let node: String?
    /// The state of its refresh; nil while none runs.
    let refreshing: String?
    /// When its last refresh ended, in seconds since 1970; nil before the first one.
    let refreshed: Int64?

    /// The bar, such as `[########----]  66 %`.
    var bar: String {
        let filled = percent * 30 / 100
        return "[" + String(repeating: "#", count: filled)
            + String(repeating: "-", count: 30 - filled) + "] \(percent) %"
    }

    /// Bar and figures, or what the download waits for, as one line of a terminal.
    var progress: String {
        guard let reason else { return "\(bar) \(figures)" }
        return "\(percent) % \(state): \(Self.shortened(reason))"
    }

    /// Shortens long URLs in a text to their last segment, so that the rest of the text has room.
    private static func shortened(_ text: String) -> String {
        text.split(separator: " ", omittingEmptySubsequences: false).map { word in
            guard word.hasPrefix("http"), word.count > 32,
                let name = word.split(separator: "/").last
            else { return String(word) }
            return ".../\(name.suffix(28))"
        }.joined(separator: " ")
    }

    /// Rate, transfers and time left.
    var figures: String {
        var parts = ["\(piecesDone)/\(pieces)", size]
        if pieces == 0 { return state }
        if state != "running" { return ([state] + parts).joined(separator: "  ") }
        parts += ["\(OutputFormat.size(rate))/s", "\(transfers) at once"]
        if let secondsLeft {
            let rest = String(secondsLeft % 60, width: 2)
            parts.append("\(secondsLeft / 60):\(rest) left")
        }
        return parts.joined(separator: "  ")
    }

    /// The bytes that are stored, of those expected.
    private var size: String {
        let stored = OutputFormat.size(bytes)
        guard let bytesExpected, bytesExpected > bytes else { return stored }
        let about = isEstimate == true ? "about " : ""
        return "\(stored) of \(about)\(OutputFormat.size(bytesExpected))"
    }
}

/// Returns a number of parts in words.
func partCount(_ count: Int) -> String { "\(count) \(count == 1 ? "part" : "parts")" }
