package import URISyntax

/// Decides what an export has of each playlist of a title.
///
/// If a variant stream is stored whole with its audio, the playlists that are whole are exported
/// unchanged, and no others. Otherwise all are cut to the same time ranges: a hole in only one of
/// them would shift picture and sound against each other.
///
/// A cut that keeps less than half of what is stored of the fullest variant stream, such as a film
/// of whose audio only the first seconds are stored, loses more than it mends: then the playlists
/// that are whole are exported. If no variant is whole, the fullest one and its audio are, each
/// without its own holes; others have other holes, and a player that switched to them would jump.
///
/// Variant streams without pictures decide only where nothing of any other is stored, or if they
/// are whole and the cut would keep less than half of them: a glimpse of the pictures beside sound
/// that was ordered.
///
/// Of live playlists that were stored at different times, only those of one time count: the latest
/// of which a variant stream that has ended is whole, or the one that the cut plays; if there is no
/// cut, the latest of which any variant stream is stored.
///
/// Unlike the offline form, an export keeps every range of fragmented MP4 and of live playlists:
/// the links in it do not depend on media sequence numbers, and what is left out of it may be lost.
package struct ExportPlan: Sendable {
    private enum Form {
        /// The playlists that are whole, and no others.
        case whole
        /// All cut to the same time ranges.
        case cut(OfflinePlan)
        /// A variant stream and its audio, each without what is not stored of it, and subtitles.
        case apart(stream: AbsoluteURL, Set<AbsoluteURL>)
    }

    private let form: Form
    /// The playlists that can be played together.
    private let stored: [AbsoluteURL: OfflineList]

    /// Creates the plan of a title.
    ///
    /// - Parameters:
    ///   - variants: its variant streams, in their order.
    ///   - lists: its media playlists of which anything is stored, including those of renditions,
    ///     by the URL that names them.
    ///   - subtitles: those of its playlists that are subtitles.
    package init(
        _ variants: [OfflinePlan.Variant], lists: [AbsoluteURL: OfflineList],
        subtitles: Set<AbsoluteURL>
    ) {
        // Players buffer more sound than pictures, so that sound alone often has most seconds.
        let seen = variants.filter { !$0.isSoundOnly && (lists[$0.url]?.keptCount ?? 0) > 0 }
        let chosen = seen.isEmpty ? variants : seen
        if let whole = Self.latestWhole(lists, of: chosen) {
            (stored, form) = (whole, .whole)
            return
        }
        let cut = OfflinePlan(
            chosen, lists: lists, keepsEveryStretch: true, subtitles: subtitles)
        stored = cut.isEmpty ? Self.latest(lists, of: chosen) : cut.listsOfItsTime
        form = Self.form(of: variants, chosen, cut, in: stored, subtitles)
    }

    /// Returns the playlists of the latest time of which a variant stream that has ended is whole
    /// with its audio; nil if none is.
    ///
    /// Seconds of a later time do not take the place of a complete download.
    private static func latestWhole(
        _ lists: [AbsoluteURL: OfflineList], of variants: [OfflinePlan.Variant]
    ) -> [AbsoluteURL: OfflineList]? {
        var windows = OfflineWindows(lists.filter { !$0.value.isLive })
        repeat {
            let latest = windows.takeLatest()
            if isAnyWhole(variants, in: latest) { return latest }
        } while !windows.isEmpty
        return nil
    }

    /// Returns the playlists of the latest time of which any of some variant streams is stored.
    private static func latest(
        _ lists: [AbsoluteURL: OfflineList], of variants: [OfflinePlan.Variant]
    ) -> [AbsoluteURL: OfflineList] {
        var windows = OfflineWindows(lists)
        var latest = windows.takeLatest()
        while !windows.isEmpty,
            !variants.contains(where: { (latest[$0.url]?.keptCount ?? 0) > 0 })
        {
            latest = windows.takeLatest()
        }
        return latest
    }

    /// True if a playlist is exported.
    package func lists(_ url: AbsoluteURL) -> Bool {
        guard let list = stored[url] else { return false }
        return switch form {
        case .whole: list.isWhole
        case .cut(let plan): plan.playable.contains(url)
        case .apart(_, let urls): urls.contains(url) && list.keptCount > 0
        }
    }

    /// Returns the lines of the segments of a playlist that are left out.
    package func missing(at url: AbsoluteURL) -> Set<Int> {
        switch form {
        case .whole: []
        case .cut(let plan): plan.missing(at: url)
        case .apart: stored[url]?.missing ?? []
        }
    }

    /// Returns the pieces of the listed segments of a playlist, by line; empty if they are listed
    /// as they are.
    package func pieces(at url: AbsoluteURL) -> [Int: [SegmentPiece]] {
        guard case .cut(let plan) = form else { return [:] }
        return plan.pieces(at: url)
    }

    /// Returns replacements for segments that a playlist lacks, by line.
    package func borrowed(at url: AbsoluteURL) -> [Int: AbsoluteURL] {
        guard case .cut(let plan) = form else { return [:] }
        return plan.borrowed[url] ?? [:]
    }

    /// Returns the TIME-OFFSET of the multivariant playlist's EXT-X-START for what is exported.
    ///
    /// - Parameter offset: the origin's.
    /// - Returns: the offset of the same point; nil if that is not exported.
    package func movedStart(_ offset: Duration) -> Duration? {
        switch form {
        case .whole: return offset
        case .cut(let plan): return plan.movedStart(offset)
        case .apart(let stream, _):
            guard let list = stored[stream] else { return offset }
            return list.movedStart(offset, without: list.missing)
        }
    }

    private static func form(
        of variants: [OfflinePlan.Variant], _ chosen: [OfflinePlan.Variant], _ cut: OfflinePlan,
        in lists: [AbsoluteURL: OfflineList], _ subtitles: Set<AbsoluteURL>
    ) -> Form {
        if isAnyWhole(chosen, in: lists) { return .whole }
        guard let fullest = Self.fullest(of: chosen, in: lists) else { return .cut(cut) }
        let duration = cut.stretches.duration
        let isShort = { (list: OfflineList?) in duration < (list?.keptLength ?? 0) / 2 }
        if variants.contains(where: {
            $0.isSoundOnly && lists[$0.url]?.isWhole == true && isShort(lists[$0.url])
        }) {
            return .whole
        }
        if !cut.isEmpty, !isShort(lists[fullest]) { return .cut(cut) }
        if chosen.contains(where: { lists[$0.url]?.isWhole == true }) { return .whole }
        let text = subtitles.filter { lists[$0]?.isWhole == true }
        return .apart(
            stream: fullest,
            variants.filter { $0.url == fullest }.sounds.union(text).union([fullest]))
    }

    /// Returns the variant stream with most stored seconds, the first of equally long ones.
    private static func fullest(
        of variants: [OfflinePlan.Variant], in lists: [AbsoluteURL: OfflineList]
    ) -> AbsoluteURL? {
        var found: (url: AbsoluteURL, length: Double)?
        for variant in variants {
            guard let list = lists[variant.url], list.keptCount > 0 else { continue }
            if let found, list.keptLength <= found.length { continue }
            found = (variant.url, list.keptLength)
        }
        return found?.url
    }

    /// How much is stored of the audio of a variant.
    private enum Sound {
        case absent
        case part
        /// At least one of its playlists, or it is part of the variant stream.
        case whole
    }

    /// True if a variant stream is whole with its audio; where no audio of any is stored, without.
    private static func isAnyWhole(
        _ variants: [OfflinePlan.Variant], in lists: [AbsoluteURL: OfflineList]
    ) -> Bool {
        // Thousands of variants may share thousands of renditions.
        var sounds: [String: Sound] = [:]
        var (hasSound, hasSilent) = (false, false)
        for variant in variants {
            guard let list = lists[variant.url] else { continue }
            let sound =
                variant.soundGroup.flatMap { sounds[$0] } ?? Self.sound(of: variant, in: lists)
            if let group = variant.soundGroup { sounds[group] = sound }
            if sound == .whole, list.isWhole { return true }
            if sound != .absent { hasSound = true }
            if sound == .absent, list.isWhole { hasSilent = true }
        }
        return hasSilent && !hasSound
    }

    private static func sound(
        of variant: OfflinePlan.Variant, in lists: [AbsoluteURL: OfflineList]
    ) -> Sound {
        guard !variant.sound.isEmpty else { return .whole }
        var found = Sound.absent
        for url in variant.sound {
            guard let list = lists[url], list.keptCount > 0 else { continue }
            if list.isWhole { return .whole }
            found = .part
        }
        return found
    }
}
