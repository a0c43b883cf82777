// `why`: the whole decision for a URL as it stands now, made by the functions that requests use and
// told by the names that logs and `Cache-Status` use.
import CachePolicy
import HLS
import HTTP
import Model
import Playlists
import Posix
import Store
import URISyntax

/// A report; reads the store's index and heads, and counts as no use.
struct WhyReport {
    private let core: WhyContext
    private let resource: Resource
    private let place: KeyPlace
    private let now: WallTime
    private let object: StoredObject?
    /// Where what a playlist lacks would have to come from; nil where that is not known.
    private let lacking: [AbsoluteURL]?

    init(_ subject: WhySubject, _ core: WhyContext, now: WallTime) {
        self.core = core
        self.now = now
        place = subject.place
        var resource = subject.resource
        // A session that was given a playlist of its own is served that one.
        let own = resource.kept(for: resource.session)
        if core.store.peek(own.key) != nil { resource = own }
        if resource.kind != nil,
            case .object(let object, _, let chosen) = core.store.select(resource)
        {
            self.resource = chosen
            self.object = object
        } else {
            self.resource = resource
            object = core.store.peek(resource.key)
        }
        if let object, object.isComplete, ObjectFacts.of(object)?.head.isPlaylist == true {
            lacking = core.lacking(self.resource, object)
        } else {
            lacking = nil
        }
    }

    /// The report as one object.
    var json: JSONValue {
        .object([
            .init("url", .text(resource.url.redacted)),
            .init("place", .text(place.isMounted ? "mount" : "playback")),
            .init("role", resource.role.map { .text("\($0)") } ?? .null),
            .init("policy", policy), .init("key", key), .init("stored", stored),
            .init("refused", refused), .init("origin", origin),
            .init("live", core.live?.report(on: resource, now: now) ?? .null),
            .init("window", core.window(resource) ?? .null),
            .init("freshness", freshness),
            .init("next", next),
        ])
    }

    // MARK: Policy and key

    private var policy: JSONValue {
        let inForce = core.keys.inForce(for: resource.url, in: place)
        let source = inForce.policyPattern.map { "origin \($0)" }
        return .object([
            .init("name", .text(resource.policy.rawValue)),
            .init("from", .text(source ?? (place.isMounted ? "mount" : "default"))),
        ])
    }

    private var key: JSONValue {
        let inForce = core.keys.inForce(for: resource.url, in: place)
        let made = core.keys.key(of: resource.url, in: place)
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

    // MARK: What is stored

    private var facts: ObjectFacts? { object.flatMap(ObjectFacts.of) }

    private var stored: JSONValue {
        guard let object, let facts else { return .null }
        let spans = object.spans.ranges.prefix(64).map {
            JSONValue.list([.number($0.lowerBound), .number($0.upperBound)])
        }
        let pinned = core.store.pins().contains {
            $0.title == object.title || $0.keys.contains(object.key)
        }
        return .object([
            .init("status", .number(Int64(facts.head.status.rawValue))),
            .init("complete", .truth(object.isComplete)), .init("total", .optional(object.total)),
            .init("present", .number(object.presentBytes)), .init("spans", .list(spans)),
            .init("filling", .truth(object.hasFills)),
            .init("playlist", .truth(facts.head.isPlaylist)),
            .init(
                "lacks", lacking.map { .list($0.map { .text("\($0.origin)") }) } ?? .null),
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

    /// Why the last answer for the key was not kept; null where none was refused lately.
    private var refused: JSONValue {
        guard let refusal = core.keys.refusal(resource.key) else { return .null }
        return .object([
            .init("reason", .text(refusal.reason.rawValue)),
            .init("status", .number(Int64(refusal.status.rawValue))),
            .init("seconds-ago", .number(max(0, now.seconds - refusal.at.seconds))),
        ])
    }

    // MARK: The origin

    private var outage: OriginHealth.Mark? { core.outage(resource.url.origin) }

    /// Since when the origin has answered nobody, and how that was noticed; null where it answers.
    private var origin: JSONValue {
        guard let outage else { return .null }
        let silent = Monotonic.now() - outage.since
        return .object([
            .init("state", .text("\(outage.state)")), .init("reason", .text(outage.reason)),
            .init("seconds", .number(silent.nanoseconds / 1_000_000_000)),
        ])
    }

    /// What a stored playlist is while nobody can be asked; nil where it is as it was.
    private func offlineOutcome(_ question: Freshness.Question) -> (String, String)? {
        guard let object, facts?.head.isPlaylist == true, resource.role != .json,
            !resource.session.isShifted
        else { return nil }
        let isDown = outage?.state == .down
        guard resource.policy == .offline || isDown || core.hasDown() else { return nil }
        let reason = resource.policy == .offline ? "the policy is offline" : "an origin is down"
        if resource.policy != .offline, question.playlist?.isLive ?? false {
            guard isDown else { return nil }
            if Freshness.mayServeStale(question) {
                return (Disposition.staleOnError.name, "answer from the store; the origin is down")
            }
        }
        // The same decision as a request's.
        switch core.offlineForm(resource, object) {
        case .whole?: return nil
        case .nothing?:
            return ("failed", "504, since nothing that it names is stored, and \(reason)")
        case .cut?, nil:
            return (
                Disposition.offline.name,
                "answer what of it can be played from the store; \(reason)"
            )
        }
    }

    // MARK: Freshness

    /// What the playlist says of itself, if the object is one.
    private var playlistFacts: PlaylistFacts? {
        guard let object, let facts, facts.head.isPlaylist, object.isComplete,
            let base = try? AbsoluteURL(facts.head.finalURL), let total = object.total,
            let body = try? readBody(of: object, count: Int(total))
        else { return nil }
        let reading = PlaylistReading(
            limits: core.limits, variables: core.variables(resource.session.id))
        return (try? Playlist(body, base: base, reading)).map { PlaylistFacts($0.summary) }
    }

    private var decision: (use: StoredUse, question: Freshness.Question, freshness: Freshness)? {
        guard let object, let facts else { return nil }
        let asked = Asked(fields: resource.forwardedFields, now: now, isShared: core.isShared)
        let question = resource.freshnessQuestion(facts, playlistFacts, asked)
        var decision = Freshness.decide(question)
        if core.live?.isOfFormerEpoch(facts, resource) == true { decision = .stale(.epoch) }
        return (resource.use(of: object, facts), question, decision)
    }

    private var freshness: JSONValue {
        guard let (_, question, freshness) = decision else { return .null }
        let rules = question.rules
        var members: [JSONValue.Member] = [
            .init("age", .number(rules.age(at: now))), .init("lifetime", .number(rules.lifetime)),
            .init("lifetime-from", .text(rules.lifetimeSource.rawValue)),
            .init("counts", .truth(question.policy == .rfc)),
        ]
        if let playlist = question.playlist {
            members += [
                .init("live", .truth(playlist.isLive)),
                .init(
                    "reuse-ms",
                    .number(playlist.isLive ? playlist.reuse.nanoseconds / 1_000_000 : 0)),
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

    // MARK: What comes next

    /// What a plain GET would do now, by the name that its `Cache-Status` would have.
    private var next: JSONValue {
        let (outcome, text) = nextOutcome
        return .object([.init("outcome", .text(outcome)), .init("what", .text(text))])
    }

    private var nextOutcome: (String, String) {
        guard let object, let (use, question, freshness) = decision else {
            if resource.policy != .offline, outage?.state == .down {
                return ("failed", "504, since the origin does not answer")
            }
            return resource.policy == .offline
                ? ("failed", "504, since the policy offline forbids to fetch")
                : (Disposition.miss.name, "fetch all of it")
        }
        if case .unusable(let why) = use { return (Disposition.miss.name, "fetch anew: \(why)") }
        if let offline = offlineOutcome(question) { return offline }
        switch freshness {
        case .fresh where object.isComplete:
            guard lacking?.isEmpty ?? true else {
                return (
                    Disposition.hit.name,
                    "answer from the store if the origins of what it lacks answer, else with what of "
                        + "it can be played"
                )
            }
            return (Disposition.hit.name, "answer from the store alone")
        case .fresh:
            return (Disposition.partial.name, "answer from the store and fetch what is missing")
        case .staleWhileRevalidate:
            return (
                Disposition.staleWhileRevalidate.name, "answer from the store and ask behind it"
            )
        case .stale(let reason):
            let how = facts?.head.strongValidator != nil || facts?.head.fields.first(.etag) != nil
            return (
                Disposition.refreshed(reason).name,
                how
                    ? "ask the origin whether it has changed; revalidated if not"
                    : "fetch it again, since it has no validator"
            )
        }
    }
}
