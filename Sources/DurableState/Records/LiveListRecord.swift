import Numbers

/// The last known state of a live playlist.
package struct LiveListRecord: StateRecord {
    /// Media sequence numbers.
    private static let sequence = 0...Int64(ExternalNumber.largest) * 4
    package static let table = StateTable(
        "live_lists", mostRows: 65_536,
        [
            .bytes("key", most: keyLength), .integer("epoch", in: 0...Int64(UInt32.max)),
            .integer("first", in: sequence), .integer("past_last", in: sequence),
            // The longest segment duration accepted from playlists.
            .integer("target_duration", in: 0...500_000_000_000_000_000),
            .integer("discontinuity", in: sequence), .integer("received"),
            .integer("dated", in: sequence).orNull, .integer("date").orNull,
            .text("sections", most: 1 << 20), .integer("ended").orNull,
            .integer("names_epoch", in: 0...Int64(UInt32.max)).orNull,
        ])
    private static let keyLength = 32

    /// An initialization section.
    package struct Section: Equatable, Sendable {
        /// The media sequence number of the first segment that uses it.
        package let number: Int64
        package let name: UInt32

        package init(number: Int64, name: UInt32) {
            self.number = number
            self.name = name
        }
    }

    /// The start time of one segment.
    package struct Dated: Equatable, Sendable {
        package let number: Int64
        /// Milliseconds since 1970.
        package let date: Int64

        package init(number: Int64, date: Int64) {
            self.number = number
            self.date = date
        }
    }

    package let key: [UInt8]
    package var epoch: UInt32
    /// The media sequence numbers of the last window; `pastLast` is exclusive.
    package var first: Int64
    package var pastLast: Int64
    /// Nanoseconds.
    package var targetDuration: Int64
    package var discontinuity: Int64
    /// Nanoseconds since 1970.
    package var received: Int64
    package var dated: Dated?
    package var sections: [Section] = []
    /// The digest of the text with which it has ended; nil while it is live.
    package var ended: Int64?
    /// The latest epoch of a name that was given again; nil if none was.
    package var namesEpoch: UInt32?

    package init(key: [UInt8], epoch: UInt32, first: Int64, pastLast: Int64) {
        self.key = key
        self.epoch = epoch
        self.first = first
        self.pastLast = pastLast
        targetDuration = 0
        discontinuity = 0
        received = 0
    }

    package var values: [StateValue] {
        [
            .bytes(key), .integer(Int64(epoch)), .integer(first), .integer(pastLast),
            .integer(targetDuration), .integer(discontinuity), .integer(received),
            .optional(dated?.number), .optional(dated?.date),
            .text(sections.map { "\($0.number) \($0.name)" }.joined(separator: " ")),
            .optional(ended), .optional(namesEpoch.map(Int64.init)),
        ]
    }

    package init?(_ row: StateRow) {
        key = row.bytes(0)
        epoch = UInt32(clamping: row.integer(1))
        first = row.integer(2)
        pastLast = row.integer(3)
        targetDuration = row.integer(4)
        discontinuity = row.integer(5)
        received = row.integer(6)
        if let number = row.optionalInteger(7), let date = row.optionalInteger(8) {
            dated = Dated(number: number, date: date)
        }
        ended = row.optionalInteger(10)
        namesEpoch = row.optionalInteger(11).map { UInt32(clamping: $0) }
        let words = row.text(9).split(separator: " ")
        guard key.count == Self.keyLength, words.count.isMultiple(of: 2) else { return nil }
        for index in stride(from: 0, to: words.count, by: 2) {
            guard let number = ExternalNumber.integer(words[index], in: Self.sequence),
                let name = ExternalNumber.integer(words[index + 1], in: 0...UInt32.max)
            else { return nil }
            sections.append(Section(number: number, name: name))
        }
    }
}
