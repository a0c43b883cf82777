import Numbers

/// A download.
///
/// The store knows which of its parts are present; they are not recorded here.
package struct DownloadRecord: StateRecord {
    package static let table = StateTable(
        "downloads", mostRows: 100_000,
        [.integer("id", in: 0...0xFFFF_FFFF_FFFF)] + OrderRecord.columns + [
            .text("name", most: 1 << 16), .text("state", most: 64),
            .text("reason", most: 1 << 16).orNull, .integer("pieces", in: OrderRecord.sum),
            .integer("done", in: OrderRecord.sum), .integer("bytes", in: OrderRecord.sum),
            .real("seconds", in: 0...1e15), .text("labels", most: 1 << 20),
            .truth("pinned_before").orNull, .integer("carried_out", in: 0...Int64.max).orNull,
            .truth("has_clean_name").orNull, .integer("refreshed", in: 0...Int64.max).orNull,
            .bytes("former_keys", most: mostFormerKeys * PinRecord.keyLength).orNull,
        ])
    /// The most objects in `formerKeys`.
    package static let mostFormerKeys = 1 << 18

    package let id: UInt64
    package var order: OrderRecord
    package var name = ""
    /// A keyword defined by the download code.
    package var state = "running"
    /// Of a complete one: why its last refresh failed.
    package var reason: String?
    package var pieces: Int64 = 0
    package var done: Int64 = 0
    package var bytes: Int64 = 0
    package var seconds = 0.0
    package var labels: [String] = []
    /// True if the title was pinned before the order.
    package var isPinnedBefore = false
    /// The time of the order of a cluster that was carried out last, in nanoseconds since 1970; nil
    /// if none was, or by an earlier version.
    package var carriedOut: Int64?
    /// False if an earlier version made the name, perhaps with a secret of the title's URL.
    package var hasCleanName = false
    /// When the last refresh ended, in seconds since 1970; nil before the first one.
    package var refreshed: Int64?
    /// The concatenated keys of objects that a refresh is to remove once it has succeeded.
    package var formerKeys: [UInt8] = []

    package init(id: UInt64, order: OrderRecord) {
        self.id = id
        self.order = order
    }

    package var values: [StateValue] {
        [.integer(Int64(clamping: id))] + order.values + [
            .text(name), .text(state), .optional(reason), .integer(pieces), .integer(done),
            .integer(bytes), .real(seconds),
            .text(labels.map { "\($0.filter { !$0.isNewline })\n" }.joined()),
            .truth(isPinnedBefore), .optional(carriedOut), .truth(hasCleanName),
            .optional(refreshed), .bytes(formerKeys),
        ]
    }

    package init(_ row: StateRow) {
        self.init(id: UInt64(clamping: row.integer(0)), order: OrderRecord(row, from: 1))
        name = row.text(9)
        state = row.text(10)
        reason = row.optionalText(11)
        pieces = row.integer(12)
        done = row.integer(13)
        bytes = row.integer(14)
        seconds = row.real(15)
        labels = row.text(16).split(whereSeparator: \.isNewline).map(String.init)
        isPinnedBefore = row.truth(17)
        carriedOut = row.optionalInteger(18)
        hasCleanName = row.truth(19)
        refreshed = row.optionalInteger(20)
        formerKeys = row.bytes(21)
    }
}

/// The bytes downloaded on the last day; the table has one row.
package struct DownloadDayRecord: StateRecord {
    package static let table = StateTable(
        "download_days", mostRows: 1,
        [.integer("id", in: 0...0), .text("day", most: 32), .integer("bytes", in: OrderRecord.sum)])

    /// An ISO date, such as 2026-11-21.
    package let day: String
    package let bytes: Int64

    package init(day: String, bytes: Int64) {
        self.day = day
        self.bytes = bytes
    }

    package var values: [StateValue] { [.integer(0), .text(day), .integer(bytes)] }

    package init(_ row: StateRow) {
        self.init(day: row.text(1), bytes: row.integer(2))
    }
}
