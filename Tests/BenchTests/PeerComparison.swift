// How what two programs did with one plan differs, and by what it is explained.
import ScenarioSupport

/// A difference between the daemon and another cache, or between another cache and RFC 9111.
struct PeerDifference: Hashable, CustomStringConvertible {
    let program: String
    let kind: String
    let step: Int
    var detail = ""

    var description: String { "\(program): \(kind)" }

    static func == (one: Self, other: Self) -> Bool {
        one.program == other.program && one.kind == other.kind
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(program)
        hasher.combine(kind)
    }
}

/// Compares what a program did with what the daemon did.
struct PeerComparison {
    let plan: PeerPlan
    let ours: PeerJudge
    let theirs: PeerJudge

    /// The departures of the other program from RFC 9111, and the first step at which both asked
    /// their origins differently: later ones follow from it.
    func differences(_ program: String) -> [PeerDifference] {
        var found = theirs.faults.map {
            PeerDifference(program: program, kind: $0.kind, step: $0.step, detail: $0.detail)
        }
        let faulty = Set(theirs.faults.map(\.step))
        for step in ours.deeds.keys.sorted() {
            guard let our = ours.deeds[step], let their = theirs.deeds[step] else { break }
            if our == their { continue }
            if faulty.contains(step) { break }
            let direction = Self.direction(our, their)
            // With a request to the origin, a cache is free to validate or to fetch (section 4.3.1).
            let kind = direction == "asks otherwise" ? direction : "\(direction), \(cause(step))"
            found.append(
                PeerDifference(
                    program: program, kind: kind,
                    step: step, detail: "the daemon: \(our.rawValue), \(program): \(their.rawValue)"
                ))
            break
        }
        return found
    }

    private static func direction(_ our: PeerJudge.Deed, _ their: PeerJudge.Deed) -> String {
        let isOurStored = our == .reused || our == .stale
        let isTheirStored = their == .reused || their == .stale
        switch (isOurStored, isTheirStored) {
        case (true, false): return "asks more"
        case (false, true): return "asks less"
        case (true, true): return "reuses otherwise"
        case (false, false): return "asks otherwise"
        }
    }

    /// What of a step and of those before it lets programs differ; the first that applies.
    private func cause(_ step: Int) -> String {
        guard case .ask(let ask) = plan.steps[step] else { return "" }
        var isFailing = false
        var control = plan.resource.control
        var hadUnsafe = false
        var had: Set<String> = []
        for before in plan.steps[..<step] {
            switch before {
            case .fail: isFailing = true
            case .heal: isFailing = false
            case .control(let value, _): control = value
            case .ask(let ask):
                if !ask.isSafe { hadUnsafe = true }
                for field in ask.fields { had.insert(field.name) }
                had.insert(ask.method)
            case .change: break
            }
        }
        if !ask.isSafe { return "unsafe method" }
        if ask.method == "OPTIONS" { return "OPTIONS" }
        if isFailing { return "origin fails" }
        // What a client says of caches comes before what the origin says of them, and that before
        // what may depend on the program.
        for name in ["Cache-Control", "Pragma", "Authorization"] where ask[name] != nil {
            return name
        }
        if ask["Cookie"] != nil || had.contains("Cookie") { return "Cookie" }
        if plan.resource.setsCookie { return "Set-Cookie" }
        if plan.resource.status != 200 { return "status other than 200" }
        if hadUnsafe { return "after an unsafe method" }
        if plan.resource.vary != nil { return "Vary" }
        if let control, control.contains("=\"") {
            return control.contains("=\"3600") ? "quoted number" : "directive with field names"
        }
        if plan.resource.expires != nil { return "Expires" }
        if control == nil { return "no Cache-Control" }
        for name in ["Range", "If-None-Match", "If-Modified-Since"] where ask[name] != nil {
            return name
        }
        if ask.method == "HEAD" { return "HEAD" }
        for name in ["Authorization", "HEAD", "Range", "Cache-Control", "Pragma"]
        where had.contains(name) {
            return "after \(name)"
        }
        return "nothing special"
    }
}
