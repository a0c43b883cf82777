// `why`: the current decision for a URL, made by the functions that requests use and described with
// the names in logs and `Cache-Status`.
import CachePolicy
import HLS
import HTTP
import Model
import Playlists
import Posix
import Store
import URISyntax

/// A report; reads the store's index and heads, and does not count as use.
struct WhyReport {
    private let context: WhyContext
    private let next: WhyPlan
    /// The role of the URL in the query.
    private let role: ResourceRole?
    private let place: KeyPlace
    private let now: WallTime
    /// The facts of the playlist, if the object is one.
    private let playlist: PlaylistFacts?

    private var resource: Resource { next.facts.resource }
    private var object: StoredObject? { next.object }
    private var facts: ObjectFacts? { next.stored }

    init(_ subject: WhySubject, _ context: WhyContext, now: WallTime) {
        self.context = context
        self.now = now
        place = subject.place
        role = subject.resource.role
        let next = WhyPlan(subject.resource, context, now: now)
        self.next = next
        if let playlist = next.facts.playlist, next.stored?.head.isPlaylist == true {
            self.playlist = playlist
        } else if let object = next.object, let stored = next.stored {
            playlist = context.playlist(object, stored, of: next.facts.resource)
        } else {
            playlist = nil
        }
    }

    /// The report as one object.
    var json: JSONValue {
        .object([
            .init("url", .text(resource.url.redacted)),
            .init("place", .text(place.isMounted ? "mount" : "playback")),
            .init("role", role.map { .text("\($0)") } ?? .null),
            .init("policy", policy), .init("key", key), .init("stored", stored),
            .init("refused", refused), .init("origin", origin),
            .init("live", context.live?.report(on: resource, now: now) ?? .null),
            .init("shared", context.shared(resource) ?? .null),
            .init("window", context.window(resource) ?? .null),
            .init("endless", next.endless?.report(now: Monotonic.now()) ?? .null),
            .init("freshness", freshness),
            .init("next", nextStep),
        ])
    }

    // MARK: Policy and key

    private var policy: JSONValue {
        let inForce = context.keys.inForce(for: resource.url, in: place)
        let source = inForce.policyPattern.map { "origin \($0)" }
        return .object([
            .init("name", .text(resource.policy.rawValue)),
            .init("from", .text(source ?? (place.isMounted ? "mount" : "default"))),
        ])
    }

    private var key: JSONValue {
        let inForce = context.keys.inForce(for: resource.url, in: place)
        let made = context.keys.key(of: resource.url, in: place)
        let steps = made.steps.map { step in
            JSONValue.object([
                .init("rule", .text(step.rule)), .init("from", .text(step.source.rawValue)),
                .init("took", .text(step.effect)),
            ])
        }
        let text = (try? AbsoluteURL(made.text))?.redacted ?? made.text
        let added = resource.keyText.dropFirst(resource.cacheKey.url.count)
        return .object([
            .init("text", .text(text + added)), .init("digest", .text(resource.key.hex)),
            .init("mode", .text(inForce.mode.rawValue)), .init("steps", .list(steps)),
            .init("merged", .truth(made.isMerged)),
            .init("veto", inForce.veto.map { .text($0.rawValue) } ?? .null),
        ])
    }

    // MARK: Stored object

    private var stored: JSONValue {
        guard let object, let facts else { return .null }
        let spans = object.spans.ranges.prefix(64).map {
            JSONValue.list([.number($0.lowerBound), .number($0.upperBound)])
        }
        let pinned = context.store.isPinned(object)
        return .object([
            .init("status", .number(Int64(facts.head.status.rawValue))),
            .init("complete", .truth(object.isComplete)), .init("total", .optional(object.total)),
            .init("present", .number(object.presentBytes)), .init("spans", .list(spans)),
            .init("filling", .truth(object.hasFills)),
            .init("playlist", .truth(facts.head.isPlaylist)),
            .init(
                "lacks", next.lacking.map { .list($0.map { .text("\($0.origin)") }) } ?? .null),
            .init("title", .text(titleText(object.title))), .init("pinned", .truth(pinned)),
            .init("etag", Self.text(facts.head.fields.first(.etag))),
            .init("last-modified", Self.text(facts.head.fields.first(.lastModified))),
            .init("strong-validator", .truth(facts.head.strongValidator != nil)),
            .init("cache-control", Self.text(facts.head.fields.combined(.cacheControl))),
            .init("vary", Self.text(facts.head.fields.combined(.vary))),
        ])
    }

    private func titleText(_ title: UInt64) -> String {
        let digits = String(title, radix: 16)
        return String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    }

    private static func text(_ value: String?) -> JSONValue { value.map { .text($0) } ?? .null }

    /// Why the last response for the key was not stored; null if none was refused recently.
    private var refused: JSONValue {
        guard let refusal = context.keys.refusal(resource.key) else { return .null }
        return .object([
            .init("reason", .text(refusal.reason.rawValue)),
            .init("status", .number(Int64(refusal.status.rawValue))),
            .init("seconds-ago", .number(max(0, now.seconds - refusal.at.seconds))),
        ])
    }

    // MARK: The origin

    /// How long the origin has not answered, and the last error; null if it answers.
    private var origin: JSONValue {
        guard let outage = context.daemon?.origins.health.mark(of: resource.url.origin) else {
            return .null
        }
        let silent = Monotonic.now() - outage.since
        return .object([
            .init("state", .text("\(outage.state)")), .init("reason", .text(outage.reason)),
            .init("seconds", .number(silent.nanoseconds / 1_000_000_000)),
        ])
    }

    // MARK: Freshness

    private var decision: (question: Freshness.Question, freshness: Freshness)? {
        guard let facts else { return nil }
        let circumstances = next.facts.circumstances
        let question = resource.freshnessQuestion(facts, playlist, circumstances)
        let freshness = resource.freshness(
            facts, playlist, circumstances,
            isOfFormerEpoch: context.live?.isOfFormerEpoch(facts, resource) ?? false,
            isNameGivenAway: context.live?.isNameReused(resource) ?? false,
            isLiveSession: context.isLive(resource),
            isPinned: next.object.map { context.store.isPinned($0) } ?? false)
        return (question, freshness)
    }

    private var freshness: JSONValue {
        guard let (question, freshness) = decision else { return .null }
        let rules = question.rules
        var members: [JSONValue.Member] = [
            .init("age", .number(rules.age(at: now))), .init("lifetime", .number(rules.lifetime)),
            .init("lifetime-from", .text(rules.lifetimeSource.rawValue)),
            .init("counts", .truth(question.policy == .rfc)),
        ]
        if let playlist = question.playlist {
            let ended = playlist.hasEnded ? playlist.endedReuse : .zero
            let reuse = playlist.isLive ? playlist.reuse : ended
            members += [
                .init("live", .truth(playlist.isLive)),
                .init("reuse-ms", .number(reuse.nanoseconds / 1_000_000)),
            ]
        }
        switch freshness {
        case .fresh(let seconds):
            members += [.init("fresh", .truth(true)), .init("for", .optional(seconds))]
        case .staleWhileRevalidate(let seconds):
            members += [
                .init("fresh", .truth(false)), .init("reason", .text("stale-while-revalidate")),
                .init("for", .number(seconds)),
            ]
        case .stale(let reason):
            members += [.init("fresh", .truth(false)), .init("reason", .text(reason.rawValue))]
        }
        members.append(.init("may-serve-stale", .truth(Freshness.mayServeStale(question))))
        return .object(members)
    }

    // MARK: Next step

    /// What a plain GET would do now, with the name in its `Cache-Status`.
    private var nextStep: JSONValue {
        .object([
            .init("outcome", .text(next.outcome)), .init("what", .text(next.text)),
            .init("plan", .text(next.plan.name)),
        ])
    }
}
