// The small object by which a node shows that it lives.
import Numbers

/// The text of a node's heartbeat.
package struct SharedHeartbeat: Equatable {
    /// Machine and port, for people.
    package let name: String
    /// Another one each time.
    package let count: Int64

    private static let firstLine = "sluice node 1"

    package init(name: String, count: Int64) {
        self.name = String(
            name.unicodeScalars.prefix(100).map {
                $0.value > 0x20 && $0.value < 0x7F ? Character($0) : "_"
            })
        self.count = count
    }

    package var text: [UInt8] { Array("\(Self.firstLine)\n\(name)\n\(count)\n".utf8) }

    /// Nil for any other text.
    package init?(text: [UInt8]) {
        let lines = String(decoding: text.prefix(1_024), as: UTF8.self).split(separator: "\n")
        guard lines.count == 3, lines[0] == Self.firstLine,
            let count = ExternalNumber.integer(lines[2], in: 0...Int64.max)
        else { return nil }
        self.init(name: String(lines[1]), count: count)
    }
}
