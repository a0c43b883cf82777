// Small text helpers of the sample CDN: percent decoding, query arguments, dates, media types.
import Glibc

/// Replaces `%XX` by its byte; nil if the result contains NUL or is not UTF-8.
func percentDecoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
        let digits = rest.prefix(2)
        if byte == UInt8(ascii: "%"), digits.count == 2,
            let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
        {
            bytes.append(value)
            rest = rest.dropFirst(2)
        } else {
            bytes.append(byte)
        }
    }
    return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
}

/// The arguments after `?`, decoded, in order.
struct QueryArguments {
    var pairs: [(name: String, value: String)] = []

    init(_ query: some StringProtocol) {
        for part in query.split(separator: "&") {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = percentDecoded(halves[0]) else { continue }
            pairs.append((name, percentDecoded(halves.count > 1 ? halves[1] : "") ?? ""))
        }
    }

    subscript(name: String) -> String? { pairs.first { $0.name == name }?.value }
}

/// Whether two field names are the same, ASCII case aside.
func sameName(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
    left.utf8.count == right.utf8.count && left.lowercased() == right.lowercased()
}

/// A string without blanks and tabs at its ends.
func trimmed(_ text: some StringProtocol) -> String {
    let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var slice = text.drop(while: blank)
    while let last = slice.last, blank(last) { slice = slice.dropLast() }
    return String(slice)
}

/// Dates in the form of RFC 9110, section 5.6.7.
enum DateText {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The current time.
    static func now() -> String { of(time(nil)) }

    static func of(_ moment: time_t) -> String {
        var moment = moment
        var parts = tm()
        gmtime_r(&moment, &parts)
        var buffer = [CChar](repeating: 0, count: 40)
        let count = strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Seconds since 1970; nil if `text` is not such a date.
    static func parse(_ text: String) -> time_t? {
        let words = text.split { " :".contains($0) }
        guard words.count == 8, words[7] == "GMT", let day = Int32(words[1]),
            let month = months.firstIndex(of: String(words[2])), let year = Int32(words[3]),
            let hour = Int32(words[4]), let minute = Int32(words[5]), let second = Int32(words[6])
        else { return nil }
        var parts = tm()
        parts.tm_mday = day
        parts.tm_mon = Int32(month)
        parts.tm_year = year - 1900
        parts.tm_hour = hour
        parts.tm_min = minute
        parts.tm_sec = second
        return timegm(&parts)
    }
}

/// Media types by file extension.
enum MediaType {
    static func of(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
        return table[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }

    private static let table = [
        "m3u8": "application/vnd.apple.mpegurl", "ts": "video/mp2t", "m4s": "video/iso.segment",
        "mp4": "video/mp4", "m4a": "audio/mp4", "m4v": "video/mp4", "aac": "audio/aac",
        "vtt": "text/vtt", "key": "application/octet-stream", "txt": "text/plain",
        "html": "text/html", "json": "application/json",
    ]
}
