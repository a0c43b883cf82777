import Numbers

/// A purge or pin of a cluster that the shared store does not have yet; one row of them is the time
/// of the latest pin.
package struct NodeChangeRecord: StateRecord, Equatable {
    package static let table = StateTable(
        "node_changes", mostRows: most + 1,
        [.text("name", most: 128), .text("text", most: 70_000)])
    /// The most changes.
    package static let most = 1_000
    /// The name of the row with the time of the latest pin, which no object in the store has.
    private static let latestPinName = "latest-pin"

    /// The name of its object in the shared store.
    package let name: String
    /// The content of its object.
    package let text: String

    package init(name: String, text: String) {
        self.name = name
        self.text = text
    }

    /// The row that says when the latest pin or unpin of any node was given, in nanoseconds since
    /// 1970.
    package init(latestPin: Int64) {
        self.init(name: Self.latestPinName, text: String(latestPin))
    }

    /// The time in the row of the latest pin; nil for other rows.
    package var latestPin: Int64? {
        guard name == Self.latestPinName else { return nil }
        return ExternalNumber.integer(text, in: 0...Int64.max)
    }

    package var values: [StateValue] { [.text(name), .text(text)] }

    package init(_ row: StateRow) {
        self.init(name: row.text(0), text: row.text(1))
    }
}
