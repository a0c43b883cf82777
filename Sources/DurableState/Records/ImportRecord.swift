/// The mark of a former place whose state was imported; state found there later is only removed.
struct ImportRecord: StateRecord {
    static let table = StateTable("imports", mostRows: 100, [.text("source", most: 64)])

    let source: String

    var values: [StateValue] { [.text(source)] }

    init(source: String) { self.source = source }

    init(_ row: StateRow) { source = row.text(0) }
}
