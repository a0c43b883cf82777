// Reads traces from text: the daemon's access log, or a line a request in a form of our own.
import AccessLogFormat
import Numbers
import Retention

/// Takes a trace's lines one by one; both forms may stand in one file.
///
/// Fields are separated by blanks. Lines that are empty or begin with `#` are passed over.
///
///     TIME NAME BYTES [TITLE [KIND [OFFSET LENGTH]]]
///
/// | field | is |
/// |---|---|
/// | TIME | seconds since the epoch; a fraction is cut off |
/// | NAME | a URL or key without blanks: what makes the object the same |
/// | BYTES | the whole object's size |
/// | TITLE | what it belongs to, or `-` |
/// | KIND | `structure`, `media` (the default), `other` or `live`; with a `+` behind it, it was fetched ahead and nobody asked for it |
/// | OFFSET LENGTH | the part that was read; all of it by default |
///
/// A line of the access log (`serve --access-log`) is read as such. Requests that no
/// stored object answers are left out: own pages, refusals, failures, bypasses, other methods than GET.
/// An object whose length the log does not know counts with what was read of it.
package struct TraceReader {
    /// What a line that cannot be read lacks.
    package struct Fault: Error, Sendable, CustomStringConvertible {
        package let line: Int
        package let reason: String

        package var description: String { "line \(line): \(reason)" }
    }

    /// Requests so far, in the order of the lines.
    package private(set) var requests: [TraceRequest] = []
    /// Lines of the access log that retention has nothing to do with.
    package private(set) var skipped = 0
    private var line = 0

    package init() {}

    /// Reads a text of any number of lines.
    package mutating func read(_ text: some Sequence<UInt8>) throws(Fault) {
        var bytes: [UInt8] = []
        for byte in text {
            if byte == 0x0A {
                try readLine(bytes)
                bytes.removeAll(keepingCapacity: true)
            } else {
                bytes.append(byte)
            }
        }
        if !bytes.isEmpty { try readLine(bytes) }
    }

    /// The requests in the order of time, as a replay wants them: a log has them in the order of their ends.
    package consuming func finish() -> [TraceRequest] {
        let order = requests.indices.sorted { (requests[$0].time, $0) < (requests[$1].time, $1) }
        return order.map { requests[$0] }
    }

    private mutating func readLine(_ bytes: [UInt8]) throws(Fault) {
        line += 1
        let fields = bytes.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            .map { String(decoding: $0, as: UTF8.self) }
        guard let first = fields.first, !first.hasPrefix("#") else { return }
        if let line = AccessLine(fields) { try readAccess(line) } else { try readOwn(fields) }
    }

    private mutating func readOwn(_ fields: [String]) throws(Fault) {
        guard [3, 4, 5, 7].contains(fields.count) else {
            throw fault("\(fields.count) fields; 3, 4, 5, 7 or those of the access log are meant")
        }
        var request = TraceRequest(
            time: try time(fields[0]), name: digest(fields[1]), size: try number(fields[2]))
        if fields.count > 3, fields[3] != "-" {
            request.title = UInt64(truncatingIfNeeded: digest(fields[3])) | 1
        }
        if fields.count > 4 {
            let name = fields[4].hasSuffix("+") ? String(fields[4].dropLast()) : fields[4]
            request.isAhead = name != fields[4]
            guard let kind = RetentionKind(traceName: name) else { throw fault("no kind: \(name)") }
            request.kind = kind
        }
        if fields.count == 7 {
            request.length = min(
                try number(fields[6]), max(0, request.size - (try number(fields[5]))))
        }
        requests.append(request)
    }

    private mutating func readAccess(_ line: AccessLine) throws(Fault) {
        let isStored = !["own", "refused", "failed", "bypass"].contains(line[.outcome] ?? "own")
        guard isStored, line[.method] == "GET", let key = line[.key],
            let read = line[.bytes], read != "0"
        else {
            skipped += 1
            return
        }
        guard let name = ExternalNumber.integer(key, in: 0...UInt128.max, radix: 16) else {
            throw fault("no key: \(key)")
        }
        let length = try number(read)
        let offset = try number(line[.offset] ?? "-")
        let size = try line[.total].map(number) ?? offset + length
        var request = TraceRequest(
            time: try time(line[.time] ?? "-"), name: name, size: max(size, length))
        request.length = length
        if let text = line[.title] {
            guard let title = ExternalNumber.integer(text, in: 0...UInt64.max, radix: 16) else {
                throw fault("no title: \(text)")
            }
            request.title = title
        }
        request.kind = RetentionKind(role: line[.role] ?? "-", url: line[.url] ?? "-")
        requests.append(request)
    }

    private func time(_ text: String) throws(Fault) -> UInt32 {
        let whole = text.prefix { $0 != "." }
        guard let seconds = ExternalNumber.integer(whole, in: 0...UInt32.max) else {
            throw fault("no time in seconds: \(text)")
        }
        return seconds
    }

    private func number(_ text: String) throws(Fault) -> Int64 {
        // A thousand films of the largest size, so that no sum overflows.
        guard let number = ExternalNumber.integer(text, in: 0...Int64(1) << 50 - 1) else {
            throw fault("no number of bytes: \(text)")
        }
        return number
    }

    private func fault(_ reason: String) -> Fault { Fault(line: line, reason: reason) }

    /// FNV-1a (Fowler, Noll, Vo) with 128 bits.
    private func digest(_ text: String) -> UInt128 {
        var hash: UInt128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D
        for byte in text.utf8 {
            hash = (hash ^ UInt128(byte)) &* 0x0000_0000_0100_0000_0000_0000_0000_013B
        }
        return hash
    }
}

extension RetentionKind {
    /// The kind by its name in a trace.
    init?(traceName: String) {
        switch traceName {
        case "structure": self = .structure
        case "media": self = .media
        case "other": self = .other
        case "live": self = .live
        default: return nil
        }
    }

    /// The kind by the role letter of the access log; an entry has no role, only its URL.
    init(role: String, url: String) {
        switch role {
        case "p", "i", "k", "j": self = .structure
        case "-": self = url.prefix { $0 != "?" }.hasSuffix(".m3u8") ? .structure : .other
        default: self = .media
        }
    }
}
