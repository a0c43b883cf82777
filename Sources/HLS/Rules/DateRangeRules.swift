import URISyntax

/// Rules about EXT-X-DATERANGE and interstitials (8216bis, 4.4.5.1 and D.2).
enum DateRangeRules {
    static let table = [
        PlaylistRule("date-range-without-date-time", "4.4.5.1", checkProgramDateTime),
        PlaylistRule("date-range-start", "4.4.5.1", checkStart),
        PlaylistRule("date-range-date", "4.4.5.1", checkDates),
        PlaylistRule("date-range-end", "4.4.5.1", checkEnd),
        PlaylistRule("date-range-duration", "4.4.5.1", checkDuration),
        PlaylistRule("date-range-end-on-next", "4.4.5.1", checkEndOnNext),
        PlaylistRule("date-range-conflict", "4.4.5.1", checkConflicts),
        PlaylistRule("interstitial-assets", "D.2", checkAssets),
    ]

    private static func ranges(_ view: PlaylistView) -> [MediaPlaylist.DateRange] {
        view.media?.dateRanges ?? []
    }

    /// Returns the first tag of each ID; later tags of the same ID may omit attributes.
    private static func firsts(_ view: PlaylistView) -> [MediaPlaylist.DateRange] {
        var seen: Set<String> = []
        return ranges(view).filter { seen.insert($0.id ?? "").inserted }
    }

    private static func checkProgramDateTime(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = view.first(.dateRange), !view.contains(.programDateTime),
            !view.contains(.skip)
        else { return }
        findings.add(use.line, .dateRange, "stands in a playlist without a program date-time")
    }

    private static func checkStart(_ view: PlaylistView, _ findings: inout Findings) {
        for use in firsts(view) where !use.attributes.has("START-DATE") {
            findings.add(use.line, .dateRange, "has no START-DATE")
        }
    }

    private static func checkDates(_ view: PlaylistView, _ findings: inout Findings) {
        for use in ranges(view) {
            for (name, date) in [("START-DATE", use.start), ("END-DATE", use.end)] {
                guard let attribute = use.attributes.first(name),
                    !attribute.hasVariable(in: view.bytes), date == nil
                else { continue }
                findings.add(use.line, .dateRange, "\(name) is no date with time")
            }
        }
    }

    private static func checkEnd(_ view: PlaylistView, _ findings: inout Findings) {
        for use in ranges(view) {
            guard let start = use.start, let end = use.end else { continue }
            if end < start { findings.add(use.line, .dateRange, "ends before it starts") }
            if let duration = use.duration, start + duration != end {
                findings.add(use.line, .dateRange, "END-DATE is not START-DATE plus DURATION")
            }
        }
    }

    private static func checkDuration(_ view: PlaylistView, _ findings: inout Findings) {
        for use in ranges(view) {
            let lengths = [("DURATION", use.duration), ("PLANNED-DURATION", use.plannedDuration)]
            for (name, length) in lengths {
                guard let attribute = use.attributes.first(name),
                    !attribute.hasVariable(in: view.bytes), length == nil
                else { continue }
                findings.add(use.line, .dateRange, "\(name) is no duration")
            }
        }
    }

    private static func checkEndOnNext(_ view: PlaylistView, _ findings: inout Findings) {
        for use in ranges(view) where use.endsOnNext {
            let list = use.attributes
            if !list.has("CLASS") {
                findings.add(use.line, .dateRange, "has END-ON-NEXT and no CLASS")
            }
            if list.has("DURATION") || list.has("END-DATE") {
                findings.add(use.line, .dateRange, "has END-ON-NEXT and an end of its own")
            }
        }
    }

    private static func checkConflicts(_ view: PlaylistView, _ findings: inout Findings) {
        var known: [String: [String: String]] = [:]
        for use in ranges(view) {
            guard let id = use.id else { continue }
            for attribute in use.attributes {
                let name = view.text(attribute.name)
                let value = view.text(attribute)
                let before = known[id, default: [:]].updateValue(value, forKey: name)
                if let before, before != value {
                    findings.add(use.line, .dateRange, "'\(id)' had another \(name) before")
                }
            }
        }
    }

    private static func checkAssets(_ view: PlaylistView, _ findings: inout Findings) {
        for use in firsts(view)
        where use.isInterstitial {
            let count = ["X-ASSET-URI", "X-ASSET-LIST"].count {
                use.attributes.has($0)
            }
            if count != 1 {
                let found = count == 0 ? "neither" : "both"
                findings.add(use.line, .dateRange, "has \(found) of X-ASSET-URI and X-ASSET-LIST")
            }
        }
    }
}
