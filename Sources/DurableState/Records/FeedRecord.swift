/// A feed as its client defined it.
package struct FeedRecord: StateRecord {
    package static let table = StateTable(
        "feeds", mostRows: 1_024, [.text("name", most: 64), .bytes("body", most: 16 << 20)])

    package let name: String
    /// The JSON text as received.
    package let body: [UInt8]

    package init(name: String, body: [UInt8]) {
        self.name = name
        self.body = body
    }

    package var values: [StateValue] { [.text(name), .bytes(body)] }

    package init(_ row: StateRow) {
        name = row.text(0)
        body = row.bytes(1)
    }
}
