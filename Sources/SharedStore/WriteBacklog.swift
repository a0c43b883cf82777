// What is still to be written to the shared store, from run to run of a daemon: a log of what joined the
// queue and what left it.
import Numbers

/// One object that waits to be written.
package struct WaitingWrite: Hashable, Sendable {
    /// 64 hexadecimal digits.
    package var key: String
    package var generation: UInt64
    /// The letter of its role.
    package var role: UInt8
    package var isKey: Bool
    package var setsCookies: Bool
    /// True once it is known that it does not belong to a live stream.
    package var isFilm: Bool
    /// The URL that was asked for; without spaces.
    package var url: String

    package init(
        key: String, generation: UInt64, role: UInt8, isKey: Bool, setsCookies: Bool, isFilm: Bool,
        url: String
    ) {
        self.key = key
        self.generation = generation
        self.role = role
        self.isKey = isKey
        self.setsCookies = setsCookies
        self.isFilm = isFilm
        self.url = url
    }
}

/// The text of all that waits.
package enum WriteBacklog {
    /// The first line of every text.
    package static let firstLine = "sluice shared-store queue 2\n"
    /// The most objects that are remembered.
    package static let most = 16_384
    /// Objects with longer URLs are not remembered.
    private static let longestURL = 2_000
    /// The most lines of a text with so many objects that wait; a longer one is written anew.
    package static func mostLines(waiting count: Int) -> Int { 2 * count + 1_024 }
    /// The most bytes of a text.
    package static let largest = mostLines(waiting: most) * (longestURL + 120)

    /// The line of an object that joins the queue, or of which more is known; nil if its URL is too
    /// long.
    package static func line(_ one: WaitingWrite) -> String? {
        guard one.url.utf8.count <= longestURL else { return nil }
        let facts = [one.isKey, one.setsCookies, one.isFilm].map { $0 ? "1" : "0" }
        return
            "\(one.key) \(one.generation) \(one.role) \(facts.joined(separator: " ")) \(one.url)\n"
    }

    /// The line of an object that has left the queue.
    package static func line(doneWith key: String, _ generation: UInt64) -> String {
        "- \(key) \(generation)\n"
    }

    /// Parses a text; damaged lines are skipped, nothing is in any other text.
    package static func parse(_ text: [UInt8]) -> [WaitingWrite] {
        let all = String(decoding: text, as: UTF8.self)
        guard all.hasPrefix(firstLine) else { return [] }
        var waiting: [String: (place: Int, write: WaitingWrite)] = [:]
        for (place, line) in all.split(separator: "\n").dropFirst().enumerated() {
            let parts = line.split(separator: " ", omittingEmptySubsequences: false)
            if parts.count == 3, parts[0] == "-" {
                waiting["\(parts[1]) \(parts[2])"] = nil
            } else if let write = WaitingWrite(parts) {
                let name = "\(write.key) \(write.generation)"
                waiting[name] = (waiting[name]?.place ?? place, write)
            }
        }
        return waiting.values.sorted { $0.place < $1.place }.prefix(most).map(\.write)
    }

    fileprivate static func isURL(_ text: Substring) -> Bool {
        (1...longestURL).contains(text.utf8.count)
    }
}

extension WaitingWrite {
    /// Nil for the parts of a damaged line.
    fileprivate init?(_ parts: [Substring]) {
        guard parts.count == 7, parts[0].utf8.count == 64,
            SharedOrder.isHexadecimal(parts[0], atMost: 64),
            let generation = ExternalNumber.integer(parts[1], in: 0...UInt64.max),
            let role = ExternalNumber.integer(parts[2], in: 0...UInt8.max),
            let isKey = ExternalNumber.integer(parts[3], in: 0...1),
            let setsCookies = ExternalNumber.integer(parts[4], in: 0...1),
            let isFilm = ExternalNumber.integer(parts[5], in: 0...1),
            WriteBacklog.isURL(parts[6])
        else { return nil }
        self.init(
            key: String(parts[0]), generation: generation, role: role, isKey: isKey == 1,
            setsCookies: setsCookies == 1, isFilm: isFilm == 1, url: String(parts[6]))
    }
}
