import FixtureCDN
import Glibc
import ScenarioSupport

/// Runs a plan of the differential test and checks every response against the origin's versions.
final class DifferentialWorld: Sendable {
    let plan: DifferentialPlan
    let origin: ChangingOrigin
    private let daemon: Shared<DaemonProcess>
    private let arguments: [String]
    private let folder: TemporaryFolder
    /// Resources that changed or failed: requests for others must succeed.
    private let unsettled = Shared<Set<Int>>([])
    let checked = Shared(0)

    init(_ plan: DifferentialPlan) throws {
        self.plan = plan
        origin = try ChangingOrigin(seed: plan.seed, plan.traits)
        folder = try TemporaryFolder()
        arguments = [
            "--cache-size", plan.cacheSize, "--min-free", "0", "--mount",
            "/mt/=\(origin.baseURL)/o/",
        ]
        daemon = Shared(try Story.serve(folder.makeFolder("cache"), arguments))
    }

    deinit {
        daemon.value.kill(SIGKILL)
        _ = try? daemon.value.waitForExit()
        origin.stop()
    }

    /// Runs everything up to the first group with a violation.
    func run() throws -> [String] {
        for (number, group) in plan.groups.enumerated() {
            let wrong = try run(group)
            guard wrong.isEmpty else { return wrong.map { "group \(number): \($0)" } }
        }
        return []
    }

    private func run(_ group: [DifferentialPlan.Timed]) throws -> [String] {
        _ = origin.takeLog()
        for timed in group {
            switch timed.action {
            case .change(let subject), .fail(let subject, _):
                unsettled.update { _ = $0.insert(subject) }
            default: break
            }
        }
        let verdicts = try inParallel(group.count, within: .seconds(60)) { [self] index in
            usleep(UInt32(group[index].at) * 1000)
            return try perform(group[index].action)
        }
        var wrong = verdicts.compactMap { $0 }
        for subject in plan.traits.indices { origin.heal(subject) }
        if !daemon.value.isRunning { wrong.append("the daemon ended") }
        guard !wrong.isEmpty else { return [] }
        return wrong + origin.takeLog().map { "  origin: \($0)" }
    }

    private func perform(_ action: DifferentialAction) throws -> String? {
        switch action {
        case .change(let subject): origin.change(subject)
        case .fail(let subject, let faults): origin.fail(subject, faults)
        case .purge(let subject):
            let url = origin.baseURL + origin.path(subject)
            _ = try player().get("/api/purge?url=\(percentEncoded(url))", method: "POST")
        case .clear: _ = try player().get("/api/clear", method: "POST")
        case .restart(let isKill): try restart(isKill)
        case .ask(let ask):
            checked.update { $0 += 1 }
            guard let complaint = try judge(ask) else { return nil }
            return "\(action): \(complaint)"
        }
        return nil
    }

    private func restart(_ isKill: Bool) throws {
        daemon.value.kill(isKill ? SIGKILL : SIGTERM)
        _ = try daemon.value.waitForExit(within: .seconds(20))
        let next = try Story.serve(folder.file("cache"), arguments)
        daemon.update { $0 = next }
    }

    private func player() -> ScriptedPlayer {
        ScriptedPlayer(daemon.value.baseURL, deadline: .seconds(20))
    }

    private func isUnsettled(_ subject: Int) -> Bool { unsettled.value.contains(subject) }

    // MARK: Asking

    private func judge(_ ask: DifferentialAsk) throws -> String? {
        let path = origin.path(ask.subject)
        let url = ask.isMounted ? "/mt/" + path.dropFirst(3) : "/" + origin.baseURL + path
        let oldest = origin.version(ask.subject)
        let requestsBefore = origin.requests(ask.subject)
        let answer: PlayerResponse
        do {
            guard ask.leavesAfter == nil else {
                let stream = try player().open(url, headers: fields(of: ask), method: ask.method)
                _ = try stream.read(ask.leavesAfter ?? 0)
                stream.close()
                return nil
            }
            answer = try player().get(url, headers: fields(of: ask), method: ask.method)
        } catch {
            return "no answer: \((error as? ScenarioFailure)?.message ?? "\(error)")"
        }
        if !isUnsettled(ask.subject),
            origin.requests(ask.subject) - requestsBefore > Self.mostRequests
        {
            return "\(origin.requests(ask.subject) - requestsBefore) requests to the origin"
        }
        let verdict = DifferentialVerdict(
            ask: ask, answer: answer, traits: plan.traits[ask.subject],
            bodies: (0...origin.version(ask.subject)).map { origin.body(ask.subject, $0) },
            oldest: oldest, isSteady: !isUnsettled(ask.subject),
            tags: (0...2).map { origin.validators(ask.subject, $0) })
        return verdict.complaint
    }

    /// More than the requests of one group could cause if each were sent twice.
    private static let mostRequests = 20

    private func fields(of ask: DifferentialAsk) -> [WireHead.Field] {
        var fields: [WireHead.Field] = []
        if let range = ask.range { fields.append(("Range", range)) }
        switch ask.condition {
        case .none: break
        case .unlessTag(let version):
            let tag = origin.validators(ask.subject, version).tag ?? "\"other\""
            fields.append(("If-None-Match", tag))
        case .unlessSince(let version):
            if let date = origin.validators(ask.subject, version).date {
                fields.append(("If-Modified-Since", date))
            }
        case .range(let version):
            let known = origin.validators(ask.subject, version)
            if let strongest = known.tag ?? known.date { fields.append(("If-Range", strongest)) }
        }
        return fields
    }
}
