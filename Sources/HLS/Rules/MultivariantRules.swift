import URISyntax

/// Rules about variant streams, session data and steering (8216bis, 4.4.6.2 to 4.4.6.6).
enum MultivariantRules {
    static let table = [
        PlaylistRule("variant-without-uri", "4.4.6.2", checkVariantURI),
        PlaylistRule("uri-without-variant", "4.4.6.2", checkLooseURI),
        PlaylistRule("bandwidth", "4.4.6.2", checkBandwidth),
        PlaylistRule("codecs-missing", "4.4.6.2", .should, checkCodecs),
        PlaylistRule("resolution", "4.4.6.2", checkResolution),
        PlaylistRule("group-missing", "4.4.6.2", checkGroups),
        PlaylistRule("captions-none", "4.4.6.2", checkCaptionsNone),
        PlaylistRule("session-data-form", "4.4.6.4", checkSessionData),
        PlaylistRule("session-data-twice", "4.4.6.4", checkSessionDataTwice),
        PlaylistRule("pathway-missing", "4.4.6.6", checkPathway),
    ]

    private static func streams(_ view: PlaylistView) -> [PlaylistView.TagUse] {
        view.uses(of: .streamInf) + view.uses(of: .iFrameStreamInf)
    }

    private static func checkVariantURI(_ view: PlaylistView, _ findings: inout Findings) {
        var waiting: Int?
        for line in view.lines {
            switch line.kind {
            case .uri: waiting = nil
            case .tag(.streamInf, _):
                if let waiting { findings.add(waiting, .streamInf, "has no URI line behind it") }
                waiting = line.number
            default: break
            }
        }
        if let waiting { findings.add(waiting, .streamInf, "has no URI line behind it") }
    }

    private static func checkLooseURI(_ view: PlaylistView, _ findings: inout Findings) {
        guard view.kind == .multivariant else { return }
        for uri in view.uris where uri.tag(.streamInf) == nil {
            findings.add(uri.line, "URI", "has no EXT-X-STREAM-INF before it")
        }
    }

    private static func checkBandwidth(_ view: PlaylistView, _ findings: inout Findings) {
        for use in streams(view) {
            for name in ["BANDWIDTH", "AVERAGE-BANDWIDTH"] {
                guard let attribute = use.attributes.first(name),
                    !attribute.hasVariable(in: view.bytes), use.attributes.integer(of: name) == nil
                else { continue }
                findings.add(use.line, use.name, "\(name) is no decimal integer")
            }
        }
    }

    private static func checkCodecs(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .streamInf) where !use.attributes.has("CODECS") {
            findings.add(use.line, .streamInf, "has no CODECS")
        }
    }

    private static func checkResolution(_ view: PlaylistView, _ findings: inout Findings) {
        for use in streams(view) {
            guard let text = use.attributes.bytes(of: "RESOLUTION"),
                !Variables.mayOccur(in: text)
            else { continue }
            let sides = text.split(separator: 0x78, omittingEmptySubsequences: false)
            if sides.count != 2 || sides.contains(where: { DecimalNumber.integer($0) == nil }) {
                findings.add(use.line, use.name, "RESOLUTION is not <width>x<height>")
            }
        }
    }

    /// Returns the groups that the renditions form, by type.
    private static func groups(_ view: PlaylistView) -> [String: Set<String>] {
        var groups: [String: Set<String>] = [:]
        for use in view.uses(of: .media) {
            guard let type = use.attributes.text(of: "TYPE"),
                let id = use.attributes.text(of: "GROUP-ID")
            else { continue }
            groups[type, default: []].insert(id)
        }
        return groups
    }

    private static func checkGroups(_ view: PlaylistView, _ findings: inout Findings) {
        let groups = groups(view)
        for use in streams(view) {
            for type in ["AUDIO", "VIDEO", "SUBTITLES", "CLOSED-CAPTIONS"] {
                guard let attribute = use.attributes.first(type) else { continue }
                let id = view.text(attribute)
                if type == "CLOSED-CAPTIONS", id == "NONE", !attribute.isQuoted { continue }
                if !(groups[type]?.contains(id) ?? false) {
                    findings.add(
                        use.line, use.name, "\(type) names the group '\(id)', which is not there")
                }
            }
        }
    }

    private static func checkCaptionsNone(_ view: PlaylistView, _ findings: inout Findings) {
        func isNone(_ use: PlaylistView.TagUse) -> Bool {
            guard let attribute = use.attributes.first("CLOSED-CAPTIONS") else { return false }
            return !attribute.isQuoted && view.text(attribute) == "NONE"
        }
        let variants = view.uses(of: .streamInf)
        guard variants.contains(where: isNone) else { return }
        for use in variants where !isNone(use) {
            findings.add(use.line, .streamInf, "CLOSED-CAPTIONS is not NONE as it is elsewhere")
        }
    }

    private static func checkSessionData(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .sessionData) {
            let count = ["VALUE", "URI"].count { use.attributes.has($0) }
            if count != 1 {
                let found = count == 0 ? "neither" : "both"
                findings.add(use.line, .sessionData, "has \(found) of VALUE and URI")
            }
        }
    }

    private static func checkSessionDataTwice(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<[String]> = []
        for use in view.uses(of: .sessionData) {
            let key = ["DATA-ID", "LANGUAGE"].map { use.attributes.text(of: $0) ?? "" }
            if !seen.insert(key).inserted {
                findings.add(use.line, .sessionData, "repeats a DATA-ID in the same language")
            }
        }
    }

    private static func checkPathway(_ view: PlaylistView, _ findings: inout Findings) {
        guard let use = view.first(.contentSteering),
            let id = use.attributes.text(of: "PATHWAY-ID"), !id.contains("{$")
        else { return }
        // A variant without PATHWAY-ID belongs to the pathway named ".".
        let pathways = view.uses(of: .streamInf).map {
            $0.attributes.text(of: "PATHWAY-ID") ?? "."
        }
        if !pathways.contains(id) {
            findings.add(use.line, .contentSteering, "no variant has the PATHWAY-ID '\(id)'")
        }
    }
}
