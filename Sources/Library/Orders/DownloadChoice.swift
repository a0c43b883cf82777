// Which playlists of a multivariant playlist an order means.
package import HLS
import Numbers
package import URISyntax

/// A media playlist to be downloaded.
package struct ChosenPlaylist: Sendable, Equatable {
    package let url: AbsoluteURL
    /// What tells it from its neighbours, for people.
    package let label: String

    package init(url: AbsoluteURL, label: String) {
        self.url = url
        self.label = label
    }
}

/// Chooses; pure.
package struct DownloadChoice {
    /// Why an order cannot be met, for the one who gave it.
    package struct Fault: Error, Equatable {
        package let message: String
    }

    private let order: DownloadOrder
    private let variants: [PlaylistOutline.Entry]
    private let renditions: [PlaylistOutline.Entry]

    package init(_ order: DownloadOrder, _ outline: PlaylistOutline) {
        self.order = order
        variants = outline.entries.filter { $0.kind == .variant && $0.url != nil }
        renditions = outline.entries.filter { $0.kind == .rendition }
    }

    /// The playlists, variant streams first, each once.
    ///
    /// - Throws: `Fault` where the title has not what was ordered; it names what there is.
    package func playlists() throws(Fault) -> [ChosenPlaylist] {
        guard !variants.isEmpty else {
            throw Fault(message: "the playlist names no variant stream")
        }
        let streams = try chosenVariants()
        var entries = streams
        entries += try chosen("AUDIO", for: streams, order.audio)
        entries += try chosen("SUBTITLES", for: streams, order.subtitles)
        entries += try chosen("VIDEO", for: streams, .standard)
        var known: Set<AbsoluteURL> = []
        return entries.compactMap { entry in
            guard let url = entry.url, known.insert(url).inserted else { return nil }
            return ChosenPlaylist(url: url, label: Self.label(entry))
        }
    }

    // MARK: Variants

    private func chosenVariants() throws(Fault) -> [PlaylistOutline.Entry] {
        switch order.variants {
        case .all: return variants
        case .best: return variants.max(by: Self.isLess).map { [$0] } ?? []
        case .worst: return variants.min(by: Self.isLess).map { [$0] } ?? []
        case .height(let height):
            let fitting = variants.filter { Self.height($0) == height }
            guard let best = fitting.max(by: Self.isLess) else {
                let heights = Set(variants.compactMap(Self.height)).sorted().map(String.init)
                let known =
                    heights.isEmpty
                    ? "its playlist tells no heights; take best or worst"
                    : "it has \(heights.joined(separator: ", "))"
                throw Fault(message: "the title has no variant of height \(height): \(known)")
            }
            return [best]
        }
    }

    /// By picture first: of two codecs the better one may need fewer bits.
    private static func isLess(_ a: PlaylistOutline.Entry, _ b: PlaylistOutline.Entry) -> Bool {
        (height(a) ?? 0, bandwidth(a)) < (height(b) ?? 0, bandwidth(b))
    }

    private static func height(_ entry: PlaylistOutline.Entry) -> Int? {
        entry.attribute("RESOLUTION")?.split(separator: "x").last.flatMap {
            OutsideNumber.integer($0, in: 1...100_000)
        }
    }

    private static func bandwidth(_ entry: PlaylistOutline.Entry) -> Int {
        entry.attribute("BANDWIDTH").flatMap {
            OutsideNumber.integer($0, in: 0...OutsideNumber.largest)
        } ?? 0
    }

    // MARK: Renditions

    /// The renditions of a type in the groups of the chosen variants.
    private func chosen(
        _ type: String, for streams: [PlaylistOutline.Entry], _ wanted: DownloadOrder.Languages
    ) throws(Fault) -> [PlaylistOutline.Entry] {
        let groups = Set(streams.compactMap { $0.attribute(type) })
        let members = renditions.filter { entry in
            entry.attribute("TYPE") == type && groups.contains(entry.attribute("GROUP-ID") ?? "")
        }
        switch wanted {
        case .none: return []
        case .all: return members
        case .only(let language):
            let fitting = members.filter { Self.isLanguage($0.attribute("LANGUAGE"), language) }
            guard fitting.isEmpty else { return fitting }
            let known = Set(members.compactMap { $0.attribute("LANGUAGE") }).sorted()
            let has = known.isEmpty ? "none that says its language" : known.joined(separator: ", ")
            throw Fault(
                message: "the title has no \(Self.word(type)) in '\(language)'; it has \(has)")
        case .standard:
            // Subtitles are for those who ask for them, unless they belong to the picture.
            return groups.sorted().flatMap { group -> [PlaylistOutline.Entry] in
                let own = members.filter { $0.attribute("GROUP-ID") == group }
                if type == "SUBTITLES" { return own.filter { $0.attribute("FORCED") == "YES" } }
                let standard = own.first { $0.attribute("DEFAULT") == "YES" }
                return (standard ?? own.first).map { [$0] } ?? []
            }
        }
    }

    /// Whether a tag is the wanted one or a narrower one: `en` wants `en-GB` too.
    private static func isLanguage(_ tag: String?, _ wanted: String) -> Bool {
        guard let tag = tag?.lowercased() else { return false }
        let wanted = wanted.lowercased()
        return tag == wanted || tag.hasPrefix(wanted + "-")
    }

    private static func word(_ type: String) -> String {
        type == "AUDIO" ? "audio" : "subtitles"
    }

    private static func label(_ entry: PlaylistOutline.Entry) -> String {
        if entry.kind == .variant {
            if let height = height(entry) { return "\(height)p" }
            return "\(bandwidth(entry) / 1_000) kb/s"
        }
        let name = entry.attribute("LANGUAGE") ?? entry.attribute("NAME") ?? "?"
        return "\(word(entry.attribute("TYPE") ?? "")) \(name)"
    }
}
