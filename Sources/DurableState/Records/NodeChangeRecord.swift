/// A purge or pin of a cluster that the shared store does not have yet.
package struct NodeChangeRecord: StateRecord, Equatable {
    package static let table = StateTable(
        "node_changes", mostRows: most,
        [.text("name", most: 128), .text("text", most: 70_000)])
    package static let most = 1_000

    /// The name of its object in the shared store.
    package let name: String
    /// The content of its object.
    package let text: String

    package init(name: String, text: String) {
        self.name = name
        self.text = text
    }

    package var values: [StateValue] { [.text(name), .text(text)] }

    package init(_ row: StateRow) {
        self.init(name: row.text(0), text: row.text(1))
    }
}
