// The named parts of a run, so that a failure can be narrowed down by leaving parts out.

/// The parts that a run keeps; a part that its seed does not have is absent in any case.
///
/// | part | what it covers |
/// |---|---|
/// | the name of an `OriginFault` | that kind of fault |
/// | `kills`, `power-cuts`, `restarts`, `reloads`, `outages`, `disk-faults`, `clock-jumps`, `full-disks`, `slow-disks`, `read-only-disks` | faults of the daemon and its machine |
/// | `films`, `live`, `low-latency`, `restless`, `protected` | content of the CDN: all but one film, live streams, regions |
/// | the name of an `AdditionKind` | users of another service of the daemon |
/// | `http2` | players that use HTTP/2 |
/// | `players`, `calm` | the players during the faults, and those after them |
/// | `unopened`, `outlived`, `offline`, `torn`, `second`, `reloaded`, `upgrades`, `policies`, `gone`, or the name of a scene | that phase of the run |
struct Parts {
    /// Nil for all.
    private let kept: Set<String>?

    static let all = Parts(nil)

    init(_ names: [String]?) { kept = names.map { Set($0) } }

    func has(_ name: String) -> Bool { kept?.contains(name) ?? true }

    /// The given count, or 0 if the part is absent.
    func count(_ name: String, _ count: Int) -> Int { has(name) ? count : 0 }
}

extension ScenarioPlan {
    /// The parts that the run has.
    func parts(_ extras: ExtrasPlan) -> [String] {
        let hasWeather = weather.requestFaults + weather.connectionFaults > 0
        var names = hasWeather ? weather.kinds.map(\.rawValue).sorted() : []
        let counted = [
            ("kills", kills), ("power-cuts", powerCuts), ("restarts", restarts),
            ("outages", outages), ("reloads", reloads), ("disk-faults", diskFaults),
            ("clock-jumps", extras.clockJumps),
            ("full-disks", extras.fullDisks), ("slow-disks", extras.slowDisks),
            ("read-only-disks", extras.readOnlyDisks), ("films", films.count - 1), ("live", lives),
            ("low-latency", extras.lowLatency ? 1 : 0), ("restless", extras.restless ? 1 : 0),
            ("protected", extras.isProtected ? 1 : 0), ("players", players), ("http2", http2),
        ]
        names += counted.filter { $0.1 > 0 }.map(\.0) + ["calm"]
        names += additions.map(\.rawValue)
        names += QuietScenes.names(keepsAll: keepsAll)
        names += Scenario.phases(keepsAll: keepsAll).map(\.name)
        return names
    }
}
