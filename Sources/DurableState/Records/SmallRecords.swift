import Numbers

/// The crashes counted against a recording, a feed or a download.
package struct CrashRecord: StateRecord {
    package static let table = StateTable(
        "crashes", mostRows: 30_000,
        [.text("item", most: 256), .integer("crashes", in: 0...1_000), .truth("running")])

    /// Its kind and name.
    package let item: String
    /// The number of consecutive crashes before this run.
    package let crashes: Int
    /// True while it is on probation, so that a crash counts.
    package let isRunning: Bool

    package init(item: String, crashes: Int, isRunning: Bool) {
        self.item = item
        self.crashes = crashes
        self.isRunning = isRunning
    }

    package var values: [StateValue] {
        [.text(item), .integer(Int64(crashes)), .truth(isRunning)]
    }

    package init(_ row: StateRow) {
        self.init(item: row.text(0), crashes: Int(row.integer(1)), isRunning: row.truth(2))
    }
}

/// The limits last measured on a network.
package struct NetworkRecord: StateRecord {
    package static let table = StateTable(
        "networks", mostRows: 1_024,
        [
            .text("name", most: 1_024), .integer("transfers", in: 1...1_000_000),
            .integer("goodput", in: OrderRecord.sum), .integer("noted", in: OrderRecord.sum),
        ])

    package let name: String
    package let transfers: Int
    /// Bytes a second.
    package let goodput: Int64
    /// Seconds since 1970.
    package let noted: Int64

    package init(name: String, transfers: Int, goodput: Int64, noted: Int64) {
        self.name = name
        self.transfers = transfers
        self.goodput = goodput
        self.noted = noted
    }

    package var values: [StateValue] {
        [.text(name), .integer(Int64(transfers)), .integer(goodput), .integer(noted)]
    }

    package init(_ row: StateRow) {
        self.init(
            name: row.text(0), transfers: Int(row.integer(1)), goodput: row.integer(2),
            noted: row.integer(3))
    }
}

/// A purge order that is not finished yet.
package struct PurgeRecord: StateRecord {
    package static let table = StateTable(
        "purges", mostRows: 10_000,
        [
            .integer("number", in: 0...OrderRecord.sum.upperBound),
            .integer("given", in: 0...Int64.max), .text("kind", most: 32),
            .text("items", most: 16 << 20),
        ])

    /// The kind of items that an order purges.
    package enum Kind: String, Sendable {
        case url
        case title
        case host
        case prefix
        case unusedSince = "unused-since"
        case object
    }

    /// Its position among the orders.
    package let number: Int64
    /// Nanoseconds since 1970.
    package let given: Int64
    package let kind: Kind
    /// Key texts, title numbers, one host, prefixes of URLs, one time (nanoseconds since 1970) or
    /// object keys (in hexadecimal).
    package let items: [String]

    package init(number: Int64, given: Int64, kind: Kind, items: [String]) {
        self.number = number
        self.given = given
        self.kind = kind
        self.items = items
    }

    package var values: [StateValue] {
        [
            .integer(number), .integer(given), .text(kind.rawValue),
            .text(items.map { "\($0)\n" }.joined()),
        ]
    }

    package init?(_ row: StateRow) {
        guard let kind = Kind(rawValue: row.text(2)) else { return nil }
        let items = row.text(3).split(separator: "\n").map(String.init)
        self.init(number: row.integer(0), given: row.integer(1), kind: kind, items: items)
    }
}
