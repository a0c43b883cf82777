import URISyntax

/// Rules about parts, delta updates and server control (8216bis, 4.4.3.7 to 4.4.5.4).
enum LowLatencyRules {
    static let table = [
        PlaylistRule("part-inf-missing", "4.4.3.7", checkPartInf),
        PlaylistRule("part-too-long", "4.4.4.9", checkPartDurations),
        PlaylistRule("part-byte-range", "4.4.4.9", checkPartRanges),
        PlaylistRule("part-hold-back", "4.4.3.8", checkPartHoldBack),
        PlaylistRule("part-hold-back-short", "4.4.3.8", .should, checkPartHoldBackShort),
        PlaylistRule("hold-back", "4.4.3.8", checkHoldBack),
        PlaylistRule("can-skip-until", "4.4.3.8", checkSkipUntil),
        PlaylistRule("can-skip-dateranges", "4.4.3.8", checkSkipDateRanges),
        PlaylistRule("skip-control-missing", "4.4.5.2", checkSkip),
        PlaylistRule("preload-hint-twice", "4.4.5.3", checkHints),
    ]

    private static func control(_ view: PlaylistView) -> MediaPlaylist.ServerControl? {
        view.media?.serverControl
    }

    private static func checkPartInf(_ view: PlaylistView, _ findings: inout Findings) {
        guard let part = view.first(.part), !view.contains(.partInf) else { return }
        findings.add(part.line, .part, "stands in a playlist without EXT-X-PART-INF")
    }

    private static func checkPartDurations(_ view: PlaylistView, _ findings: inout Findings) {
        guard let target = view.summary.partTarget else { return }
        for part in view.media?.parts ?? [] {
            if let duration = part.duration, duration > target {
                findings.add(part.line, .part, "\(duration) are more than the target, \(target)")
            }
        }
    }

    private static func checkPartRanges(_ view: PlaylistView, _ findings: inout Findings) {
        var last: ArraySlice<UInt8>?
        for use in view.media?.parts ?? [] {
            let uri = use.attributes.bytes(of: "URI")
            guard let text = use.attributes.bytes(of: "BYTERANGE") else {
                last = nil
                continue
            }
            if let range = WrittenSubRange(text) {
                if range.offset == nil, last == nil || last != uri {
                    findings.add(use.line, .part, "BYTERANGE has no offset, continues nothing")
                }
            } else {
                findings.add(use.line, .part, "BYTERANGE is not <n>[@<o>]")
            }
            last = uri
        }
    }

    private static func checkPartHoldBack(_ view: PlaylistView, _ findings: inout Findings) {
        guard let target = view.summary.partTarget else { return }
        let use = control(view)
        guard let holdBack = use?.partHoldBack else {
            let line = use?.line ?? view.first(.partInf)?.line ?? view.lastLine
            return findings.add(
                line, .serverControl, "has no PART-HOLD-BACK though there are parts")
        }
        if holdBack < target * 2 {
            findings.add(
                use?.line ?? 1, .serverControl, "PART-HOLD-BACK is less than two part targets")
        }
    }

    private static func checkPartHoldBackShort(_ view: PlaylistView, _ findings: inout Findings) {
        guard let target = view.summary.partTarget, let use = control(view),
            let holdBack = use.partHoldBack, holdBack >= target * 2,
            holdBack < target * 3
        else { return }
        findings.add(use.line, .serverControl, "PART-HOLD-BACK is less than three part targets")
    }

    private static func checkHoldBack(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = control(view), let holdBack = use.holdBack,
            let target = view.summary.targetDuration, holdBack < target * 3
        else { return }
        findings.add(use.line, .serverControl, "HOLD-BACK is less than three target durations")
    }

    private static func checkSkipUntil(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = control(view), let until = use.canSkipUntil,
            let target = view.summary.targetDuration, until < target * 6
        else { return }
        findings.add(use.line, .serverControl, "CAN-SKIP-UNTIL is less than six target durations")
    }

    private static func checkSkipDateRanges(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = control(view), use.attributes.has("CAN-SKIP-DATERANGES"),
            !use.attributes.has("CAN-SKIP-UNTIL")
        else { return }
        findings.add(use.line, .serverControl, "has CAN-SKIP-DATERANGES without CAN-SKIP-UNTIL")
    }

    private static func checkSkip(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = view.first(.skip),
            control(view)?.attributes.has("CAN-SKIP-UNTIL") != true
        else { return }
        findings.add(use.line, .skip, "stands in a playlist without CAN-SKIP-UNTIL")
    }

    private static func checkHints(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<String> = []
        for use in view.media?.preloadHints ?? [] {
            guard let type = use.type, !seen.insert(type).inserted else {
                continue
            }
            findings.add(use.line, .preloadHint, "is the second one of TYPE \(type)")
        }
    }
}
