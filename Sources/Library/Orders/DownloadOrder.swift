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
        /// The best variant of each of these heights in pixels, each height once.
        case heights([Int])
    }

    /// The renditions of a kind to download.
    package enum Languages: Sendable, Equatable {
        /// The rendition that a player takes by default; no subtitles except forced ones.
        case standard
        case none
        case all
        /// Those in any of these languages, each of which the title must have.
        case only([String])
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
    /// The settings that take a list.
    static let lists = ["variant", "audio", "subtitles"]
    /// The most members of a list.
    private static let mostMembers = 32
    /// The most bytes of a list: those of a column of `OrderRecord`.
    private static let mostListBytes = 256

    package init(url: AbsoluteURL) { self.url = url }

    /// The entry that a player would start the title from.
    package var entry: Entry { Entry(url: url, headers: headers) }

    // MARK: Arguments

    /// Parses one setting; lists are separated by commas.
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
        let members = Self.members(of: value)
        switch members {
        case ["best"]: variants = .best
        case ["worst"]: variants = .worst
        case ["all"]: variants = .all
        default:
            guard members.count <= Self.mostMembers else {
                return "variant names at most \(Self.mostMembers) heights, not \(members.count)"
            }
            var heights: [Int] = []
            for member in members {
                let digits = member.hasSuffix("p") ? String(member.dropLast()) : member
                guard let height = ExternalNumber.integer(digits, in: 1...100_000) else {
                    return
                        "variant is best, worst, all or heights such as 720 or 360,720, not '\(value)'"
                }
                if !heights.contains(height) { heights.append(height) }
            }
            variants = .heights(heights)
        }
        return nil
    }

    /// Returns the members of a list, each once, without the blanks before them.
    private static func members(of list: String) -> [String] {
        var known: Set<String> = []
        return list.utf8.split(separator: 0x2C, omittingEmptySubsequences: false)
            .map { member in String(Substring(member.drop { $0 == 0x20 })) }
            .filter { known.insert(ASCII.lowercased($0)).inserted }
    }

    private mutating func setLanguages(
        _ value: String, _ place: WritableKeyPath<DownloadOrder, Languages>
    ) -> String? {
        let members = Self.members(of: value)
        switch members {
        case ["default"]: self[keyPath: place] = .standard
        case ["none"]: self[keyPath: place] = .none
        case ["all"]: self[keyPath: place] = .all
        default:
            let length = members.joined(separator: ",").utf8.count
            guard members.count <= Self.mostMembers, length <= Self.mostListBytes else {
                return "an order names at most \(Self.mostMembers) languages in "
                    + "\(Self.mostListBytes) bytes, not \(members.count) in \(length)"
            }
            for member in members {
                guard !["default", "none", "all"].contains(member) else {
                    return "'\(member)' stands alone, not in the list '\(value)'"
                }
                guard Self.isTag(member) else {
                    return "a language is a tag such as en or pt-BR, not '\(member)'"
                }
            }
            self[keyPath: place] = .only(members)
        }
        return nil
    }

    private static func isTag(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                byte == 0x2D || byte >= 0x80 || ASCII.isAlphanumeric(byte)
            }
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
        case .heights(let heights):
            record.variant = heights.map(String.init).joined(separator: ",")
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
        case .only(let languages): languages.joined(separator: ",")
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
