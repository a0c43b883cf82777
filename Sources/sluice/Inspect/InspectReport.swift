import CommandSupport
import HLS
import Numbers
import URISyntax

/// The text of `sluice inspect`: a tree shown by indentation.
struct InspectReport {
    /// Formats a URL.
    let shown: (AbsoluteURL) -> String
    /// True if each segment has a line.
    let listsSegments: Bool
    private(set) var lines: [String] = []

    mutating func add(_ node: InspectNode, depth: Int = 0) {
        let name = node.entry.map(Self.title) ?? "playlist"
        append(depth, "\(name): \(shown(node.url))")
        switch node.result {
        case .failure(let failure):
            append(depth + 1, "not read: \(failure.text)")
        case .success(let outline):
            add(outline, depth: depth + 1)
        }
        for child in node.children { add(child, depth: depth + 1) }
    }

    private mutating func add(_ outline: PlaylistOutline, depth: Int) {
        append(depth, Self.facts(outline))
        if !outline.features.isEmpty {
            append(depth, "has: \(outline.features.joined(separator: ", "))")
        }
        for key in outline.encryption {
            append(depth, "encryption: \(key.method), \(key.keyFormat)")
        }
        for entry in outline.entries where entry.url == nil || !entry.kind.isPlaylist {
            let url = entry.url.map { " " + shown($0) } ?? ""
            append(depth, "\(Self.title(entry))\(url)")
        }
        for tag in outline.unknownTags {
            append(depth, "unknown tag: \(tag.name), line \(tag.line), \(tag.count) times")
        }
        if let refusal = outline.refusal {
            append(depth, "refused by the proxy: \(refusal.reason)")
        }
        for violation in outline.violations { append(depth, "violation: \(violation)") }
        if listsSegments {
            for segment in outline.segments { append(depth, segmentLine(segment)) }
        }
    }

    private func segmentLine(_ segment: ResourceReference) -> String {
        var parts = ["segment \(segment.mediaSequence):"]
        if let duration = segment.duration { parts.append("\(Self.seconds(duration)),") }
        if segment.discontinuitySequence > 0 {
            parts.append("discontinuity \(segment.discontinuitySequence),")
        }
        if segment.isGap { parts.append("gap,") }
        if segment.keyURL != nil { parts.append("encrypted,") }
        if let range = segment.byteRange {
            parts.append("bytes \(range.offset) to \(range.end - 1) of")
        }
        return (parts + [shown(segment.url)]).joined(separator: " ")
    }

    private mutating func append(_ depth: Int, _ text: String) {
        // Nearly all of it is text of the playlist.
        lines.append(String(repeating: "  ", count: depth) + PrintableText.oneLine(text))
    }

    /// Returns the kind, size and durations of a playlist.
    private static func facts(_ outline: PlaylistOutline) -> String {
        let summary = outline.summary
        guard summary.kind == .media else {
            let renditions = outline.entries.count { $0.kind == .rendition }
            return "multivariant, version \(summary.version), \(summary.variantCount) variants, "
                + "\(renditions) renditions"
        }
        var parts = ["media", "version \(summary.version)", liveness(summary)]
        parts.append(
            "\(summary.segmentCount) segments from sequence number \(summary.mediaSequence)")
        if summary.skippedSegmentCount > 0 {
            parts.append("\(summary.skippedSegmentCount) skipped")
        }
        if summary.gapCount > 0 { parts.append("\(summary.gapCount) gaps") }
        parts.append("\(seconds(summary.totalDuration)) in all")
        if let range = outline.segmentDurations {
            parts.append("\(seconds(range.lowerBound)) to \(seconds(range.upperBound)) each")
        }
        if let target = summary.targetDuration { parts.append("target \(seconds(target))") }
        if let target = summary.partTarget { parts.append("parts of \(seconds(target))") }
        return parts.joined(separator: ", ")
    }

    static func liveness(_ summary: PlaylistSummary) -> String {
        switch (summary.hasEndList, summary.playlistType) {
        case (true, _): "VOD"
        case (false, .event): "live (EVENT)"
        case (false, _): "live"
        }
    }

    /// Formats seconds with milliseconds.
    static func seconds(_ duration: Duration) -> String {
        let parts = duration.components
        let milliseconds = abs(parts.attoseconds / 1_000_000_000_000_000)
        return "\(parts.seconds).\(String(milliseconds, width: 3)) s"
    }

    /// Returns how a playlist refers to another: its kind and distinguishing attributes.
    static func title(_ entry: PlaylistOutline.Entry) -> String {
        var parts: [String] = []
        for name in ["TYPE", "GROUP-ID", "NAME", "LANGUAGE", "DATA-ID", "METHOD", "KEYFORMAT"] {
            if let value = entry.attribute(name) { parts.append(value) }
        }
        if let bandwidth = entry.attribute("BANDWIDTH") { parts.append("\(bandwidth) bit/s") }
        for name in ["RESOLUTION", "FRAME-RATE", "CODECS", "VIDEO-RANGE", "PATHWAY-ID"] {
            if let value = entry.attribute(name) { parts.append(value) }
        }
        for name in ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"] {
            if let value = entry.attribute(name) { parts.append("\(name.lowercased()) \(value)") }
        }
        return parts.isEmpty
            ? entry.kind.rawValue : "\(entry.kind.rawValue) (\(parts.joined(separator: ", ")))"
    }
}
