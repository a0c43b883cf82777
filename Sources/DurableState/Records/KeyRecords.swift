/// The reason why the URLs of an origin are no longer merged.
package struct KeyVetoRecord: StateRecord {
    package static let table = StateTable(
        "key_vetoes", mostRows: 2_048, key: 2,
        [.text("origin", most: 8_192), .text("scope", most: 64), .text("reason", most: 64)])

    package let origin: String
    package let scope: String
    package let reason: String

    package init(origin: String, scope: String, reason: String) {
        self.origin = origin
        self.scope = scope
        self.reason = reason
    }

    package var values: [StateValue] { [.text(origin), .text(scope), .text(reason)] }

    package init(_ row: StateRow) {
        self.init(origin: row.text(0), scope: row.text(1), reason: row.text(2))
    }
}

/// The findings about one query parameter of an origin's URLs.
package struct KeyFindingRecord: StateRecord {
    package static let table = StateTable(
        "key_findings", mostRows: 8_192, key: 2,
        [
            .text("origin", most: 8_192), .text("name", most: 1_024),
            .integer("pairs", in: 0...Int64(UInt32.max)), .bytes("paths", most: 4 * mostPaths),
            .truth("vetoed"),
        ])
    private static let mostPaths = 8

    package let origin: String
    package let name: String
    package let pairs: UInt32
    /// Short digests, at most eight.
    package let paths: [UInt32]
    package let isVetoed: Bool

    package init(origin: String, name: String, pairs: UInt32, paths: [UInt32], isVetoed: Bool) {
        self.origin = origin
        self.name = name
        self.pairs = pairs
        self.paths = Array(paths.prefix(Self.mostPaths))
        self.isVetoed = isVetoed
    }

    package var values: [StateValue] {
        let bytes = paths.flatMap { path in
            stride(from: UInt32(24), through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: path >> $0)
            }
        }
        return [
            .text(origin), .text(name), .integer(Int64(pairs)), .bytes(bytes), .truth(isVetoed),
        ]
    }

    package init?(_ row: StateRow) {
        let bytes = row.bytes(3)
        guard bytes.count.isMultiple(of: 4) else { return nil }
        let paths = stride(from: 0, to: bytes.count, by: 4).map { start in
            bytes[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }
        self.init(
            origin: row.text(0), name: row.text(1), pairs: UInt32(clamping: row.integer(2)),
            paths: paths, isVetoed: row.truth(4))
    }
}
