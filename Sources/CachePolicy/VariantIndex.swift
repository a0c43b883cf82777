// The entry under a URL's primary key when its responses have `Vary`: the fields that select, and
// the stored variants.
package import HTTP
import URISyntax

/// The variants of one URL; on disk it replaces an object's head.
package struct VariantIndex: Sendable, Equatable {
    /// One stored variant.
    package struct Variant: Sendable, Equatable {
        /// The end of its key text.
        package var mark: String
        /// Its entity tag as sent, for revalidation; empty without one.
        package var tag: String
        /// Its one `Content-Language` in lower case; empty for none or several.
        package var language: String

        package init(mark: String, tag: String, language: String) {
            self.mark = mark
            self.tag = tag
            self.language = language
        }
    }

    /// The sets of fields that responses named, latest first.
    package private(set) var sets: [SelectingFields] = []
    /// The stored variants, latest first.
    package private(set) var variants: [Variant] = []

    /// The most sets that are remembered: an origin that names other fields each time is not worth
    /// more.
    private static let mostSets = 4
    /// The most variants that are stored; they are removed together.
    package static let mostVariants = 128
    /// The most variants that a request names to the origin.
    private static let mostNamed = 24

    package init() {}

    /// The latest variants with an entity tag, any of which the origin may select.
    package var named: [Variant] {
        Array(variants.lazy.filter { !$0.tag.isEmpty }.prefix(Self.mostNamed))
    }

    /// True if the variant with this mark is stored.
    package func lists(_ mark: String) -> Bool { variants.contains { $0.mark == mark } }

    /// Records a stored variant.
    ///
    /// - Parameters:
    ///   - set: the fields that its response named.
    ///   - variant: the variant.
    /// - Returns: the marks of the oldest variants, which are not listed any more for want of room.
    @discardableResult
    package mutating func note(_ set: SelectingFields, _ variant: Variant) -> [String] {
        sets.removeAll { $0 == set }
        sets.insert(set, at: 0)
        sets = Array(sets.prefix(Self.mostSets))
        variants.removeAll { $0.mark == variant.mark }
        variants.insert(variant, at: 0)
        let displaced = variants.dropFirst(Self.mostVariants).map(\.mark)
        variants = Array(variants.prefix(Self.mostVariants))
        return displaced
    }

    /// Returns the variant of a response.
    package static func variant(of response: Fields, mark: String) -> Variant {
        let languages = response.listMembers(.contentLanguage)
        return Variant(
            mark: mark, tag: EntityTag.parse(response) == nil ? "" : response.first(.etag) ?? "",
            language: languages.count == 1 ? ASCII.lowercased(languages[0]) : "")
    }

    // MARK: On disk

    private static let firstLine = "variants 1"

    /// The text form: a first line that names the format, a line of names for each set, a line for
    /// each variant.
    package var encoded: [UInt8] {
        var lines = [Self.firstLine]
        lines += sets.map { "by " + $0.names.joined(separator: ",") }
        for variant in variants {
            let language = variant.language.isEmpty ? "-" : variant.language
            lines.append("is \(variant.mark) \(language) \(variant.tag)")
        }
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// Parses an `encoded` index; nil for any other bytes, including a response's head.
    package init?(encoded bytes: [UInt8]) {
        guard bytes.starts(with: Self.firstLine.utf8) else { return nil }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        for line in lines.dropFirst() {
            let parts = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
                .map(String.init)
            switch (parts.first, parts.count) {
            case ("by", 2):
                sets.append(SelectingFields(names: parts[1].split(separator: ",").map(String.init)))
            case ("is", 4):
                let language = parts[2] == "-" ? "" : parts[2]
                variants.append(Variant(mark: parts[1], tag: parts[3], language: language))
            default:
                return nil
            }
        }
    }
}
