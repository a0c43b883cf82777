import URISyntax

/// The sink that builds a `Playlist`.
struct PlaylistCollector: PlaylistSink {
    static let writesText = false
    static let takesValues = true

    private let body: [UInt8]
    private var media = MediaPlaylist()
    private var multivariant = MultivariantPlaylist()
    private var definitions: [AttributeList] = []
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
        return Playlist(
            source: body, summary: summary, media: summary.kind == .media ? media : nil,
            multivariant: summary.kind == .multivariant ? multivariant : nil,
            definitions: definitions, definedVariables: variables, unusable: unusable,
            lines: lines, order: order, others: others)
    }

    /// Turns the values of the other kind of playlist into mere references: those of misplaced
    /// tags, and of lines before the one that told the kind, whose URIs were taken for segments.
    private mutating func giveUpValues(butOf kind: PlaylistKind) {
        // Media playlists, which may be long, hardly ever have such values.
        guard kind == .multivariant || !multivariant.isEmpty else { return }
        let entries = order
        order = []
        order.reserveCapacity(entries.count)
        for entry in entries {
            guard let other = entry.kind.playlist, other != kind else {
                order.append(entry)
                continue
            }
            // Only resources that can be fetched are kept.
            if entry.kind == .dateRange {
                for reference in media.dateRanges[Int(entry.index)].references {
                    takeOther(reference)
                }
            } else if let reference = entry.reference(media, multivariant, others) {
                takeOther(reference)
            }
        }
    }

    mutating func takeLine(_ line: PlaylistLine) {
        if let last = lines.last, last.number > line.number { areLinesMixed = true }
        lines.append(line)
    }

    mutating func takeDate(_ date: DateTime?, before mediaSequence: Int) {
        self.date = date
        if let date { media.dates.append((mediaSequence, date)) }
    }

    mutating func takeDiscontinuity() { discontinuities += 1 }

    mutating func takeSegment(_ segment: consuming MediaPlaylist.Segment) {
        segment.date = date
        segment.discontinuities = discontinuities
        date = nil
        discontinuities = 0
        if media.segments.isEmpty { reserve(behind: segment) }
        order.append(PlaylistEntry(.segment, media.segments.count))
        media.segments.append(segment)
    }

    /// Reserves capacity for the segments that the rest of the text may hold, judged by the size of
    /// the first.
    private mutating func reserve(behind first: MediaPlaylist.Segment) {
        let stride = max(first.source.count, 32)
        let count = min((body.count - first.uri.upperBound) / stride + 2, 20_000)
        media.segments.reserveCapacity(count)
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
        multivariant.variants[index].uriLine = line
        multivariant.variants[index].reference = reference
        order.append(PlaylistEntry(.variant, index))
    }

    mutating func takeTag(
        _ line: TagLine, _ facts: TagFacts, _ references: [ResourceReference],
        at position: PlaylistPosition
    ) {
        let text = TagText(line, facts.list)
        let reference = references.first
        var further = references.dropFirst()
        // Taken whatever the list was taken for so far: a later tag may tell better.
        switch line.name {
        case .define: definitions.append(facts.list)
        case .part:
            order.append(PlaylistEntry(.part, media.parts.count))
            media.parts.append(
                MediaPlaylist.PartialSegment(
                    text: text, reference: reference, mediaSequence: position.mediaSequence,
                    index: position.partIndex, duration: facts.duration,
                    isGap: reference?.isGap ?? facts.isGap))
        case .preloadHint:
            order.append(PlaylistEntry(.hint, media.preloadHints.count))
            media.preloadHints.append(
                MediaPlaylist.PreloadHint(text: text, reference: reference))
        case .renditionReport:
            order.append(PlaylistEntry(.report, media.renditionReports.count))
            media.renditionReports.append(
                MediaPlaylist.RenditionReport(text: text, reference: reference))
        case .key:
            order.append(PlaylistEntry(.key, media.keys.count))
            media.keys.append(EncryptionKey(text: text, reference: reference))
        case .map:
            order.append(PlaylistEntry(.map, media.maps.count))
            media.maps.append(
                MediaPlaylist.InitializationSection(text: text, reference: reference))
        case .dateRange:
            order.append(PlaylistEntry(.dateRange, media.dateRanges.count))
            media.dateRanges.append(MediaPlaylist.DateRange(text: text, references: references))
            further = []
        case .serverControl: media.serverControl = MediaPlaylist.ServerControl(text: text)
        case .skip: media.skip = media.skip ?? MediaPlaylist.Skip(text: text)
        case .streamInf:
            // Its URI, not the tag, is entered in the order.
            pendingVariant = multivariant.variants.count
            multivariant.variants.append(
                MultivariantPlaylist.Variant(
                    text: text, kind: .stream, bandwidth: facts.bandwidth))
        case .iFrameStreamInf, .imageStreamInf:
            order.append(PlaylistEntry(.variant, multivariant.variants.count))
            multivariant.variants.append(
                MultivariantPlaylist.Variant(
                    text: text, kind: line.name == .iFrameStreamInf ? .iFrames : .images,
                    bandwidth: facts.bandwidth, reference: reference, uriLine: text.line))
        case .media:
            order.append(PlaylistEntry(.rendition, multivariant.renditions.count))
            multivariant.renditions.append(
                MultivariantPlaylist.Rendition(text: text, reference: reference))
        case .sessionData:
            order.append(PlaylistEntry(.sessionData, multivariant.sessionData.count))
            multivariant.sessionData.append(
                MultivariantPlaylist.SessionData(text: text, reference: reference))
        case .sessionKey:
            order.append(PlaylistEntry(.sessionKey, multivariant.sessionKeys.count))
            multivariant.sessionKeys.append(EncryptionKey(text: text, reference: reference))
        case .contentSteering:
            order.append(PlaylistEntry(.steering, multivariant.steering.count))
            multivariant.steering.append(
                MultivariantPlaylist.ContentSteering(text: text, reference: reference))
        default: further = references[...]
        }
        for reference in further { takeOther(reference) }
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
