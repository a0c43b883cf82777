// The choice of a multivariant playlist's playlists by an order.
package import HLS
package import URISyntax

/// A media playlist to be downloaded.
package struct ChosenPlaylist: Sendable, Equatable {
    package let url: AbsoluteURL
    /// A short description that distinguishes it from the others, for users.
    package let label: String
    /// The bits per second that it adds to the title: those of a variant, which include its
    /// renditions, and 0 for a rendition; nil if unknown.
    package let bandwidth: Int?

    package init(url: AbsoluteURL, label: String, bandwidth: Int? = nil) {
        self.url = url
        self.label = label
        self.bandwidth = bandwidth
    }
}

/// Chooses playlists by an order, without I/O.
package struct DownloadChoice {
    /// The reason why an order cannot be met, for the client.
    package struct Fault: Error, Equatable {
        package let message: String
    }

    private let order: DownloadOrder
    private let variants: [Variant]
    private let renditions: [Rendition]

    private typealias Variant = MultivariantPlaylist.Variant
    private typealias Rendition = MultivariantPlaylist.Rendition

    package init(_ order: DownloadOrder, _ list: MultivariantPlaylist) {
        self.order = order
        variants = list.streams.filter { $0.reference != nil }
        renditions = list.renditions
    }

    /// Returns the playlists, variant streams first, each once.
    ///
    /// - Throws: `Fault` if the title lacks what was ordered; it names the available choices.
    package func playlists() throws(Fault) -> [ChosenPlaylist] {
        guard !variants.isEmpty else {
            throw Fault(message: "the playlist names no variant stream")
        }
        let streams = try chosenVariants()
        var beside = try chosen("AUDIO", for: streams, order.audio)
        beside += try chosen("SUBTITLES", for: streams, order.subtitles)
        beside += try chosen("VIDEO", for: streams, .standard)
        var named: [(AbsoluteURL?, String, Int?)] = streams.map {
            ($0.reference?.url, Self.label($0), Self.bandwidth($0))
        }
        named += beside.map { ($0.reference?.url, Self.label($0), 0) }
        var known: Set<AbsoluteURL> = []
        return named.compactMap { url, label, bandwidth in
            guard let url, known.insert(url).inserted else { return nil }
            return ChosenPlaylist(url: url, label: label, bandwidth: bandwidth)
        }
    }

    // MARK: Variants

    private func chosenVariants() throws(Fault) -> [Variant] {
        switch order.variants {
        case .all: return variants
        case .best: return variants.max(by: Self.isLess).map { [$0] } ?? []
        case .worst: return variants.min(by: Self.isLess).map { [$0] } ?? []
        case .heights(let wanted):
            let byHeight = Dictionary(grouping: variants) { $0.height ?? 0 }
            let missing = wanted.filter { byHeight[$0] == nil }
            guard missing.isEmpty else {
                let heights = byHeight.keys.filter { $0 > 0 }.sorted().map(String.init)
                let known =
                    heights.isEmpty
                    ? "its playlist tells no heights; take best or worst"
                    : "it has \(heights.joined(separator: ", "))"
                let lacked = missing.map(String.init).joined(separator: " or ")
                throw Fault(message: "the title has no variant of height \(lacked): \(known)")
            }
            return wanted.compactMap { byHeight[$0]?.max(by: Self.isLess) }
        }
    }

    /// Compares by height first, since a better codec may need a lower bit rate.
    private static func isLess(_ a: Variant, _ b: Variant) -> Bool {
        (a.height ?? 0, a.bandwidth ?? 0) < (b.height ?? 0, b.bandwidth ?? 0)
    }

    /// The average bit rate if known, otherwise the peak; nil if both are missing or 0.
    private static func bandwidth(_ variant: Variant) -> Int? {
        [variant.averageBandwidth, variant.bandwidth].compactMap { $0 }.first { $0 > 0 }
    }

    // MARK: Renditions

    /// Returns the renditions of a type in the groups of the chosen variants.
    private func chosen(
        _ type: String, for streams: [Variant], _ wanted: DownloadOrder.Languages
    ) throws(Fault) -> [Rendition] {
        let groups = Set(streams.compactMap { $0.group(type) })
        let members = renditions.filter { $0.type == type && groups.contains($0.groupID ?? "") }
        switch wanted {
        case .none: return []
        case .all: return members
        case .only(let languages):
            let lowercased = languages.map { $0.lowercased() }
            var missing = Set(lowercased)
            let fitting = members.filter { member in
                guard let tag = member.language?.lowercased() else { return false }
                let matched = lowercased.filter { Self.isLanguage(tag, $0) }
                missing.subtract(matched)
                return !matched.isEmpty
            }
            guard !missing.isEmpty else { return fitting }
            let known = Set(members.compactMap { $0.language }).sorted()
            let has = known.isEmpty ? "none that says its language" : known.joined(separator: ", ")
            let lacked = languages.filter { missing.contains($0.lowercased()) }
                .map { "'\($0)'" }.joined(separator: " or ")
            throw Fault(message: "the title has no \(Self.word(type)) in \(lacked); it has \(has)")
        case .standard:
            // Subtitles are opt-in, except forced ones.
            let byGroup = Dictionary(grouping: members) { $0.groupID ?? "" }
            return groups.sorted().flatMap { group -> [Rendition] in
                let own = byGroup[group] ?? []
                if type == "SUBTITLES" { return own.filter(\.isForced) }
                let standard = own.first(where: \.isDefault)
                return (standard ?? own.first).map { [$0] } ?? []
            }
        }
    }

    /// True if a tag is the wanted one or more specific: `en` also matches `en-GB`; both are in
    /// lower case.
    private static func isLanguage(_ tag: String, _ wanted: String) -> Bool {
        tag == wanted || tag.hasPrefix(wanted + "-")
    }

    private static func word(_ type: String) -> String {
        type == "AUDIO" ? "audio" : "subtitles"
    }

    private static func label(_ variant: Variant) -> String {
        variant.height.map { "\($0)p" } ?? "\((variant.bandwidth ?? 0) / 1_000) kb/s"
    }

    private static func label(_ rendition: Rendition) -> String {
        "\(word(rendition.type ?? "")) \(rendition.language ?? rendition.name ?? "?")"
    }
}
