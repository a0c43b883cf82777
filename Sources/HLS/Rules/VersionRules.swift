import URISyntax

/// The EXT-X-VERSION that the features of a playlist require (8216bis, 8).
enum VersionRules {
    static let table = [PlaylistRule("version", "8", check)]

    private struct Feature: Sendable {
        let version: Int
        let name: String
        /// The line of its first use.
        let firstUse: @Sendable (PlaylistView) -> Int?
    }

    private static let features: [Feature] = [
        Feature(version: 2, name: "IV of EXT-X-KEY") { line(of: "IV", .key, $0) },
        Feature(version: 3, name: "a fraction in EXTINF") { view in
            view.uses(of: .inf).first { use in
                use.valueBytes.prefix { $0 != 0x2C }.contains(0x2E)
            }?.line
        },
        Feature(version: 4, name: "EXT-X-BYTERANGE") { $0.first(.byteRange)?.line },
        Feature(version: 4, name: "EXT-X-I-FRAMES-ONLY") { $0.first(.iFramesOnly)?.line },
        Feature(version: 5, name: "KEYFORMAT") { line(of: "KEYFORMAT", .key, $0) },
        Feature(version: 5, name: "KEYFORMATVERSIONS") { line(of: "KEYFORMATVERSIONS", .key, $0) },
        Feature(version: 5, name: "EXT-X-MAP") { $0.first(.map)?.line },
        Feature(version: 6, name: "EXT-X-MAP without EXT-X-I-FRAMES-ONLY") {
            $0.contains(.iFramesOnly) ? nil : $0.first(.map)?.line
        },
        Feature(version: 7, name: "SERVICE values of INSTREAM-ID") { view in
            view.uses(of: .media).first {
                $0.attributes.text(of: "INSTREAM-ID")?.hasPrefix("SERVICE") ?? false
            }?.line
        },
        Feature(version: 8, name: "variables") { $0.first(.define)?.line },
        Feature(version: 9, name: "EXT-X-SKIP") { $0.first(.skip)?.line },
        Feature(version: 10, name: "RECENTLY-REMOVED-DATERANGES") {
            line(of: "RECENTLY-REMOVED-DATERANGES", .skip, $0)
        },
        Feature(version: 11, name: "QUERYPARAM") { line(of: "QUERYPARAM", .define, $0) },
        Feature(version: 12, name: "an attribute whose name starts with REQ-") { view in
            view.tagsWithAttributes.first { use in
                use.attributes.contains { view.bytes[$0.name].starts(with: "REQ-".utf8) }
            }?.line
        },
        Feature(version: 13, name: "INSTREAM-ID without closed captions") { view in
            view.uses(of: .media).first {
                $0.attributes.has("INSTREAM-ID")
                    && !$0.attributes.isValue("CLOSED-CAPTIONS", of: "TYPE")
            }?.line
        },
    ]

    private static func line(
        of attribute: String, _ tag: Tag.Name, _ view: PlaylistView
    ) -> Int? {
        view.uses(of: tag).first { $0.attributes.has(attribute) }?.line
    }

    private static func check(_ view: PlaylistView, _ findings: inout Findings) {
        let version = view.summary.version
        for feature in features where feature.version > version {
            guard let line = feature.firstUse(view) else { continue }
            findings.add(
                line, .version,
                "\(feature.name): version \(feature.version) is needed, the list says \(version)")
        }
    }
}
