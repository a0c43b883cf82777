import CommandSupport
import HLS
import URISyntax

/// The JSON of `sluice inspect`.
struct InspectJSON {
    /// Formats a URL.
    let shown: (AbsoluteURL) -> String
    /// True if each segment is listed.
    let listsSegments: Bool

    private struct Node: Encodable {
        var url: String
        var role: String?
        var attributes: [String: String]?
        var error: String?
        var playlist: Playlist?
        var children: [Node]?
    }

    private struct Playlist: Encodable {
        var kind: String
        var version: Int
        var type: String?
        var targetSeconds: Double?
        var partTargetSeconds: Double?
        var mediaSequence: Int?
        var segments: Int?
        var segmentList: [Segment]?
        var skipped: Int?
        var gaps: Int?
        var totalSeconds: Double?
        var shortestSeconds: Double?
        var longestSeconds: Double?
        var features: [String]
        var encryption: [[String: String]]
        var entries: [Entry]?
        var unknownTags: [UnknownTag]
        var refusal: String?
        var violations: [Fault]
    }

    private struct Entry: Encodable {
        var kind: String
        var line: Int
        var attributes: [String: String]
        var url: String?
    }

    private struct Segment: Encodable {
        var sequence: Int
        var seconds: Double?
        var discontinuity: Int
        var isGap: Bool
        var url: String
        var offset: Int?
        var length: Int?
        var key: String?
        var initialization: String?
    }

    private struct UnknownTag: Encodable {
        var name: String
        var line: Int
        var count: Int
    }

    private struct Fault: Encodable {
        var line: Int
        var tag: String
        var rule: String
        var section: String
        var level: String
        var message: String
    }

    /// Returns the tree as one object.
    func text(_ root: InspectNode) throws -> String { try prettyJSON(node(root)) }

    private func node(_ node: InspectNode) -> Node {
        var made = Node(url: shown(node.url), role: node.entry?.kind.rawValue)
        made.attributes = node.entry.map(Self.attributes)
        switch node.result {
        case .failure(let failure): made.error = failure.text
        case .success(let outline): made.playlist = playlist(outline)
        }
        if !node.children.isEmpty { made.children = node.children.map { self.node($0) } }
        return made
    }

    private static func attributes(_ entry: PlaylistOutline.Entry) -> [String: String] {
        Dictionary(
            entry.attributes.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    private func playlist(_ outline: PlaylistOutline) -> Playlist {
        let summary = outline.summary
        var made = Playlist(
            kind: summary.kind.rawValue, version: summary.version, features: outline.features,
            encryption: outline.encryption.map {
                ["method": $0.method, "keyFormat": $0.keyFormat]
            },
            unknownTags: outline.unknownTags.map {
                UnknownTag(name: $0.name, line: $0.line, count: $0.count)
            },
            refusal: outline.refusal?.reason, violations: outline.violations.map(Self.fault))
        guard summary.kind == .media else {
            made.entries = outline.entries.map {
                Entry(
                    kind: $0.kind.rawValue, line: $0.line, attributes: Self.attributes($0),
                    url: $0.url.map(shown))
            }
            return made
        }
        made.type = InspectReport.liveness(summary)
        made.targetSeconds = summary.targetDuration.map(Self.seconds)
        made.partTargetSeconds = summary.partTarget.map(Self.seconds)
        made.mediaSequence = summary.mediaSequence
        made.segments = summary.segmentCount
        if listsSegments { made.segmentList = outline.segments.map(segment) }
        made.skipped = summary.skippedSegmentCount
        made.gaps = summary.gapCount
        made.totalSeconds = Self.seconds(summary.totalDuration)
        made.shortestSeconds = outline.segmentDurations.map { Self.seconds($0.lowerBound) }
        made.longestSeconds = outline.segmentDurations.map { Self.seconds($0.upperBound) }
        return made
    }

    private func segment(_ reference: ResourceReference) -> Segment {
        Segment(
            sequence: reference.mediaSequence, seconds: reference.duration.map(Self.seconds),
            discontinuity: reference.discontinuitySequence, isGap: reference.isGap,
            url: shown(reference.url), offset: reference.byteRange?.offset,
            length: reference.byteRange?.length, key: reference.keyURL.map(shown),
            initialization: reference.mapURL.map(shown))
    }

    private static func fault(_ violation: Violation) -> Fault {
        Fault(
            line: violation.line, tag: violation.tag, rule: violation.rule,
            section: violation.section, level: violation.level.rawValue,
            message: violation.message)
    }

    private static func seconds(_ duration: Duration) -> Double {
        let parts = duration.components
        return Double(parts.seconds) + Double(parts.attoseconds) / 1e18
    }
}
