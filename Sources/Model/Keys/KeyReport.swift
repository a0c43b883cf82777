import CachePolicy
import Synchronization

/// The key rules as JSON: the settings of each origin, the findings and the vetoes.
extension KeyTable {
    /// The JSON that `sluice keys` prints.
    ///
    /// `findings` lists query parameters by origin with their evidence and state: `gathering`,
    /// `proposed`, `applied` (proposed, in mode `auto`) or `vetoed`. `vetoes` lists the origins
    /// whose URLs are not merged.
    package var report: JSONValue {
        let (settings, findings, vetoes) = state.withLock {
            ($0.settings, $0.evidence.all, $0.vetoes.all)
        }
        return .object([
            .init("mode", .text(settings.mode.rawValue)),
            .init("policy", .text(settings.policy.rawValue)),
            .init("origins", .list(settings.origins.all.map(Self.json))),
            .init("findings", .list(findings.map { Self.json($0, settings) })),
            .init(
                "vetoes",
                .list(
                    vetoes.map { veto in
                        .object([
                            .init("origin", .text(veto.place.origin)),
                            .init("scope", .text(veto.place.scope.rawValue)),
                            .init("reason", .text(veto.reason.rawValue)),
                        ])
                    })),
        ])
    }

    private static func json(_ origin: OriginSettings) -> JSONValue {
        .object([
            .init("pattern", .text(origin.pattern.description)),
            .init("policy", origin.policy.map { .text($0.rawValue) } ?? .null),
            .init("keys", origin.keys.map { .text($0.rawValue) } ?? .null),
            .init("rules", .list(origin.rules.map { .text($0.description) })),
        ])
    }

    private static func json(
        _ found: (origin: String, name: String, finding: KeyEvidence.Finding),
        _ settings: KeySettings
    ) -> JSONValue {
        let mode = settings.origins.mode(of: found.origin) ?? settings.mode
        let isApplied = found.finding.state == .proposed && mode == .auto
        return .object([
            .init("origin", .text(found.origin)), .init("name", .text(found.name)),
            .init("pairs", .number(Int64(found.finding.pairs))),
            .init("paths", .number(Int64(found.finding.paths.count))),
            .init("state", .text(isApplied ? "applied" : found.finding.state.rawValue)),
            .init("rule", .text("drop \(found.name)")),
        ])
    }
}
