// A download order, as arguments of a request and as a record.
package import DurableState
import Numbers
package import Routing
package import URISyntax

/// One download order.
package struct DownloadOrder: Sendable, Equatable {
    /// The variant streams to download.
    package enum Variants: Sendable, Equatable {
        case best
        case worst
        case all
        /// The variant of this height in pixels.
        case height(Int)
    }

    /// The renditions of a kind to download.
    package enum Languages: Sendable, Equatable {
        /// The rendition that a player takes by default; no subtitles except forced ones.
        case standard
        case none
        case all
        case only(String)
    }

    package var url: AbsoluteURL
    /// Request headers of the session.
    var headers: [Entry.Header] = []
    package var variants = Variants.best
    var audio = Languages.standard
    var subtitles = Languages.standard
    /// Start and end in seconds of playing time; nil for those of the title.
    package var from: Double?
    package var to: Double?
    /// The most bytes per second; nil for no limit.
    package var rate: Int64?

    private static let leastRate: Int64 = 1_000

    package init(url: AbsoluteURL) { self.url = url }

    /// The entry that a player would start the title from.
    package var entry: Entry { Entry(url: url, headers: headers) }

    // MARK: Arguments

    /// Parses one setting.
    ///
    /// - Returns: the fault for the client; nil if valid.
    package mutating func set(_ name: String, _ value: String) -> String? {
        switch name {
        case "variant": return setVariants(value)
        case "audio": return setLanguages(value, \.audio)
        case "subtitles": return setLanguages(value, \.subtitles)
        case "from", "to":
            guard let seconds = Self.time(value) else {
                return "\(name) is a time such as 90, 1:30 or 1:02:03, not '\(value)'"
            }
            if name == "from" { from = seconds } else { to = seconds }
            if let from, let to, to <= from { return "to has to be later than from" }
            return nil
        case "rate":
            let largest = Int64(ExternalNumber.largest)
            guard let bytes = ExternalNumber.integer(value, in: Self.leastRate...largest) else {
                return "rate is a number of bytes a second, 1000 or more, not '\(value)'"
            }
            rate = bytes
            return nil
        default: return "there is no setting '\(name)' of a download"
        }
    }

    private mutating func setVariants(_ value: String) -> String? {
        switch value {
        case "best": variants = .best
        case "worst": variants = .worst
        case "all": variants = .all
        default:
            let digits = value.hasSuffix("p") ? String(value.dropLast()) : value
            guard let height = ExternalNumber.integer(digits, in: 1...100_000) else {
                return "variant is best, worst, all or a height such as 720, not '\(value)'"
            }
            variants = .height(height)
        }
        return nil
    }

    private mutating func setLanguages(
        _ value: String, _ place: WritableKeyPath<DownloadOrder, Languages>
    ) -> String? {
        switch value {
        case "default": self[keyPath: place] = .standard
        case "none": self[keyPath: place] = .none
        case "all": self[keyPath: place] = .all
        default:
            let isTag = value.utf8.allSatisfy { byte in
                byte == 0x2D || byte >= 0x80 || ASCII.isAlphanumeric(byte)
            }
            guard isTag, !value.isEmpty, value.utf8.count <= 64 else {
                return "a language is a tag such as en or pt-BR, not '\(value)'"
            }
            self[keyPath: place] = .only(value)
        }
        return nil
    }

    /// Parses `90`, `90.5`, `1:30` or `1:02:03` as seconds; nil for anything else.
    package static func time(_ text: String) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...3).contains(parts.count) else { return nil }
        var seconds = 0.0
        for part in parts {
            guard part.first != "+", let value = ExternalNumber.decimal(part, in: 0...1e7) else {
                return nil
            }
            seconds = seconds * 60 + value
        }
        return seconds
    }
}

// MARK: Records

extension DownloadOrder {
    /// The order as a record.
    package var record: OrderRecord {
        var record = OrderRecord(url: url.text)
        record.headers = headers.map { "\($0.name):\($0.value)\n" }.joined()
        switch variants {
        case .best: record.variant = "best"
        case .worst: record.variant = "worst"
        case .all: record.variant = "all"
        case .height(let height): record.variant = String(height)
        }
        record.audio = Self.word(audio)
        record.subtitles = Self.word(subtitles)
        record.from = from
        record.to = to
        record.rate = rate
        return record
    }

    private static func word(_ languages: Languages) -> String? {
        switch languages {
        case .standard: nil
        case .none: "none"
        case .all: "all"
        case .only(let language): language
        }
    }

    /// Restores an order; nil without a URL that can be fetched.
    ///
    /// Invalid settings are ignored.
    package init?(_ record: OrderRecord) {
        guard let url = try? AbsoluteURL(record.url) else { return nil }
        self.init(url: url)
        for line in record.headers.split(separator: "\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers.append(
                Entry.Header(
                    name: String(line[..<colon]), value: String(line[line.index(after: colon)...])))
        }
        if let word = record.variant { _ = set("variant", word) }
        if let word = record.audio { _ = set("audio", word) }
        if let word = record.subtitles { _ = set("subtitles", word) }
        from = record.from
        to = record.to
        if let from, let to, to <= from { self.to = nil }
        rate = record.rate.flatMap { $0 >= Self.leastRate ? $0 : nil }
    }
}
