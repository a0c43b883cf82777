import CachePolicy
import HLS
import HTTP
@testable import Model
import Posix
@testable import Serving
import Routing
import URISyntax

/// A request in given circumstances: the facts that the plan may ask for.
struct PlanStage {
    static let now = WallTime(seconds: 2_000_000_000)

    var policy = Policy.media
    var role: ResourceRole? = .segment
    var kind: CacheKind?
    /// True for what a cache asks for whose parent we are.
    var isOfChild = false
    var isReload = false
    /// The condition that a reload waits for.
    var awaited = (sequence: 5, part: 2)
    var isShifted = false
    var fields = Fields()
    var method = HTTPMethod.get
    var range = ByteRangeSpec.Request.none

    var isStored = true
    var hasOtherVariants = false
    var isPlaylist = false
    var isComplete = true
    var total: Int64? = 1_000
    /// The fields of the stored response.
    var head = Fields()
    /// Seconds since it was stored.
    var age: Int64 = 100
    /// What stands for the credentials that it was fetched with; nil if everybody may have it.
    var user: String?

    var origin = OriginHealth.State.up
    var hasDown = false
    var entry = RequestFacts.EntryText.other
    var belongsToAnotherViewer = false
    /// True for a playlist of a mount that may have been made for one of its clients.
    var isOfOneClient = false
    var text = RequestFacts.Text.readable(PlaylistFacts(isLive: false), isShifted: false)
    var form = RequestFacts.OfflineOutcome.whole
    var word = RequestFacts.OriginConfirmation.asked
    var mayLack = false
    var name = RequestFacts.Name()
    /// The time since a live list or a delta update of it was last read.
    var sinceReading = Interval(nanoseconds: .max)
    var isOfFormerEpoch = false
    var isLiveSession = false
    var isPinned = false
    var holdsAsked = true
    var mayShare = true
    var failure: RequestFacts.Failure?
    var reply: RequestFacts.Reply?

    /// A stored playlist.
    static func list(_ change: (inout PlanStage) -> Void = { _ in }) -> PlanStage {
        var stage = PlanStage(role: .playlist, isPlaylist: true)
        change(&stage)
        return stage
    }

    /// A live playlist with segments of the given duration in seconds.
    static func live(
        seconds: Int64 = 6, age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        list { stage in
            stage.text = .readable(
                PlaylistFacts(
                    isLive: true, targetDuration: .seconds(seconds), nextSequence: 5, nextParts: 2),
                isShifted: false)
            stage.age = age
            change(&stage)
        }
    }

    /// A live playlist that has ended, with segments of six seconds.
    static func ended(
        age: Int64, _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        list { stage in
            stage.text = .readable(
                PlaylistFacts(isLive: false, targetDuration: .seconds(6), hasEnded: true),
                isShifted: false)
            stage.age = age
            change(&stage)
        }
    }

    /// A response under a mount, where HTTP's rules apply.
    static func mounted(
        _ control: String, age: Int64, request: Fields = Fields(),
        _ change: (inout PlanStage) -> Void = { _ in }
    ) -> PlanStage {
        var stage = PlanStage(
            policy: .rfc, role: nil, kind: .gateway, fields: request,
            head: ["Cache-Control": control], age: age)
        change(&stage)
        return stage
    }

    func resource() throws -> Resource {
        let url = try AbsoluteURL("https://cdn.test/a")
        let directives =
            isReload
            ? DeliveryDirectives([
                QueryItem(rawName: "_HLS_msn", rawValue: "\(awaited.sequence)"),
                QueryItem(rawName: "_HLS_part", rawValue: "\(awaited.part)"),
            ]) : nil
        let session = Session(
            id: SessionID(1), fields: Fields(), shift: isShifted ? Session.Shift(window: 60) : .none
        )
        return Resource(
            .init(
                url: url, cacheKey: CacheKey(url: url.text), session: session, role: role,
                policy: policy, forwardedFields: Fields(),
                isMounted: kind != nil || isOfOneClient, kind: kind, isVerbatim: isOfChild,
                live: LiveTerms(directives: directives)))
    }

    var stored: RequestFacts.Stored {
        if hasOtherVariants { return .otherVariants }
        guard isStored else { return .nothing }
        let time = WallTime(seconds: Self.now.seconds - age)
        var head = StoredHead(
            status: .ok, fields: head, requestTime: time, responseTime: time,
            finalURL: "https://cdn.test/a", isPlaylist: isPlaylist, kind: kind)
        head.user = user
        let facts = ObjectFacts(head: head, generation: 1)
        return .response(RequestFacts.Response(facts, isComplete: isComplete, total: total))
    }

    /// The plan of the request, and the facts that were asked for.
    func outcome() throws -> (plan: RequestPlan, learned: [RequestPlan.Fact], facts: RequestFacts) {
        let circumstances = RequestCircumstances(fields: fields, now: Self.now, isShared: false)
        var facts = RequestFacts(try resource(), circumstances, method, range)
        facts.origin = origin
        facts.hasDown = hasDown
        facts.hasFailed = failure != nil
        facts.failure = failure
        facts.reply = reply
        if failure != nil || reply != nil { facts.stored = stored }
        var learned: [RequestPlan.Fact] = []
        while true {
            let plan = facts.plan
            guard case .learn(let fact) = plan, !learned.contains(fact) || fact == .playlist,
                learned.count < 30
            else { return (plan, learned, facts) }
            learned.append(fact)
            answer(fact, &facts)
        }
    }

    private func answer(_ fact: RequestPlan.Fact, _ facts: inout RequestFacts) {
        switch fact {
        case .stored: facts.stored = stored
        case .entryText:
            facts.entry = entry
            if case .text = entry {
                facts.resource = facts.resource.changing { $0.role = .json }
            }
        case .owner:
            facts.belongsToAnotherViewer = belongsToAnotherViewer
            facts.isOfOneClient = isOfOneClient
        case .playlist:
            facts.text = text
            facts.mayLack = mayLack
        case .offlineForm:
            // As in the exchange: a list that may be used as it is is planned again.
            facts.offline = form
            facts.failure = nil
            if form != .whole { facts.text = nil }
        case .originConfirmation: facts.originConfirmation = word
        case .reading: facts.sinceReading = sinceReading
        case .name: facts.name = name
        case .epoch:
            facts.isOfFormerEpoch = isOfFormerEpoch
            facts.isNameGivenAway = name.isNameReused
        case .stream: facts.isLiveSession = isLiveSession
        case .pin: facts.isPinned = isPinned
        case .bytes: facts.holdsAsked = holdsAsked
        case .sharing: facts.mayShare = mayShare
        }
    }
}
