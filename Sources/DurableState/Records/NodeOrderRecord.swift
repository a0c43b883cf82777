/// A version of an order of a cluster that the shared store does not have yet.
package struct NodeOrderRecord: StateRecord {
    package static let table = StateTable(
        "node_orders", mostRows: 10_000, key: 2,
        [
            .text("item", most: 64), .integer("given", in: 1...Int64.max), .text("wish", most: 16),
            .text("query", most: 1 << 16),
        ])

    /// Its kind and number.
    package let item: String
    /// Nanoseconds since 1970.
    package let given: Int64
    /// A keyword defined by the code of orders.
    package let wish: String
    /// The arguments that it was given with.
    package let query: String

    package init(item: String, given: Int64, wish: String, query: String) {
        self.item = item
        self.given = given
        self.wish = wish
        self.query = query
    }

    package var values: [StateValue] {
        [.text(item), .integer(given), .text(wish), .text(query)]
    }

    package init(_ row: StateRow) {
        self.init(
            item: row.text(0), given: row.integer(1), wish: row.text(2), query: row.text(3))
    }
}
