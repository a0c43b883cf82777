/// A session with properties that its ID does not encode.
package struct SessionRecord: StateRecord {
    package static let table = StateTable(
        "sessions", mostRows: 1_000_000,
        [
            .integer("id", in: 0...0xFFFF_FFFF_FFFF),
            .integer("window", in: 1...Int64(Int32.max)).orNull,
            .text("recording", most: 256).orNull, .text("fields", most: 16 << 20),
            .integer("height", in: 1...1 << 31).orNull,
            .integer("bandwidth", in: 1...1 << 31).orNull,
        ])

    package let id: UInt64
    /// In seconds; nil for the origin's own window.
    package let window: Int?
    package let recording: String?
    /// Request header fields, `<name>: <value>` and a line feed each.
    package let fields: String
    /// The largest height of variants, in pixels; nil for any.
    package let height: Int?
    /// The largest BANDWIDTH of variants, in bits per second; nil for any.
    package let bandwidth: Int?

    package init(
        id: UInt64, window: Int?, recording: String?, fields: String, height: Int? = nil,
        bandwidth: Int? = nil
    ) {
        self.id = id
        self.window = window
        self.recording = recording
        self.fields = fields
        self.height = height
        self.bandwidth = bandwidth
    }

    package var values: [StateValue] {
        [
            .integer(Int64(bitPattern: id)), .optional(window.map(Int64.init)),
            .optional(recording), .text(fields), .optional(height.map(Int64.init)),
            .optional(bandwidth.map(Int64.init)),
        ]
    }

    package init(_ row: StateRow) {
        id = UInt64(clamping: row.integer(0))
        window = row.optionalInteger(1).map { Int(clamping: $0) }
        recording = row.optionalText(2)
        fields = row.text(3)
        height = row.optionalInteger(4).map { Int(clamping: $0) }
        bandwidth = row.optionalInteger(5).map { Int(clamping: $0) }
    }
}
