import Numbers

/// A recording.
package struct RecordingRecord: StateRecord {
    /// The most recordings that are read again.
    package static let most = 10_000
    package static let table = StateTable(
        "recordings", mostRows: most,
        [.text("id", most: 64)] + OrderRecord.columns + [
            .text("name", most: 1 << 16).orNull, .integer("started", in: OrderRecord.time),
            .integer("until", in: OrderRecord.time), .integer("ended", in: OrderRecord.time).orNull,
            .text("state", most: 64), .text("reason", most: 1 << 16), .truth("multivariant"),
            .text("lists", most: 4 << 20), .integer("bytes", in: OrderRecord.sum),
            .real("seconds", in: 0...1e15), .integer("segments", in: OrderRecord.sum),
            .integer("lost", in: OrderRecord.sum), .truth("is_left").orNull,
        ])

    /// A media playlist that is recorded.
    package struct List: Equatable, Sendable {
        package let url: String
        package let label: String

        package init(url: String, label: String) {
            self.url = url
            self.label = label
        }
    }

    package let id: String
    package var order: OrderRecord
    package var name: String?
    /// Seconds since 1970.
    package var started: Int64
    package var until: Int64
    package var ended: Int64?
    /// A keyword defined by the recording code.
    package var state: String
    package var reason = ""
    package var isMultivariant = false
    package var lists: [List] = []
    package var bytes: Int64 = 0
    package var seconds = 0.0
    package var segments: Int64 = 0
    package var lost: Int64 = 0
    /// True if another node goes on with it.
    package var isLeft = false

    package init(id: String, order: OrderRecord, started: Int64, until: Int64, state: String) {
        self.id = id
        self.order = order
        self.started = started
        self.until = until
        self.state = state
    }

    package var values: [StateValue] {
        // The separator is unambiguous: a URL has no blanks.
        let lines = lists.map { "\($0.url) \($0.label.filter { !$0.isNewline })\n" }
        return [.text(id)] + order.values + [
            .optional(name), .integer(started), .integer(until), .optional(ended), .text(state),
            .text(reason), .truth(isMultivariant), .text(lines.joined()), .integer(bytes),
            .real(seconds), .integer(segments), .integer(lost), .truth(isLeft),
        ]
    }

    package init(_ row: StateRow) {
        self.init(
            id: row.text(0), order: OrderRecord(row, from: 1), started: row.integer(10),
            until: row.integer(11), state: row.text(13))
        name = row.optionalText(9)
        ended = row.optionalInteger(12)
        reason = row.text(14)
        isMultivariant = row.truth(15)
        lists = row.text(16).split(separator: "\n").map { Self.list($0) }
        bytes = row.integer(17)
        seconds = row.real(18)
        segments = row.integer(19)
        lost = row.integer(20)
        isLeft = row.truth(21)
    }

    /// Parses a URL and, after a blank, a label.
    static func list(_ line: Substring) -> List {
        let url = line.prefix { $0 != " " }
        let label = line.dropFirst(url.count + 1).filter { !$0.isNewline }
        return List(url: String(url), label: label)
    }
}
