package import URISyntax

/// Leaves in a multivariant playlist only what can be played, so that it is true without a network.
///
/// Works on the origin's text and leaves every line that stays as it was; the result is to be
/// rewritten like any other. Groups stay consistent:
/// - a rendition that cannot be played goes; one without a URI lives in the variant and stays while
///   a variant uses its group;
/// - a variant that cannot be played goes;
/// - a variant keeps the attribute of a group (AUDIO, VIDEO, SUBTITLES, CLOSED-CAPTIONS) only while
///   the group has members. Subtitles, captions and views can be missed, so that the attribute goes
///   and the variant stays; a variant whose AUDIO group is gone altogether goes with it, since its
///   own stream may be silent, unless no other variant would be left;
/// - groups that no variant uses any more go;
/// - of a group that lost its DEFAULT the first rendition left becomes the default;
/// - I-frame and image playlists, session data and steering go unless they are kept as well.
package enum MultivariantFilter {
    package struct Result: Sendable {
        /// The playlist; without a variant it is not to be served.
        package let bytes: [UInt8]
        package let variantCount: Int
        /// The lines of the origin's playlist that went, without lines that only lost an attribute.
        package let removedLines: [Int]

        /// Whether there is anything to play.
        package var isPlayable: Bool { variantCount > 0 }
        /// Whether nothing had to go.
        package var isWhole: Bool { removedLines.isEmpty }
    }

    /// The variant streams of a multivariant playlist, with the playlists of their sound.
    ///
    /// - Parameters:
    ///   - body: the playlist.
    ///   - references: what a rewrite of it found.
    ///   - limits: what a playlist may cost.
    /// - Returns: them in the order of the playlist.
    /// - Throws: what a rewrite would throw.
    package static func variants(
        _ body: [UInt8], _ references: [ResourceReference], limits: PlaylistLimits = .standard
    ) throws(PlaylistError) -> [OfflinePlan.Variant] {
        let view = PlaylistView(try PlaylistText(body, limits: limits))
        let urls = Dictionary(
            references.map { ($0.line, $0.url) }, uniquingKeysWith: { first, _ in first })
        var sounds: [String: [AbsoluteURL?]] = [:]
        for tag in view.uses(of: .media) where tag.attributes.isValue("AUDIO", of: "TYPE") {
            sounds[tag.attributes.text(of: "GROUP-ID") ?? "", default: []].append(urls[tag.line])
        }
        return view.uses(of: .streamInf).compactMap { tag in
            guard let line = view.uri(after: tag.line)?.line,
                let url = urls[line]
            else { return nil }
            let group = tag.attributes.text(of: "AUDIO")
            let sound = group.flatMap { sounds[$0] } ?? []
            // A rendition without a URI is in the variant itself.
            let isInside = sound.contains { $0 == nil }
            return OfflinePlan.Variant(
                url: url, sound: isInside ? [] : sound.compactMap { $0 },
                kinship: tag.attributes.text(of: "CODECS").map { codecs in
                    "\(kin(codecs)) \(group ?? "")"
                })
        }
    }

    /// Codecs without the level, which differs between sizes of one coding (RFC 6381 section 3.3).
    private static func kin(_ codecs: String) -> String {
        codecs.split(separator: ",").map { codec in
            let name = codec.filter { $0 != " " }
            return name.hasPrefix("avc1.") && name.utf8.count == 11
                ? String(name.dropLast(2)) : name
        }.sorted().joined(separator: ",")
    }

    /// Filters `body`, which came from `base`.
    ///
    /// `canPlay` says of each reference with the role `playlist` whether its playlist, its
    /// initialization sections, keys and at least some of its segments are kept, and of others
    /// whether they are kept. It is asked once for each. Never blocks by itself. Throws what a
    /// rewrite would throw.
    package static func filter(
        _ body: [UInt8], base: AbsoluteURL, limits: PlaylistLimits = .standard,
        canPlay: (ResourceReference) -> Bool
    ) throws(PlaylistError) -> Result {
        var options = PlaylistRewriter.Options()
        options.limits = limits
        options.collectsReferences = true
        let list = try PlaylistRewriter.rewrite(body, base: base, options: options) { _, _ in false
        }
        var playable: [Int: Bool] = [:]
        for reference in list.references { playable[reference.line] = canPlay(reference) }
        var plan = FilterPlan(PlaylistView(try PlaylistText(body, limits: limits)), playable)
        plan.decide()
        return plan.result()
    }
}

/// What stays of a multivariant playlist, line by line.
private struct FilterPlan {
    private struct Group: Hashable {
        let type: String
        let id: String
    }

    private struct Variant {
        let tag: PlaylistView.TagUse
        let uriLine: Int
        var isKept: Bool
    }

    private struct Rendition {
        let tag: PlaylistView.TagUse
        let group: Group
        var isKept: Bool
    }

    private static let types = ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"]

    private let view: PlaylistView
    private let playable: [Int: Bool]
    private var variants: [Variant] = []
    private var renditions: [Rendition]
    private var defaults: Set<Int> = []
    /// The groups that renditions form, kept or not.
    private let declared: Set<Group>

    init(_ view: PlaylistView, _ playable: [Int: Bool]) {
        self.view = view
        self.playable = playable
        for tag in view.uses(of: .streamInf) {
            guard let uri = view.uri(after: tag.line) else { continue }
            // A URI that passes unchanged needs nothing of ours.
            variants.append(
                Variant(tag: tag, uriLine: uri.line, isKept: playable[uri.line] ?? true))
        }
        let renditions = view.uses(of: .media).map { tag in
            let group = Group(
                type: tag.attributes.text(of: "TYPE") ?? "",
                id: tag.attributes.text(of: "GROUP-ID") ?? "")
            return Rendition(tag: tag, group: group, isKept: playable[tag.line] ?? true)
        }
        self.renditions = renditions
        declared = Set(renditions.map(\.group))
    }

    private func group(_ type: String, of tag: PlaylistView.TagUse) -> Group? {
        guard let attribute = tag.attributes.first(type), attribute.isQuoted else { return nil }
        return Group(type: type, id: view.text(attribute))
    }

    private var groupsLeft: Set<Group> { Set(renditions.filter(\.isKept).map(\.group)) }

    mutating func decide() {
        let left = groupsLeft
        // Silent pictures only where there is nothing else.
        let hasSound = variants.map { variant in
            guard variant.isKept, let audio = group("AUDIO", of: variant.tag) else {
                return variant.isKept
            }
            return left.contains(audio) || !declared.contains(audio)
        }
        if hasSound.contains(true) {
            for index in variants.indices { variants[index].isKept = hasSound[index] }
        }
        let used = Set(
            variants.filter(\.isKept).flatMap { variant in
                Self.types.compactMap { group($0, of: variant.tag) }
            })
        for index in renditions.indices where !used.contains(renditions[index].group) {
            renditions[index].isKept = false
        }
        chooseDefaults()
    }

    private mutating func chooseDefaults() {
        let had = Set(
            renditions.filter { $0.tag.attributes.isYes("DEFAULT") }.map(\.group))
        let have = Set(
            renditions.filter { $0.isKept && $0.tag.attributes.isYes("DEFAULT") }.map(\.group))
        var missing = had.subtracting(have)
        for rendition in renditions
        where rendition.isKept && missing.remove(rendition.group) != nil {
            // Forced subtitles are no default, and captions are chosen by the player.
            if rendition.group.type == "AUDIO" || rendition.group.type == "VIDEO" {
                defaults.insert(rendition.tag.line)
            }
        }
    }

    func result() -> MultivariantFilter.Result {
        var removed = Set(renditions.filter { !$0.isKept }.map(\.tag.line))
        for variant in variants where !variant.isKept {
            removed.formUnion([variant.tag.line, variant.uriLine])
        }
        for tag in view.tags where !(playable[tag.line] ?? true) { removed.insert(tag.line) }
        let left = groupsLeft
        let byLine = Dictionary(
            view.tags.map { ($0.line, $0) }, uniquingKeysWith: { first, _ in first })
        var output: [UInt8] = []
        output.reserveCapacity(view.bytes.count)
        for line in view.text.lines where !removed.contains(line.number) {
            if let tag = byLine[line.number] {
                append(tag, line.range, left, to: &output)
            } else {
                output.append(contentsOf: view.bytes[line.range])
            }
            output.append(0x0A)
        }
        return MultivariantFilter.Result(
            bytes: output, variantCount: variants.count(where: \.isKept),
            removedLines: removed.sorted())
    }

    /// Appends a tag without the groups that are gone and with the default that it became.
    private func append(
        _ tag: PlaylistView.TagUse, _ range: Range<Int>, _ left: Set<Group>,
        to output: inout [UInt8]
    ) {
        var lost: [String] = []
        if tag.name == .streamInf || tag.name == .iFrameStreamInf {
            lost = Self.types.filter { type in
                guard let group = group(type, of: tag) else { return false }
                return declared.contains(group) && !left.contains(group)
            }
        }
        let isDefault = defaults.contains(tag.line)
        guard !lost.isEmpty || isDefault else {
            output.append(contentsOf: view.bytes[range])
            return
        }
        var edit = AttributeEdit(tag.attributes)
        for name in lost { edit.remove(name) }
        if isDefault {
            edit.set("DEFAULT", "YES")
            if tag.attributes.first("AUTOSELECT") != nil { edit.set("AUTOSELECT", "YES") }
        }
        output.append(contentsOf: view.bytes[range.lowerBound..<tag.value.lowerBound])
        edit.append(to: &output)
    }
}
