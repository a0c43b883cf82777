// A change of one row, told apart from the others by its table and primary key.

/// The identity of a row: its table and primary key.
struct StateSlot: Hashable, Sendable {
    let table: StateTable
    let key: [StateValue]

    static func == (one: Self, other: Self) -> Bool {
        one.table.name == other.table.name && one.key == other.key
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(table.name)
        hasher.combine(key)
    }
}

/// A row to write; nil values remove it.
package struct StateChange: Sendable {
    let slot: StateSlot
    let values: [StateValue]?

    init(slot: StateSlot, values: [StateValue]?) {
        self.slot = slot
        self.values = values
    }

    /// Creates a change that inserts a record or replaces the one with the same key.
    package init<Record: StateRecord>(_ record: Record) {
        let values = record.values
        self.init(
            slot: StateSlot(table: Record.table, key: Record.table.key(of: values)), values: values)
    }

    /// Creates a change that removes the record with this key.
    package init<Record: StateRecord>(removing _: Record.Type, key: [StateValue]) {
        self.init(slot: StateSlot(table: Record.table, key: key), values: nil)
    }

    var size: Int { (values ?? slot.key).reduce(64) { $0 + $1.size } }
}
