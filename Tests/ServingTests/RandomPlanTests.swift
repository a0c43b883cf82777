import CachePolicy
import FuzzSupport
import HTTP
import HLS
@testable import Model
import Posix
@testable import Serving
import Testing

/// Invariants of the plan of every request, for any facts.
@Suite struct RandomPlanTests {
    private func pick<T>(_ choices: inout FuzzedReadings, _ values: [T]) -> T {
        values[choices.choose(values.count)]
    }

    private func truth(_ choices: inout FuzzedReadings) -> Bool { choices.choose(2) == 1 }

    private static let controls = [
        "", "max-age=5", "max-age=600", "no-cache", "must-revalidate, max-age=5",
        "max-age=5, stale-if-error=50", "max-age=5, stale-while-revalidate=200", "private",
        "no-store",
    ]
    private static let requests: [Fields] = [
        Fields(), ["Cache-Control": "only-if-cached"], ["Cache-Control": "no-store"],
        ["Cache-Control": "no-cache"], ["If-Match": "\"v\""],
        ["Cache-Control": "only-if-cached, max-age=3"], ["Cache-Control": "max-stale"],
    ]

    private func stage(_ seed: UInt64) -> PlanStage {
        var choices = FuzzedReadings(seed: seed, count: 96)
        var stage = PlanStage()
        stage.policy = pick(&choices, Policy.allCases)
        stage.kind = pick(&choices, [nil, nil, .gateway, .shared])
        if stage.kind == nil {
            stage.role = pick(&choices, [nil, .playlist, .playlist, .segment, .key, .json])
            stage.isReload = stage.role == .playlist && choices.happens(oneIn: 4)
            stage.isShifted = choices.happens(oneIn: 4)
        } else {
            stage.role = nil
        }
        stage.isPlaylist = stage.role == .playlist || choices.happens(oneIn: 3)
        stage.fields = pick(&choices, Self.requests)
        stage.method = pick(&choices, [.get, .get, .head])
        stage.isStored = !choices.happens(oneIn: 5)
        stage.hasOtherVariants = stage.kind != nil && choices.happens(oneIn: 6)
        stage.isComplete = !choices.happens(oneIn: 3)
        stage.total = stage.isComplete ? 1_000 : pick(&choices, [nil, 1_000])
        stage.head = ["Cache-Control": pick(&choices, Self.controls)]
        if truth(&choices) { stage.head.append(.etag, "\"v\"") }
        stage.age = pick(&choices, [0, 1, 4, 10, 19, 24, 100])
        stage.origin = pick(&choices, [.up, .suspected, .down])
        stage.hasDown = stage.origin == .down || choices.happens(oneIn: 3)
        stage.entry = pick(&choices, [.text, .open, .other])
        stage.belongsToAnotherViewer = choices.happens(oneIn: 4)
        let isLive = truth(&choices)
        stage.text =
            choices.happens(oneIn: 6)
            ? .unreadable
            : .readable(
                PlaylistFacts(
                    isLive: isLive, targetDuration: .seconds(6),
                    hasEnded: !isLive && truth(&choices)),
                isShifted: stage.isShifted && truth(&choices))
        stage.form = pick(&choices, RequestFacts.OfflineOutcome.allCases)
        stage.word = pick(&choices, RequestFacts.OriginConfirmation.allCases)
        stage.mayLack = truth(&choices)
        let hasSuccessor = choices.happens(oneIn: 3)
        stage.name = RequestFacts.Name(
            hasSuccessor: hasSuccessor,
            isSuccessorStored: hasSuccessor && !choices.happens(oneIn: 3),
            isNameReused: choices.happens(oneIn: 5))
        stage.isOfFormerEpoch = choices.happens(oneIn: 5)
        stage.isLiveSession = truth(&choices)
        stage.isPinned = truth(&choices)
        stage.holdsAsked = truth(&choices)
        stage.sinceReading = pick(&choices, [.seconds(2), Interval(nanoseconds: .max)])
        if stage.policy != .offline, choices.happens(oneIn: 4) {
            stage.failure = RequestFacts.Failure(
                allowsStale: truth(&choices), maySearch: choices.happens(oneIn: 5),
                isOfReload: stage.isReload)
        }
        return stage
    }

    @Test func `random plans hold the invariants`() throws {
        var reached: Set<String> = []
        var movedLists = 0
        for seed in 0..<5_000 as Range<UInt64> {
            let stage = stage(seed)
            let (plan, learned, facts) = try stage.outcome()
            reached.insert(plan.name)
            let told: Comment = "seed \(seed): \(stage) leads to \(plan)"
            try #require(plan.name.hasPrefix("learn") == false, told)
            try #require(learned.count < 12, told)
            if stage.policy == .offline, stage.failure == nil {
                try #require(!plan.asksOrigin && !learned.contains(.originConfirmation), told)
            }
            let isCachedOnly = RequestDirectives(stage.fields).onlyIfCached
            if stage.kind != nil, isCachedOnly, stage.failure == nil {
                try #require(!plan.asksOrigin, told)
            }
            if plan == .followSuccessor {
                try #require(stage.name.hasSuccessor, told)
                if case .readable? = facts.text {
                    // A list that can be served is left for one that is stored, no other.
                    try #require(stage.name.isSuccessorStored, told)
                    movedLists += 1
                }
            }
            guard case .serve(let disposition, _) = plan, let response = facts.response else {
                continue
            }
            if facts.resource.isRewritten(response.facts) {
                try #require(response.isComplete, told)
                try #require(stage.text != .unreadable, told)
            }
            if disposition == .staleOnError { try requireBound(stage, facts, told) }
        }
        #expect(reached.count >= 8 && movedLists > 0, "\(reached), \(movedLists)")
    }

    /// A live list that is older than a player's buffer, or whose directives forbid stale use, is
    /// not served stale.
    private func requireBound(_ stage: PlanStage, _ facts: RequestFacts, _ told: Comment) throws {
        guard case .readable(let list, let isShifted)? = facts.text, list.isLive else {
            guard stage.policy == .rfc, stage.kind != nil, facts.text == nil else { return }
            let control = stage.head.first(.cacheControl) ?? ""
            // Until then it is fresh.
            try #require(!control.contains("must-revalidate") || stage.age < 5, told)
            try #require(!control.contains("no-cache"), told)
            try #require(!control.contains("stale-if-error") || stage.age <= 55, told)
            return
        }
        // Fresh for half a target duration, and stale for three more after its last update.
        let isRecent = stage.age < 21 || stage.sinceReading < Interval.seconds(21)
        try #require(isShifted || isRecent, told)
    }
}
