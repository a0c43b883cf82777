// The text formats of versions up to 0.4.0. Pure.
import Numbers

/// `SLUICE PINS 1`: title (hex), seconds since 1970, URL and keys (hex, with commas), with tabs.
enum FormerPins {
    static func parse(_ text: String) -> (pins: [PinRecord], isWhole: Bool) {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == "SLUICE PINS 1" else { return ([], false) }
        var pins: [PinRecord] = []
        for line in lines {
            if line.hasPrefix("END ") {
                let count = ExternalNumber.integer(
                    line.dropFirst(4), in: 0...ExternalNumber.largest)
                return (pins, count == pins.count)
            }
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count == 4,
                let title = ExternalNumber.integer(fields[0], in: 0...UInt64.max, radix: 16),
                let since = ExternalNumber.integer(fields[1], in: OrderRecord.time),
                let keys = bytes(fields[3].split(separator: ","))
            else { return (pins, false) }
            pins.append(PinRecord(title: title, url: String(fields[2]), since: since, keys: keys))
        }
        return (pins, false)
    }

    private static func bytes(_ keys: [Substring]) -> [UInt8]? {
        var bytes: [UInt8] = []
        for key in keys {
            guard key.utf8.count == 2 * PinRecord.keyLength else { return nil }
            var rest = key
            while !rest.isEmpty {
                guard
                    let byte = ExternalNumber.integer(rest.prefix(2), in: 0...UInt8.max, radix: 16)
                else { return nil }
                bytes.append(byte)
                rest = rest.dropFirst(2)
            }
        }
        return bytes
    }
}

/// `SLUICE DOWNLOAD 1`: lines of a name and a value.
enum FormerDownload {
    static func record(_ id: Substring, _ text: String) -> DownloadRecord? {
        guard let lines = FormerFiles.lines(of: text, first: "SLUICE DOWNLOAD 1"),
            let number = ExternalNumber.integer(id, in: 0...UInt64(0xFFFF_FFFF_FFFF), radix: 16)
        else { return nil }
        let pairs = lines.map { FormerFiles.pair($0) }
        guard let url = pairs.first(where: { $0.name == "url" })?.value else { return nil }
        var record = DownloadRecord(id: number, order: OrderRecord(url: url))
        for (name, value) in pairs {
            switch name {
            case "url": break
            case "header": record.order.headers += value + "\n"
            case "name": record.name = value
            case "state": record.state = value
            case "reason": record.reason = value
            case "pieces": record.pieces = FormerFiles.number(value)
            case "done": record.done = FormerFiles.number(value)
            case "bytes": record.bytes = FormerFiles.number(value)
            case "seconds": record.seconds = ExternalNumber.decimal(value, in: 0...1e15) ?? 0
            case "label": record.labels.append(value)
            default: record.order.set(name, value)
            }
        }
        return record
    }

    /// Parses the day and its bytes.
    static func day(_ text: String) -> DownloadDayRecord? {
        let words = text.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard words.count == 2, let bytes = ExternalNumber.integer(words[1], in: OrderRecord.sum)
        else { return nil }
        return DownloadDayRecord(day: String(words[0]), bytes: bytes)
    }
}

/// `SLUICE RECORDING 1`: lines of a name and a value.
enum FormerRecording {
    static func record(_ text: String) -> RecordingRecord? {
        guard let lines = FormerFiles.lines(of: text, first: "SLUICE RECORDING 1") else {
            return nil
        }
        var values: [Substring: [String]] = [:]
        for (name, value) in lines.map({ FormerFiles.pair($0) }) {
            values[name, default: []].append(value)
        }
        func number(_ name: Substring) -> Int64 {
            values[name]?.first.map { FormerFiles.number($0) } ?? 0
        }
        guard let id = values["id"]?.first, let url = values["url"]?.first,
            let state = values["state"]?.first
        else { return nil }
        var order = OrderRecord(url: url)
        for header in values["header"] ?? [] {
            let name = header.prefix { $0 != ":" }
            let value = header.dropFirst(name.count + 1).drop { $0 == " " }
            order.headers += "\(name):\(value)\n"
        }
        for setting in values["set"] ?? [] {
            let (name, value) = FormerFiles.pair(setting[...])
            order.set(name, value)
        }
        var record = RecordingRecord(
            id: id, order: order, started: number("started"), until: number("until"), state: state)
        if values["ended"] != nil { record.ended = number("ended") }
        record.name = values["name"]?.first
        record.reason = values["reason"]?.first ?? ""
        record.isMultivariant = values["multivariant"] != nil
        // The number before the URL has no meaning.
        record.lists = (values["list"] ?? []).map {
            RecordingRecord.list(FormerFiles.pair($0[...]).value[...])
        }
        record.bytes = number("bytes")
        record.seconds = Double(number("milliseconds")) / 1_000
        record.segments = number("segments")
        record.lost = number("lost")
        return record
    }
}

/// `SLUICE PROBATION 1`: lines of an item, its crashes, and `running` or `waiting`.
enum FormerProbation {
    static func records(_ text: String) -> [CrashRecord]? {
        FormerFiles.lines(of: text, first: "SLUICE PROBATION 1").map { lines in
            lines.prefix(10_000).compactMap { line in
                let words = line.split(separator: " ")
                guard words.count == 3, let crashes = ExternalNumber.integer(words[1], in: 0...2)
                else { return nil }
                return CrashRecord(
                    item: String(words[0]), crashes: crashes, isRunning: words[2] == "running")
            }
        }
    }
}

/// Lines of a network's name, its transfers and its goodput, newest first.
enum FormerNetworks {
    static func records(_ text: String) -> [NetworkRecord] {
        let lines = text.split(separator: "\n").prefix(64)
        return lines.enumerated().compactMap { index, line in
            let words = line.split(separator: " ")
            guard words.count == 3,
                let transfers = ExternalNumber.integer(words[1], in: 1...1_000_000),
                let goodput = ExternalNumber.integer(words[2], in: OrderRecord.sum)
            else { return nil }
            // Small numbers, which sort before any later time.
            return NetworkRecord(
                name: String(words[0]), transfers: transfers, goodput: goodput,
                noted: Int64(lines.count - index))
        }
    }
}

/// `SLUICE PURGE 1`: for each order the time at which it was given, and what it purges.
enum FormerPurge {
    /// Parses the orders; nil if the text is incomplete or invalid.
    static func records(_ text: String) -> [PurgeRecord]? {
        guard let lines = FormerFiles.lines(of: text, first: "SLUICE PURGE 1") else { return nil }
        var records: [PurgeRecord] = []
        var given: Int64?
        var kind: PurgeRecord.Kind?
        var items: [String] = []
        func finish() -> Bool {
            guard let given else { return kind == nil }
            guard let kind else { return false }
            records.append(
                PurgeRecord(number: Int64(records.count), given: given, kind: kind, items: items))
            return true
        }
        for line in lines {
            let (name, value) = FormerFiles.pair(line)
            if name == "given" {
                guard finish(), let time = time(value) else { return nil }
                (given, kind, items) = (time, nil, [])
                continue
            }
            guard let next = PurgeRecord.Kind(rawValue: String(name)), kind == nil || kind == next
            else { return nil }
            switch next {
            case .title where ExternalNumber.integer(value, in: 0...UInt64.max) == nil: return nil
            case .host where kind != nil: return nil
            case .unusedSince where kind != nil || time(value) == nil: return nil
            // No former version wrote it.
            case .object, .prefix: return nil
            default: items.append(value)
            }
            kind = next
        }
        return finish() ? records : nil
    }

    private static func time(_ text: String) -> Int64? {
        ExternalNumber.integer(text, in: 0...Int64.max)
    }
}
