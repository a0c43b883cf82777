import URISyntax

/// Rules about media playlists and their segments (8216bis, 4.4.3 and 4.4.4).
enum MediaRules {
    static let table = [
        PlaylistRule("target-duration-missing", "4.4.3.1", checkTargetDuration),
        PlaylistRule("segment-too-long", "4.4.3.1", checkSegmentDurations),
        PlaylistRule("sequence-after-segment", "4.4.3.2", checkSequencePlace),
        PlaylistRule("discontinuity-sequence-place", "4.4.3.3", checkDiscontinuityPlace),
        PlaylistRule("segment-without-extinf", "4.4.4.1", checkInfMissing),
        PlaylistRule("extinf-syntax", "4.4.4.1", checkInfSyntax),
        PlaylistRule("tag-without-segment", "4.4.4", .should, checkDangling),
        PlaylistRule("byte-range", "4.4.4.2", checkByteRanges),
        PlaylistRule("map-byte-range", "4.4.4.5", checkMapRange),
        PlaylistRule("program-date-time", "4.4.4.6", checkDates),
        PlaylistRule("start-offset", "4.4.2.2", .should, checkStart),
    ]

    private static func isMedia(_ view: PlaylistView) -> Bool { view.kind == .media }

    private static func checkTargetDuration(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view), !view.contains(.targetDuration) else { return }
        findings.add(view.lastLine, .targetDuration, "is missing")
    }

    private static func checkSegmentDurations(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view), let target = view.summary.targetDuration else { return }
        // Durations are rounded to the nearest second.
        let limit = target + .milliseconds(500)
        for use in view.uses(of: .inf) {
            if let duration = duration(use), duration >= limit {
                findings.add(
                    use.line, .inf, "\(duration) round to more than the target duration, \(target)")
            }
        }
    }

    /// Returns the duration of an EXTINF; nil if malformed.
    static func duration(_ use: PlaylistView.TagUse) -> Duration? {
        DecimalNumber.seconds(use.valueBytes.prefix { $0 != 0x2C })
    }

    private static func checkSequencePlace(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view), let first = view.uris.first?.line else { return }
        for use in view.uses(of: .mediaSequence) where use.line > first {
            findings.add(use.line, .mediaSequence, "comes after a segment")
        }
    }

    private static func checkDiscontinuityPlace(
        _ view: PlaylistView, _ findings: inout Findings
    ) {
        guard isMedia(view) else { return }
        let before = [view.uris.first?.line, view.first(.discontinuity)?.line].compactMap { $0 }
        guard let first = before.min() else { return }
        for use in view.uses(of: .discontinuitySequence) where use.line > first {
            findings.add(
                use.line, .discontinuitySequence, "comes after a segment or a discontinuity")
        }
    }

    private static func checkInfMissing(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view) else { return }
        for segment in view.uris where segment.tag(.inf) == nil {
            findings.add(segment.line, "URI", "has no EXTINF before it")
        }
    }

    private static func checkInfSyntax(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .inf) {
            guard let duration = duration(use) else {
                findings.add(use.line, .inf, "'\(use.text)' has no duration")
                continue
            }
            if duration < .zero { findings.add(use.line, .inf, "the duration is negative") }
            if !use.valueBytes.contains(0x2C) {
                findings.add(use.line, .inf, "has no comma behind the duration")
            }
        }
    }

    private static func checkDangling(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view) else { return }
        let last = view.uris.last?.line ?? 0
        for name in [Tag.Name.inf, .byteRange, .gap] {
            for use in view.uses(of: name) where use.line > last {
                findings.add(use.line, name, "has no segment behind it")
            }
        }
        // Of two EXTINF before one segment the first applies to none.
        for segment in view.uris {
            for use in segment.tags.filter({ $0.name == .inf }).dropLast() {
                findings.add(use.line, .inf, "has no segment behind it")
            }
        }
    }

    private static func checkByteRanges(_ view: PlaylistView, _ findings: inout Findings) {
        var last: ArraySlice<UInt8>?
        for segment in view.uris {
            let uri = view.bytes[segment.uri]
            guard let use = segment.tag(.byteRange) else {
                last = nil
                continue
            }
            if let range = WrittenSubRange(use.valueBytes) {
                if range.offset == nil, last != uri {
                    findings.add(use.line, .byteRange, "has no offset and continues nothing")
                }
            } else {
                findings.add(use.line, .byteRange, "'\(use.text)' is not <n>[@<o>]")
            }
            last = uri
        }
    }

    private static func checkMapRange(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .map) {
            guard let text = use.attributes.bytes(of: "BYTERANGE") else { continue }
            guard let range = WrittenSubRange(text), range.offset != nil else {
                findings.add(use.line, .map, "BYTERANGE is not <n>@<o>")
                continue
            }
        }
    }

    private static func checkDates(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .programDateTime) where DateTime(use.valueBytes) == nil {
            findings.add(use.line, .programDateTime, "'\(use.text)' is no date with time")
        }
    }

    private static func checkStart(_ view: PlaylistView, _ findings: inout Findings) {
        guard isMedia(view), let use = view.first(.start),
            let offset = use.attributes.seconds(of: "TIME-OFFSET")
        else { return }
        let total = view.uses(of: .inf).compactMap(duration).reduce(Duration.zero, +)
        if total > .zero, offset > total || offset < .zero - total {
            findings.add(use.line, .start, "TIME-OFFSET is beyond the \(total) of the playlist")
        }
    }
}
