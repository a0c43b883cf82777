// The tables of the state database: typed columns with bounds, checked when writing and reading.
//
// A row may come from a damaged or foreign file, so every value is checked against its column
// before a record is made from the row.

/// One value of a row.
package enum StateValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
    case bytes([UInt8])

    /// Returns NULL for nil.
    static func optional(_ value: Int64?) -> StateValue { value.map(Self.integer) ?? .null }

    /// Returns NULL for nil.
    static func optional(_ value: Double?) -> StateValue { value.map(Self.real) ?? .null }

    /// Returns NULL for nil.
    static func optional(_ value: String?) -> StateValue { value.map(Self.text) ?? .null }

    package static func truth(_ value: Bool) -> StateValue { .integer(value ? 1 : 0) }

    /// The approximate number of bytes that the value takes in memory.
    var size: Int {
        switch self {
        case .null, .integer, .real: 16
        case .text(let text): 16 + text.utf8.count
        case .bytes(let bytes): 16 + bytes.count
        }
    }
}

/// One column and the values that are valid in it.
package struct StateColumn: Sendable {
    private enum Kind: Sendable {
        case integer(ClosedRange<Int64>)
        case real(ClosedRange<Double>)
        case text(most: Int)
        case bytes(most: Int)
    }

    let name: String
    private let kind: Kind
    private var mayBeNull = false

    package static func integer(
        _ name: String, in range: ClosedRange<Int64> = .min ... .max
    ) -> StateColumn {
        StateColumn(name: name, kind: .integer(range))
    }

    package static func truth(_ name: String) -> StateColumn { .integer(name, in: 0...1) }

    static func real(_ name: String, in range: ClosedRange<Double>) -> StateColumn {
        StateColumn(name: name, kind: .real(range))
    }

    /// Creates a text column; `most` counts bytes of UTF-8.
    package static func text(_ name: String, most: Int) -> StateColumn {
        StateColumn(name: name, kind: .text(most: most))
    }

    package static func bytes(_ name: String, most: Int) -> StateColumn {
        StateColumn(name: name, kind: .bytes(most: most))
    }

    /// The same column, which may also be NULL.
    var orNull: StateColumn {
        var column = self
        column.mayBeNull = true
        return column
    }

    func admits(_ value: StateValue) -> Bool {
        switch (kind, value) {
        case (_, .null): mayBeNull
        case (.integer(let range), .integer(let number)): range.contains(number)
        case (.real(let range), .real(let number)): range.contains(number)
        case (.text(let most), .text(let text)): text.utf8.count <= most
        case (.bytes(let most), .bytes(let bytes)): bytes.count <= most
        default: false
        }
    }
}

/// One table and its columns, the first of which form the primary key.
package struct StateTable: Sendable {
    /// The maximum size of a row that this program writes.
    static let mostRowBytes = 17 << 20

    let name: String
    let columns: [StateColumn]
    let keyCount: Int
    /// The maximum number of rows to read; further ones are ignored.
    let mostRows: Int
    let select: String
    let upsert: String
    let delete: String

    /// Creates a table whose first `key` columns form the primary key.
    init(_ name: String, mostRows: Int, key: Int = 1, _ columns: [StateColumn]) {
        self.name = name
        self.columns = columns
        self.mostRows = mostRows
        keyCount = key
        let names = columns.map(\.name)
        let keys = names.prefix(key)
        let list = names.joined(separator: ", ")
        let marks = names.map { _ in "?" }.joined(separator: ", ")
        let others = names.dropFirst(key).map { "\($0) = excluded.\($0)" }
        let update = others.isEmpty ? "NOTHING" : "UPDATE SET " + others.joined(separator: ", ")
        select = "SELECT \(list) FROM \(name)"
        // Unlike REPLACE, this keeps the rowid, so that downloads stay in their order.
        upsert = """
            INSERT INTO \(name) (\(list)) VALUES (\(marks)) \
            ON CONFLICT (\(keys.joined(separator: ", "))) DO \(update)
            """
        delete =
            "DELETE FROM \(name) WHERE "
            + keys.map { "\($0) = ?" }.joined(separator: " AND ")
    }

    /// True if a row can be written and will be accepted when it is read.
    func admits(_ values: [StateValue]) -> Bool {
        values.count == columns.count
            && zip(columns, values).allSatisfy { $0.admits($1) }
            && values.reduce(0) { $0 + $1.size } <= Self.mostRowBytes
    }

    func key(of values: [StateValue]) -> [StateValue] { Array(values.prefix(keyCount)) }
}

/// A row whose values are valid for their columns.
package struct StateRow: Sendable {
    let values: [StateValue]

    package init(_ values: [StateValue]) { self.values = values }

    private func value(_ index: Int) -> StateValue {
        values.indices.contains(index) ? values[index] : .null
    }

    package func integer(_ index: Int) -> Int64 { optionalInteger(index) ?? 0 }

    func optionalInteger(_ index: Int) -> Int64? {
        if case .integer(let number) = value(index) { number } else { nil }
    }

    package func truth(_ index: Int) -> Bool { integer(index) != 0 }

    func real(_ index: Int) -> Double { optionalReal(index) ?? 0 }

    func optionalReal(_ index: Int) -> Double? {
        if case .real(let number) = value(index) { number } else { nil }
    }

    package func text(_ index: Int) -> String { optionalText(index) ?? "" }

    func optionalText(_ index: Int) -> String? {
        if case .text(let text) = value(index) { text } else { nil }
    }

    package func bytes(_ index: Int) -> [UInt8] {
        if case .bytes(let bytes) = value(index) { bytes } else { [] }
    }
}

/// A record stored as one row of a table.
package protocol StateRecord: Equatable, Sendable {
    static var table: StateTable { get }
    /// The values in the order of the table's columns.
    var values: [StateValue] { get }
    /// Creates a record from a row of valid values; nil if they are inconsistent with each other.
    init?(_ row: StateRow)
}

extension StateRecord {
    package var key: [StateValue] { Self.table.key(of: values) }

    /// True if the table accepts the record.
    package var isValid: Bool { Self.table.admits(values) }
}
