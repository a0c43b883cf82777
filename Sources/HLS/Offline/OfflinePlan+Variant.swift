package import URISyntax

extension OfflinePlan {
    /// A variant stream of the multivariant playlist.
    package struct Variant: Sendable {
        package let url: AbsoluteURL
        /// The playlists of its audio; empty if the audio is part of the variant stream.
        package let sound: [AbsoluteURL]
        /// The audio group; nil without one.
        ///
        /// Variants with the same group have the same `sound`.
        package let soundGroup: String?
        /// CODECS and audio group: only variants with equal values can replace each other's
        /// segments.
        package let encodingGroup: String?
        /// True if it has no pictures, as far as the multivariant playlist tells.
        package let isSoundOnly: Bool

        package init(
            url: AbsoluteURL, sound: [AbsoluteURL], soundGroup: String? = nil,
            encodingGroup: String?, isSoundOnly: Bool = false
        ) {
            self.url = url
            self.sound = sound
            self.soundGroup = soundGroup
            self.encodingGroup = encodingGroup
            self.isSoundOnly = isSoundOnly
        }
    }
}

extension [OfflinePlan.Variant] {
    /// The playlists of their audio.
    var sounds: Set<AbsoluteURL> {
        var urls: Set<AbsoluteURL> = []
        // Thousands of variants may share thousands of renditions.
        var groups: Set<String> = []
        for variant in self {
            if let group = variant.soundGroup, !groups.insert(group).inserted { continue }
            urls.formUnion(variant.sound)
        }
        return urls
    }

    /// Returns the variants that may be played without their audio, as if they had none.
    ///
    /// Those of whose audio anything is stored are not among them: it may be of another time of the
    /// stream.
    func silent(in lists: [AbsoluteURL: OfflineList]) -> [OfflinePlan.Variant] {
        var silent: [OfflinePlan.Variant] = []
        // Thousands of variants may share thousands of renditions.
        var sounds: [String: Double] = [:]
        for variant in self where !variant.sound.isEmpty && lists[variant.url] != nil {
            let sound =
                variant.soundGroup.flatMap { sounds[$0] }
                ?? variant.sound.reduce(0.0) { Swift.max($0, lists[$1]?.keptLength ?? 0) }
            if let group = variant.soundGroup { sounds[group] = sound }
            guard sound == 0 else { continue }
            silent.append(
                OfflinePlan.Variant(
                    url: variant.url, sound: [], encodingGroup: variant.encodingGroup))
        }
        return silent
    }
}
