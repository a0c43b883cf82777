package import URISyntax

/// Reduces a multivariant playlist to what can be played without a network, or to what a session is
/// offered (`VariantLimit`).
///
/// Works on the origin's text and leaves all remaining lines unchanged; the result is to be
/// rewritten like any other. Groups stay consistent:
/// - a rendition that cannot be played is removed; one without a URI is part of the variant and
///   stays while a variant uses its group;
/// - a variant that cannot be played is removed;
/// - a variant keeps the attribute of a group (AUDIO, VIDEO, SUBTITLES, CLOSED-CAPTIONS) only while
///   the group has members. Subtitles, captions and camera angles are dispensable: the attribute is
///   removed and the variant stays. A variant whose AUDIO group has lost all members is removed,
///   since its own stream may be silent, unless no other variant would be left;
/// - groups that no remaining variant uses are removed;
/// - in a group that lost its DEFAULT the first remaining rendition becomes the default;
/// - I-frame and image playlists, session data and steering are removed unless they are kept too.
package enum MultivariantFilter {
    package struct Result: Sendable {
        /// The playlist; not to be served without a variant.
        package let bytes: [UInt8]
        package let variantCount: Int
        /// True if no line was removed and EXT-X-START has the same offset; a line may have lost an
        /// attribute all the same.
        package let isWhole: Bool

        /// True if there is anything to play.
        package var isPlayable: Bool { variantCount > 0 }
    }

    /// Returns the variant streams of a multivariant playlist, in its order, with their audio
    /// playlists.
    package static func variants(_ list: MultivariantPlaylist) -> [OfflinePlan.Variant] {
        var sounds: [String: SoundGroup] = [:]
        var soundURLs: Set<AbsoluteURL> = []
        for rendition in list.renditions where rendition.type == "AUDIO" {
            let url = rendition.reference?.url
            sounds[rendition.groupID ?? "", default: SoundGroup()].add(url)
            if let url { soundURLs.insert(url) }
        }
        return list.streams.compactMap { variant in
            guard let url = variant.reference?.url else { return nil }
            let group = variant.audioGroup
            return OfflinePlan.Variant(
                url: url, sound: group.flatMap { sounds[$0]?.playlists } ?? [], soundGroup: group,
                encodingGroup: variant.codecs.map { codecs in "\(kin(codecs)) \(group ?? "")" },
                isSoundOnly: isSoundOnly(variant, isRendition: soundURLs.contains(url)))
        }
    }

    /// Returns the playlists of subtitles: players show them beside the picture, whatever segments
    /// they have.
    package static func subtitles(_ list: MultivariantPlaylist) -> Set<AbsoluteURL> {
        Set(
            list.renditions.lazy.filter { $0.type == "SUBTITLES" }.compactMap {
                $0.reference?.url
            })
    }

    /// How the names of codecs of sound and of subtitles begin.
    private static let codecsWithoutPictures = [
        "mp4a", "ac-3", "ac-4", "ec-3", "opus", "vorbis", "flac", "alac", "mp3", "dts", "mha",
        "mhm", "iamf", "stpp", "wvtt",
    ]

    /// True if a variant stream has no pictures; without RESOLUTION and CODECS, if its playlist is
    /// that of an audio rendition.
    static func isSoundOnly(
        _ variant: MultivariantPlaylist.Variant, isRendition: Bool
    ) -> Bool {
        guard !variant.attributes.has("RESOLUTION") else { return false }
        let codecs = (variant.codecs ?? "").split(separator: ",")
        guard !codecs.isEmpty else { return isRendition }
        return codecs.allSatisfy { codec in
            let bare: String = codec.filter { $0 != " " }
            let name = ASCII.lowercased(bare)
            return codecsWithoutPictures.contains { name.hasPrefix($0) }
        }
    }

    /// The audio of one group.
    ///
    /// Each playlist is listed once, and all variants share the array: a group may have thousands of
    /// renditions, and thousands of variants may use it.
    private struct SoundGroup {
        private var urls: [AbsoluteURL] = []
        private var known: Set<AbsoluteURL> = []
        private var isInside = false

        /// The playlists; empty if the audio is part of the variant stream.
        var playlists: [AbsoluteURL] { isInside ? [] : urls }

        /// Adds a rendition; one without a URI is part of the variant stream.
        mutating func add(_ url: AbsoluteURL?) {
            guard let url else {
                isInside = true
                return
            }
            if known.insert(url).inserted { urls.append(url) }
        }
    }

    /// Returns the codecs without the level, which differs between resolutions of one coding (RFC
    /// 6381 section 3.3).
    private static func kin(_ codecs: String) -> String {
        codecs.split(separator: ",").map { codec in
            let name = codec.filter { $0 != " " }
            return name.hasPrefix("avc1.") && name.utf8.count == 11
                ? String(name.dropLast(2)) : name
        }.sorted().joined(separator: ",")
    }

    /// Filters a playlist that was parsed with its lines; a media playlist is returned unchanged.
    ///
    /// `canPlay` returns, for a reference with the role `playlist`, whether its playlist, its
    /// initialization sections, its keys and at least some of its segments are kept, and for others
    /// whether they are kept. It is called once for each reference. `movedStart` returns the
    /// TIME-OFFSET of EXT-X-START for what is played, nil if the tag is to be removed. Never blocks
    /// by itself.
    package static func filter(
        _ list: Playlist, canPlay: (ResourceReference) -> Bool,
        movedStart: (Duration) -> Duration? = { $0 }
    ) -> Result {
        guard let multivariant = list.multivariant else {
            return Result(bytes: list.source, variantCount: 0, isWhole: true)
        }
        var playable: [Int: Bool] = [:]
        var lost: Set<Int> = []
        list.forEachReference { reference in
            let isPlayable = canPlay(reference)
            playable[reference.line] = isPlayable
            // For a variant, `line` is the line of its URI.
            if !isPlayable, reference.tag != .streamInf { lost.insert(reference.line) }
        }
        var start: (line: Int, edit: AttributeEdit)?
        let starts = list.lines.filter { $0.tag == .start }
        if let first = starts.first {
            // A list may have one; others are removed with it.
            switch StartOffset.change(of: first, in: list.source, by: movedStart) {
            case .none: break
            case .removed: lost.formUnion(starts.map(\.number))
            case .edited(let edit):
                start = (first.number, edit)
                lost.formUnion(starts.dropFirst().map(\.number))
            }
        }
        var plan = FilterPlan(list, multivariant, playable, lost: lost, start)
        plan.decide()
        return plan.result()
    }
}

/// Decides line by line what remains of a multivariant playlist.
private struct FilterPlan {
    private struct Group: Hashable {
        let type: String
        let id: String
    }

    private struct Variant {
        let tag: MultivariantPlaylist.Variant
        let uriLine: Int
        var isKept: Bool
    }

    private struct Rendition {
        let tag: MultivariantPlaylist.Rendition
        let group: Group
        var isKept: Bool
    }

    private static let types = ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"]

    private let list: Playlist
    /// The lines of tags whose resources are missing.
    private let lost: Set<Int>
    private var variants: [Variant] = []
    private var renditions: [Rendition]
    private var defaults: Set<Int> = []
    /// The new attributes of EXT-X-START; nil if they stay.
    private let start: (line: Int, edit: AttributeEdit)?
    /// The groups that renditions declare, kept or not.
    private let declared: Set<Group>

    init(
        _ list: Playlist, _ multivariant: MultivariantPlaylist, _ playable: [Int: Bool],
        lost: Set<Int>, _ start: (line: Int, edit: AttributeEdit)?
    ) {
        self.list = list
        self.lost = lost
        self.start = start
        // A tag without a URI line belongs to the next one that has a URI line; alone it is
        // dropped.
        var uriLine: Int?
        for tag in multivariant.streams.reversed() {
            uriLine = tag.uriLine ?? uriLine
            guard let uriLine else { continue }
            // A URI that passes unchanged needs no stored resource.
            variants.append(Variant(tag: tag, uriLine: uriLine, isKept: playable[uriLine] ?? true))
        }
        variants.reverse()
        let renditions = multivariant.renditions.map { tag in
            let group = Group(type: tag.type ?? "", id: tag.groupID ?? "")
            return Rendition(tag: tag, group: group, isKept: playable[tag.line] ?? true)
        }
        self.renditions = renditions
        declared = Set(renditions.map(\.group))
    }

    private func group(_ type: String, of tag: MultivariantPlaylist.Variant) -> Group? {
        tag.group(type).map { Group(type: type, id: $0) }
    }

    private var groupsLeft: Set<Group> { Set(renditions.filter(\.isKept).map(\.group)) }

    mutating func decide() {
        let left = groupsLeft
        // Variants without audio remain only if there are no others.
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
            renditions.filter { $0.tag.isDefault }.map(\.group))
        let have = Set(
            renditions.filter { $0.isKept && $0.tag.isDefault }.map(\.group))
        var missing = had.subtracting(have)
        for rendition in renditions
        where rendition.isKept && missing.remove(rendition.group) != nil {
            // Forced subtitles must not become a default, and captions are chosen by the player.
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
        removed.formUnion(lost)
        let left = groupsLeft
        let edits = edits(left)
        var output: [UInt8] = []
        output.reserveCapacity(list.source.count)
        for line in list.lines where !removed.contains(line.number) {
            if let edit = edits[line.number], case .tag(_, let value) = line.kind {
                output.append(contentsOf: list.source[line.range.lowerBound..<value.lowerBound])
                edit.append(to: &output)
            } else {
                output.append(contentsOf: list.source[line.range])
            }
            output.append(0x0A)
        }
        return MultivariantFilter.Result(
            bytes: output, variantCount: variants.count(where: \.isKept),
            isWhole: removed.isEmpty && start == nil)
    }

    /// Returns the edits, by line, of tags that lose an empty group or become a default, and of
    /// EXT-X-START.
    private func edits(_ left: Set<Group>) -> [Int: AttributeEdit] {
        var edits: [Int: AttributeEdit] = [:]
        for tag in list.multivariant?.variants ?? [] where tag.kind != .images {
            let lost = Self.types.filter { type in
                guard let group = group(type, of: tag) else { return false }
                return declared.contains(group) && !left.contains(group)
            }
            guard !lost.isEmpty else { continue }
            var edit = AttributeEdit(tag.attributes)
            for name in lost { edit.remove(name) }
            edits[tag.line] = edit
        }
        for rendition in renditions where defaults.contains(rendition.tag.line) {
            var edit = AttributeEdit(rendition.tag.attributes)
            edit.set("DEFAULT", "YES")
            if rendition.tag.attributes.has("AUTOSELECT") { edit.set("AUTOSELECT", "YES") }
            edits[rendition.tag.line] = edit
        }
        if let start { edits[start.line] = start.edit }
        return edits
    }
}
