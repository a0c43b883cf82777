// Changes that all nodes follow: purges and pins, each a small object in the bucket that is written once.
import HTTP
import Numbers
package import Posix
import URISyntax

/// A request to the administration of one node that the others repeat.
package struct SharedChange: Sendable, Equatable {
    /// What a purge removes, for objects that nobody has on a disk.
    package enum Mark: Sendable, Equatable {
        /// The origin's URL.
        case url(String)
        /// In lower case; with or without a port, or a web origin.
        case host(String)
        /// The origin's URL that what is purged is below.
        case prefix(String)
        /// A title's number, or the URL that it starts from.
        case title(String)
    }

    /// `/api/purge`, `/api/pin` or `/api/unpin`.
    package let path: String
    /// What the request names, without `?`, and without its token and secrets of its URL: all who may
    /// use the bucket can read it.
    package let query: String
    package let given: WallTime
    /// The run of a daemon that it was given to: hexadecimal digits.
    package let node: String

    private static let paths: Set<String> = ["/api/purge", "/api/pin", "/api/unpin"]
    private static let firstLine = "sluice change 1"
    /// The longest text of a change.
    package static let largest = 70_000
    /// The last time of a change: the year 2200.
    ///
    /// Pins are followed by later ones, so behind the last time that a number can express none
    /// could follow. No clock is the measure: those of two nodes would disagree on what counts.
    package static let latest = WallTime(seconds: 7_258_118_400)

    /// Nil for requests that concern one node alone: other paths, and purges by age; and for times
    /// that no clock has.
    package init?(path: String, query: String, given: WallTime, node: String) {
        guard Self.paths.contains(path), !query.isEmpty, query.utf8.count <= 66_000,
            query.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            given.nanoseconds > 0, given <= Self.latest,
            (1...32).contains(node.utf8.count),
            node.utf8.allSatisfy({
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
            })
        else { return nil }
        let items = QueryItem.items(of: query)
        let names = items.map(\.rawName)
        if names.contains("older-than") || names.contains("given") { return nil }
        let named = items.compactMap(Self.public)
        guard !named.isEmpty else { return nil }
        self.path = path
        self.query = named.joined(separator: "&")
        self.given = given
        self.node = node
    }

    /// Returns an item of a query without secrets; nil for an item that names nothing.
    private static func `public`(_ item: QueryItem) -> String? {
        switch item.rawName {
        case "title", "host": return item.rawValue.map { "\(item.rawName)=\($0)" }
        case "url", "prefix":
            var text = item.value()
            // Headers as in Kodi.
            if let bar = text.firstIndex(of: "|"), text[bar...].contains("=") {
                text = String(text[..<bar])
            }
            let url = (try? AbsoluteURL(text))?.withoutUserinfo.text ?? text
            return "\(item.rawName)=\(PercentCoding.queryComponent(url))"
        default: return nil
        }
    }

    /// The name after the prefix of the location; names sort by time.
    package var name: String {
        SharedNames.rules + String(given.nanoseconds, width: 19) + "-" + node
    }

    package var text: [UInt8] { Array("\(Self.firstLine)\n\(path)?\(query)\n".utf8) }

    /// Parses an object; nil for any other name or text.
    ///
    /// - Parameters:
    ///   - name: the name after the prefix of the location.
    ///   - text: its bytes.
    package init?(name: String, text: [UInt8]) {
        guard name.hasPrefix(SharedNames.rules), text.count <= Self.largest else { return nil }
        let parts = name.dropFirst(SharedNames.rules.count).split(separator: "-")
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        guard parts.count == 2, parts[0].utf8.count == 19,
            let given = ExternalNumber.integer(parts[0], in: 1...Int64.max),
            lines.count == 2, lines[0] == Self.firstLine
        else { return nil }
        let halves = lines[1].split(separator: "?", maxSplits: 1)
        guard halves.count == 2 else { return nil }
        self.init(
            path: String(halves[0]), query: String(halves[1]),
            given: WallTime(nanoseconds: given), node: String(parts[1]))
    }

    /// True if it removes what was stored before it was given.
    package var isPurge: Bool { path == "/api/purge" }

    /// What must not be read from the store any more if it came from the origin before; nil for pins.
    package var mark: Mark? {
        guard isPurge else { return nil }
        for item in QueryItem.items(of: query) {
            switch item.rawName {
            case "url": return .url(item.value())
            case "host": return .host(item.value().lowercased())
            case "prefix": return .prefix(item.value())
            case "title": return .title(item.value())
            default: continue
            }
        }
        return nil
    }
}
