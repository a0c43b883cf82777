import Numbers
import URISyntax

/// Rules about EXT-X-MEDIA and the groups of renditions (8216bis, 4.4.6.1).
enum RenditionRules {
    static let table = [
        PlaylistRule("subtitles-uri", "4.4.6.1", checkSubtitles),
        PlaylistRule("captions-uri", "4.4.6.1", checkCaptions),
        PlaylistRule("instream-id", "4.4.6.1", checkInstreamID),
        PlaylistRule("forced", "4.4.6.1", checkForced),
        PlaylistRule("default-autoselect", "4.4.6.1", checkAutoselect),
        PlaylistRule("rendition-name", "4.4.6.1.1", checkNames),
        PlaylistRule("default-twice", "4.4.6.1.1", checkDefaults),
        PlaylistRule("audio-channels", "4.4.6.1", .should, checkChannels),
    ]

    private static func renditions(
        _ view: PlaylistView, _ type: String
    ) -> [PlaylistView.TagUse] {
        view.uses(of: .media).filter { $0.attributes.isValue(type, of: "TYPE") }
    }

    private static func checkSubtitles(_ view: PlaylistView, _ findings: inout Findings) {
        for use in renditions(view, "SUBTITLES") where !use.attributes.has("URI") {
            findings.add(use.line, .media, "subtitles have no URI")
        }
    }

    private static func checkCaptions(_ view: PlaylistView, _ findings: inout Findings) {
        for use in renditions(view, "CLOSED-CAPTIONS") where use.attributes.has("URI") {
            findings.add(use.line, .media, "closed captions have a URI")
        }
    }

    private static func checkInstreamID(_ view: PlaylistView, _ findings: inout Findings) {
        for use in renditions(view, "CLOSED-CAPTIONS") {
            guard let id = use.attributes.text(of: "INSTREAM-ID") else {
                findings.add(use.line, .media, "closed captions have no INSTREAM-ID")
                continue
            }
            if !isInstreamID(id), !id.contains("{$") {
                findings.add(use.line, .media, "INSTREAM-ID '\(id)' is none of CC1 to SERVICE63")
            }
        }
    }

    private static func isInstreamID(_ id: String) -> Bool {
        if ["CC1", "CC2", "CC3", "CC4"].contains(id) { return true }
        return id.hasPrefix("SERVICE") && ExternalNumber.integer(id.dropFirst(7), in: 1...63) != nil
    }

    private static func checkForced(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .media)
        where use.attributes.has("FORCED")
            && !use.attributes.isValue("SUBTITLES", of: "TYPE")
        {
            findings.add(use.line, .media, "FORCED stands with what is no subtitles")
        }
    }

    private static func checkAutoselect(_ view: PlaylistView, _ findings: inout Findings) {
        for use in view.uses(of: .media)
        where use.attributes.isYes("DEFAULT") && use.attributes.isValue("NO", of: "AUTOSELECT") {
            findings.add(use.line, .media, "DEFAULT is YES and AUTOSELECT is NO")
        }
    }

    private static func group(_ use: PlaylistView.TagUse) -> [String] {
        ["TYPE", "GROUP-ID"].map { use.attributes.text(of: $0) ?? "" }
    }

    private static func checkNames(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<[String]> = []
        for use in view.uses(of: .media) {
            guard let name = use.attributes.text(of: "NAME") else { continue }
            if !seen.insert(group(use) + [name]).inserted {
                findings.add(use.line, .media, "the group has two renditions named '\(name)'")
            }
        }
    }

    private static func checkDefaults(_ view: PlaylistView, _ findings: inout Findings) {
        var seen: Set<[String]> = []
        for use in view.uses(of: .media) where use.attributes.isYes("DEFAULT") {
            if !seen.insert(group(use)).inserted {
                findings.add(use.line, .media, "the group has two renditions with DEFAULT=YES")
            }
        }
    }

    private static func checkChannels(_ view: PlaylistView, _ findings: inout Findings) {
        for use in renditions(view, "AUDIO") where !use.attributes.has("CHANNELS") {
            findings.add(use.line, .media, "audio has no CHANNELS")
        }
    }
}
