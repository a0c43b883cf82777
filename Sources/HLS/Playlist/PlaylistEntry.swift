/// A value that names resources, by its kind and its index among those of that kind.
struct PlaylistEntry {
    enum Kind: UInt8 {
        case segment, part, hint, report, key, map, dateRange
        case variant, rendition, sessionData, sessionKey, steering
        case other

        /// The kind of playlist that has such values; nil for both.
        var playlist: PlaylistKind? {
            switch self {
            case .segment, .part, .hint, .report, .key, .map, .dateRange: .media
            case .variant, .rendition, .sessionData, .sessionKey, .steering: .multivariant
            case .other: nil
            }
        }
    }

    let kind: Kind
    let index: Int32

    init(_ kind: Kind, _ index: Int) {
        self.kind = kind
        self.index = Int32(truncatingIfNeeded: index)
    }

    /// Returns the resource that the value names; nil for a date range, which may name several.
    func reference(
        _ media: MediaPlaylist?, _ multivariant: MultivariantPlaylist?,
        _ others: [ResourceReference]
    ) -> ResourceReference? {
        let index = Int(self.index)
        return switch kind {
        case .segment: media?.segments[index].reference
        case .part: media?.parts[index].reference
        case .hint: media?.preloadHints[index].reference
        case .report: media?.renditionReports[index].reference
        case .key: media?.keys[index].reference
        case .map: media?.maps[index].reference
        case .dateRange: nil
        case .variant: multivariant?.variants[index].reference
        case .rendition: multivariant?.renditions[index].reference
        case .sessionData: multivariant?.sessionData[index].reference
        case .sessionKey: multivariant?.sessionKeys[index].reference
        case .steering: multivariant?.steering[index].reference
        case .other: others[index]
        }
    }
}
