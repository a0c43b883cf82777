import Numbers

/// The options of a requested download or recording: columns of both tables.
package struct OrderRecord: Equatable, Sendable {
    static let sum = 0...Int64(ExternalNumber.largest)
    static let time = -Int64(ExternalNumber.largest)...Int64(ExternalNumber.largest)
    static let columns: [StateColumn] = [
        .text("url", most: 1 << 20), .text("headers", most: 1 << 20),
        .text("variant", most: 256).orNull, .text("audio", most: 256).orNull,
        .text("subtitles", most: 256).orNull, .real("start_at", in: 0...1e12).orNull,
        .real("stop_at", in: 0...1e12).orNull, .integer("rate", in: sum).orNull,
    ]
    /// The columns' SQL declaration.
    static let definition = """
        url TEXT NOT NULL, headers TEXT NOT NULL, variant TEXT, audio TEXT, subtitles TEXT,
        start_at REAL, stop_at REAL, rate INTEGER
        """

    package var url: String
    /// Request header fields, `<name>:<value>` and a line feed each.
    package var headers = ""
    /// The selections as given in the request; nil if not given.
    package var variant: String?
    package var audio: String?
    package var subtitles: String?
    /// Seconds of playing time.
    package var from: Double?
    package var to: Double?
    /// The maximum rate in bytes per second.
    package var rate: Int64?

    package init(url: String) { self.url = url }

    var values: [StateValue] {
        [
            .text(url), .text(headers), .optional(variant), .optional(audio), .optional(subtitles),
            .optional(from), .optional(to), .optional(rate),
        ]
    }

    /// Reads the columns from the one at `first` on.
    init(_ row: StateRow, from first: Int) {
        url = row.text(first)
        headers = row.text(first + 1)
        variant = row.optionalText(first + 2)
        audio = row.optionalText(first + 3)
        subtitles = row.optionalText(first + 4)
        from = row.optionalReal(first + 5)
        to = row.optionalReal(first + 6)
        rate = row.optionalInteger(first + 7)
    }

    /// Sets an option from a former file; ignores unknown names and invalid values.
    mutating func set(_ name: some StringProtocol, _ value: String) {
        switch name {
        case "variant": variant = value
        case "audio": audio = value
        case "subtitles": subtitles = value
        case "from": from = ExternalNumber.decimal(value, in: 0...1e12)
        case "to": to = ExternalNumber.decimal(value, in: 0...1e12)
        case "rate": rate = ExternalNumber.integer(value, in: Self.sum)
        default: break
        }
    }
}
