// The rows that versions up to 0.4.0 kept in the index's table `sessions`, distinguished by their
// IDs.
import Numbers

extension FormerPlace {
    /// Creates a place for the rows of the index.
    ///
    /// - Parameters:
    ///   - read: returns the rows, bounded in size, and the number of rows left out.
    ///   - remove: removes all rows.
    /// - Returns: the place.
    package static func index(
        read: @escaping () throws -> (rows: [(id: [UInt8], blob: [UInt8])], others: Int),
        remove: @escaping () throws -> Void
    ) -> FormerPlace {
        FormerPlace(
            source: "index",
            read: {
                let (rows, others) = try read()
                guard !rows.isEmpty || others > 0 else { return nil }
                let records = rows.map { FormerIndexRow.changes($0.id, $0.blob) }
                return FormerContent(
                    changes: records.flatMap(\.self),
                    leftOut: others + records.count(where: \.isEmpty), remove: remove)
            })
    }
}

/// One row of the index.
enum FormerIndexRow {
    private static let livePrefix = Array("live:".utf8)
    private static let findingsPrefix = Array("key:".utf8)
    private static let vetoesName = Array("key-veto".utf8)
    private static let feedPrefix = Array("feed-order:".utf8)

    /// Returns the records made from a row; none if it is damaged or unknown.
    static func changes(_ id: [UInt8], _ blob: [UInt8]) -> [StateChange] {
        let text = { String(decoding: blob, as: UTF8.self) }
        if id.count == 6 { return [StateChange(session(id, text()))] }
        if id == vetoesName { return vetoes(text()).map { StateChange($0) } }
        if id.starts(with: feedPrefix) {
            let name = String(decoding: id.dropFirst(feedPrefix.count), as: UTF8.self)
            return [StateChange(FeedRecord(name: name, body: blob))]
        }
        if id.starts(with: livePrefix), id.count == 37 {
            let key = Array(id.dropFirst(livePrefix.count))
            return list(key, text()).map { [StateChange($0)] } ?? []
        }
        if id.starts(with: findingsPrefix), id.count == 12 {
            return findings(text()).map { StateChange($0) }
        }
        return []
    }

    /// Parses a session; lines without a colon hold its window or recording, the others header
    /// fields.
    static func session(_ id: [UInt8], _ text: String) -> SessionRecord {
        var (window, recording, fields) = (Int?.none, String?.none, "")
        for line in text.split(separator: "\n") {
            if line.hasPrefix("dvr="), !line.contains(":") {
                window = ExternalNumber.integer(line.dropFirst(4), in: 1...Int(Int32.max))
            } else if line.hasPrefix("recording="), !line.contains(":") {
                recording = String(line.dropFirst(10))
            } else {
                fields += line + "\n"
            }
        }
        return SessionRecord(
            id: id.reduce(0) { $0 << 8 | UInt64($1) }, window: window, recording: recording,
            fields: fields)
    }

    /// Parses lines of origin, scope and reason.
    static func vetoes(_ text: String) -> [KeyVetoRecord] {
        text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "\t").map(String.init)
            guard parts.count == 3 else { return nil }
            return KeyVetoRecord(origin: parts[0], scope: parts[1], reason: parts[2])
        }
    }

    /// Parses the origin, then lines of name, pairs, paths and state.
    static func findings(_ text: String) -> [KeyFindingRecord] {
        let lines = text.split(separator: "\n")
        guard let origin = lines.first.map(String.init) else { return [] }
        return lines.dropFirst().compactMap { line in
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard parts.count == 4,
                let pairs = ExternalNumber.integer(parts[1], in: 0...UInt32.max)
            else { return nil }
            let paths = parts[2].split(separator: ",").prefix(8).compactMap {
                ExternalNumber.integer($0, in: 0...UInt32.max, radix: 16)
            }
            return KeyFindingRecord(
                origin: origin, name: String(parts[0]), pairs: pairs, paths: paths,
                isVetoed: parts[3] == "veto")
        }
    }

    /// Parses one line of numbers, the first of which is a version; nil for anything else, and for
    /// numbers out of range.
    static func list(_ key: [UInt8], _ text: String) -> LiveListRecord? {
        let numbers = text.split(separator: " ")
            .compactMap { ExternalNumber.integer($0, in: Int64.min...Int64.max) }
        // Version 1 has no sections, and has a date only if it is known.
        let isOld = numbers.first == 1 && (numbers.count == 7 || numbers.count == 9)
        let isNew = numbers.first == 2 && numbers.count >= 10 && numbers.count.isMultiple(of: 2)
        guard isOld || isNew else { return nil }
        var list = LiveListRecord(
            key: key, epoch: UInt32(clamping: numbers[1]), first: numbers[2], pastLast: numbers[3])
        list.targetDuration = numbers[4]
        list.discontinuity = numbers[5]
        list.received = numbers[6]
        let dated = isOld ? numbers.dropFirst(7) : numbers[7] == 1 ? numbers[8...9] : []
        if let number = dated.first, let date = dated.last {
            list.dated = .init(number: number, date: date)
        }
        for index in stride(from: 10, to: isNew ? numbers.count : 10, by: 2) {
            list.sections.append(
                .init(number: numbers[index], name: UInt32(clamping: numbers[index + 1])))
        }
        return LiveListRecord(StateRow(list.values)) != nil && list.isValid ? list : nil
    }
}
