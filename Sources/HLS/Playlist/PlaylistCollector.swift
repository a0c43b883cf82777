import URISyntax

/// The sink that builds a `Playlist`.
struct PlaylistCollector: PlaylistSink {
    static let writesText = false
    static let takesValues = true

    private let body: [UInt8]
    private var segments: [MediaPlaylist.Segment] = []
    private var parts: [MediaPlaylist.PartialSegment] = []
    private var hints: [MediaPlaylist.PreloadHint] = []
    private var reports: [MediaPlaylist.RenditionReport] = []
    private var keys: [EncryptionKey] = []
    private var maps: [MediaPlaylist.InitializationSection] = []
    private var dateRanges: [MediaPlaylist.DateRange] = []
    private var dates: [(mediaSequence: Int, date: DateTime)] = []
    private var serverControl: MediaPlaylist.ServerControl?
    private var skip: MediaPlaylist.Skip?
    private var variants: [MultivariantPlaylist.Variant] = []
    private var renditions: [MultivariantPlaylist.Rendition] = []
    private var sessionData: [MultivariantPlaylist.SessionData] = []
    private var sessionKeys: [EncryptionKey] = []
    private var steering: [MultivariantPlaylist.ContentSteering] = []
    private var definitions: [VariableDefinition] = []
    private var others: [ResourceReference] = []
    private var order: [PlaylistEntry] = []
    private var lines: [PlaylistLine] = []
    private var areLinesMixed = false

    // Attributes of the next segment, or the next variant.
    private var date: DateTime?
    private var discontinuities = 0
    /// The index of the variant whose URI is still to come.
    private var pendingVariant: Int?

    init(_ body: [UInt8]) {
        self.body = body
    }

    consuming func finish(
        _ summary: PlaylistSummary, _ variables: [String: String], _ unusable: UnusableURIs
    ) -> Playlist {
        // Lines before `#EXTM3U` are reported after it.
        if areLinesMixed { lines.sort { $0.number < $1.number } }
        giveUpValues(butOf: summary.kind)
        let content: Playlist.Content =
            switch summary.kind {
            case .media:
                .media(
                    MediaPlaylist(
                        segments: segments, parts: parts, preloadHints: hints,
                        renditionReports: reports, keys: keys, maps: maps, dateRanges: dateRanges,
                        dates: dates, serverControl: serverControl, skip: skip))
            case .multivariant:
                .multivariant(
                    MultivariantPlaylist(
                        variants: variants, renditions: renditions, sessionData: sessionData,
                        sessionKeys: sessionKeys, steering: steering))
            }
        return Playlist(
            body, summary, content, definitions: definitions, variables: variables, unusable,
            lines: lines, order: order, others: others)
    }

    /// Turns the values of the other kind of playlist into mere references: those of misplaced
    /// tags, and of lines before the one that told the kind, whose URIs were taken for segments.
    private mutating func giveUpValues(butOf kind: PlaylistKind) {
        let hasOnlyThese =
            switch kind {
            case .media:
                variants.isEmpty && renditions.isEmpty && sessionData.isEmpty
                    && sessionKeys.isEmpty && steering.isEmpty
            case .multivariant:
                segments.isEmpty && parts.isEmpty && hints.isEmpty && reports.isEmpty
                    && keys.isEmpty && maps.isEmpty && dateRanges.isEmpty
            }
        guard !hasOnlyThese else { return }
        let entries = order
        order = []
        order.reserveCapacity(entries.count)
        for entry in entries {
            if let other = entry.kind.playlist, other != kind {
                // Only resources that can be fetched are kept.
                for reference in references(of: entry) { takeOther(reference) }
            } else {
                order.append(entry)
            }
        }
    }

    private func references(of entry: PlaylistEntry) -> [ResourceReference] {
        let index = Int(entry.index)
        if entry.kind == .dateRange { return dateRanges[index].references }
        let reference: ResourceReference? =
            switch entry.kind {
            case .segment: segments[index].reference
            case .part: parts[index].reference
            case .hint: hints[index].reference
            case .report: reports[index].reference
            case .key: keys[index].reference
            case .map: maps[index].reference
            case .variant: variants[index].reference
            case .rendition: renditions[index].reference
            case .sessionData: sessionData[index].reference
            case .sessionKey: sessionKeys[index].reference
            case .steering: steering[index].reference
            case .other: others[index]
            case .dateRange: nil
            }
        return reference.map { [$0] } ?? []
    }

    mutating func takeLine(_ line: PlaylistLine) {
        if let last = lines.last, last.number > line.number { areLinesMixed = true }
        lines.append(line)
    }

    mutating func takeDate(_ date: DateTime?, before mediaSequence: Int) {
        self.date = date
        if let date { dates.append((mediaSequence, date)) }
    }

    mutating func takeDiscontinuity() { discontinuities += 1 }

    mutating func takeSegment(_ segment: consuming MediaPlaylist.Segment) {
        segment.date = date
        segment.discontinuities = discontinuities
        date = nil
        discontinuities = 0
        if segments.isEmpty { reserve(behind: segment) }
        order.append(PlaylistEntry(.segment, segments.count))
        segments.append(segment)
    }

    /// Reserves capacity for the segments that the rest of the text may hold, judged by the size of
    /// the first.
    private mutating func reserve(behind first: MediaPlaylist.Segment) {
        let stride = max(first.source.count, 32)
        let count = min((body.count - first.uri.upperBound) / stride + 2, 20_000)
        segments.reserveCapacity(count)
        order.reserveCapacity(count)
    }

    mutating func takeOther(_ reference: ResourceReference) {
        order.append(PlaylistEntry(.other, others.count))
        others.append(reference)
    }

    mutating func takeVariantURI(line: Int, _ reference: ResourceReference?) {
        guard let index = pendingVariant else {
            if let reference { takeOther(reference) }
            return
        }
        pendingVariant = nil
        variants[index].uriLine = line
        variants[index].reference = reference
        order.append(PlaylistEntry(.variant, index))
    }

    mutating func takeTag(
        _ line: TagLine, _ facts: TagFacts, _ references: [ResourceReference],
        at position: PlaylistPosition
    ) {
        let text = TagText(line, facts.list)
        let reference = references.first
        guard line.name != .define else {
            return definitions.append(VariableDefinition(text: text))
        }
        // Taken whatever the list was taken for so far: a later tag may tell better.
        let isTaken =
            takeMediaTag(line.name, text, facts, references, position)
            || takeMultivariantTag(line.name, text, facts, reference)
        guard isTaken else { return references.forEach { takeOther($0) } }
        if line.name != .dateRange { references.dropFirst().forEach { takeOther($0) } }
    }

    /// Returns false for a tag that does not belong in media playlists.
    private mutating func takeMediaTag(
        _ name: Tag.Name, _ text: TagText, _ facts: TagFacts, _ references: [ResourceReference],
        _ position: PlaylistPosition
    ) -> Bool {
        let reference = references.first
        switch name {
        case .part:
            order.append(PlaylistEntry(.part, parts.count))
            parts.append(
                MediaPlaylist.PartialSegment(
                    text: text, reference: reference, mediaSequence: position.mediaSequence,
                    index: position.partIndex, duration: facts.duration,
                    isGap: reference?.isGap ?? facts.isGap))
        case .preloadHint:
            order.append(PlaylistEntry(.hint, hints.count))
            hints.append(MediaPlaylist.PreloadHint(text: text, reference: reference))
        case .renditionReport:
            order.append(PlaylistEntry(.report, reports.count))
            reports.append(MediaPlaylist.RenditionReport(text: text, reference: reference))
        case .key:
            order.append(PlaylistEntry(.key, keys.count))
            keys.append(EncryptionKey(text: text, reference: reference))
        case .map:
            order.append(PlaylistEntry(.map, maps.count))
            maps.append(MediaPlaylist.InitializationSection(text: text, reference: reference))
        case .dateRange:
            order.append(PlaylistEntry(.dateRange, dateRanges.count))
            dateRanges.append(MediaPlaylist.DateRange(text: text, references: references))
        case .serverControl: serverControl = MediaPlaylist.ServerControl(text: text)
        case .skip: skip = skip ?? MediaPlaylist.Skip(text: text)
        default: return false
        }
        return true
    }

    /// Returns false for a tag that does not belong in multivariant playlists.
    private mutating func takeMultivariantTag(
        _ name: Tag.Name, _ text: TagText, _ facts: TagFacts, _ reference: ResourceReference?
    ) -> Bool {
        switch name {
        case .streamInf:
            // Its URI, not the tag, is entered in the order.
            pendingVariant = variants.count
            variants.append(
                MultivariantPlaylist.Variant(
                    text: text, kind: .stream, bandwidth: facts.bandwidth))
        case .iFrameStreamInf, .imageStreamInf:
            order.append(PlaylistEntry(.variant, variants.count))
            variants.append(
                MultivariantPlaylist.Variant(
                    text: text, kind: name == .iFrameStreamInf ? .iFrames : .images,
                    bandwidth: facts.bandwidth, reference: reference, uriLine: text.line))
        case .media:
            order.append(PlaylistEntry(.rendition, renditions.count))
            renditions.append(MultivariantPlaylist.Rendition(text: text, reference: reference))
        case .sessionData:
            order.append(PlaylistEntry(.sessionData, sessionData.count))
            sessionData.append(MultivariantPlaylist.SessionData(text: text, reference: reference))
        case .sessionKey:
            order.append(PlaylistEntry(.sessionKey, sessionKeys.count))
            sessionKeys.append(EncryptionKey(text: text, reference: reference))
        case .contentSteering:
            order.append(PlaylistEntry(.steering, steering.count))
            steering.append(MultivariantPlaylist.ContentSteering(text: text, reference: reference))
        default: return false
        }
        return true
    }
}

// A collector writes no text.
extension PlaylistCollector {
    var writtenCount: Int { 0 }
    func copy(_ range: Range<Int>) {}
    func write(_ append: (inout [UInt8]) -> Void) {}
    func appendMapped(
        _ reference: ResourceReference, _ map: PlaylistRewriter.ReferenceMap
    ) -> Bool { false }
    func remove(_ range: Range<Int>) {}
    func takeBack(to count: Int) {}
}
