/// A pinned title, which is never evicted, or a part of its keys: a long pin has several rows.
package struct PinRecord: StateRecord {
    package static let table = StateTable(
        "pins", mostRows: 100_000,
        [
            // The number of the title, and in its upper 16 bits that of the part.
            .integer("title"), .text("url", most: 1 << 20),
            .integer("since", in: OrderRecord.time), .bytes("keys", most: 16 << 20),
        ])
    /// The length of one key in bytes.
    package static let keyLength = 32

    /// Parts but the first have no URL.
    package let title: UInt64
    package let url: String
    /// Seconds since 1970.
    package let since: Int64
    /// The concatenated keys of objects that belong to it.
    package let keys: [UInt8]

    package init(title: UInt64, url: String, since: Int64, keys: [UInt8]) {
        self.title = title
        self.url = url
        self.since = since
        self.keys = keys
    }

    package var values: [StateValue] {
        [.integer(Int64(bitPattern: title)), .text(url), .integer(since), .bytes(keys)]
    }

    package init?(_ row: StateRow) {
        self.init(
            title: UInt64(bitPattern: row.integer(0)), url: row.text(1), since: row.integer(2),
            keys: row.bytes(3))
        guard keys.count.isMultiple(of: Self.keyLength) else { return nil }
    }
}
