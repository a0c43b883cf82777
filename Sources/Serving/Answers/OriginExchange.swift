// One request for an origin's resource, from lookup to answer: `RequestFacts.plan` decides, this acts.
// `learn` looks up what the plan depends on, `carryOut` does what it says.
import Ahead
import CachePolicy
import HTTP
import HTTPServer
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import URISyntax

/// Conducts one exchange.
///
/// The properties marked `exclusivity(unchecked)` are read and replaced as a whole, so that accesses
/// cannot overlap.
///
/// Bound to its server loop.
final class OriginExchange {
    let core: ProxyCore
    let exchange: Exchange
    /// Changes where a playlist turns out to be its viewer's own, and where a dead URL was replaced.
    @exclusivity(unchecked) var resource: Resource
    /// What the request itself asks for.
    let asked: Resource
    private(set) lazy var range = ByteRangeSpec.parse(request.fields)
    /// What is stored and may serve if the origin does not work.
    @exclusivity(unchecked) var fallback: StoredObject?
    @exclusivity(unchecked) var staleReason: Freshness.StaleReason?
    @exclusivity(unchecked) var isPartlyStored = false
    /// What the playlist is without the network, once that was asked for.
    var offline: OfflineForm?
    /// Whether the origins of what a list lacks were asked if they answer.
    var hasOriginsWord = false
    /// What look-ahead learns of a playlist, where one was rewritten for this exchange, with the
    /// generation of its object.
    var drawn: (generation: UInt64, list: DrawnList)?
    /// The long text that was made last for this exchange.
    var prepared: Prepared?
    /// Whether the end of what may be JSON of HLS has been waited for.
    var hasAwaitedText = false
    /// How often the resource was looked for because its token had died.
    var revivals = 0
    /// True where the first bytes are fetched to learn the type, before the range that is wanted.
    var learnsTypeFirst = false
    /// Waits for a byte that decides what the answer is.
    var waitingReader: Reader?
    /// Fields of the answer that were not kept.
    var onlyHere = Fields()
    /// What this request may still cost its origins.
    var budget: OriginBudget {
        if let spent { return spent }
        let made = OriginBudget(now: exchange.loop.now)
        spent = made
        if exchange.record != nil { exchange.note { made.trace } }
        return made
    }
    /// That budget, once an origin was asked.
    private(set) var spent: OriginBudget?
    /// Kept alive by the fetch's reply and the exchange's callbacks.
    var request: RequestHead { exchange.request }

    init(core: ProxyCore, exchange: Exchange, resource: Resource) {
        self.core = core
        self.exchange = exchange
        self.resource = resource
        asked = resource
    }

    /// A decision under way: the facts it is made from, and what they are facts of.
    struct Decision {
        var facts: RequestFacts
        var object: StoredObject?
        /// The stored text as it is served.
        var playlist: PreparedPlaylist?
        /// What is told where the plan passes a failure on.
        var failure: ProxyFailure?
        /// How the origin's reply was come by.
        var outcome: FetchOutcome?
        /// The origin's status, where it was asked.
        var status: HTTPStatus?
        /// Stored variants that the origin may point to.
        var variants: VariantIndex?
        /// The URL that replaced a dead one.
        var successor: AbsoluteURL?

        var stored: ObjectFacts? {
            if case .response(let response)? = facts.stored { response.facts } else { nil }
        }

        /// Takes in what is stored.
        mutating func take(_ object: StoredObject, _ stored: ObjectFacts) {
            self.object = object
            facts.stored = .response(RequestFacts.Response(object, stored))
        }
    }

    /// A decision of which nothing is known but the request and the circumstances.
    func newDecision() -> Decision {
        var facts = RequestFacts(resource, circumstances, request.method, range)
        facts.origin = core.health.state(of: resource.url.origin)
        facts.hasDown = core.health.hasDown
        facts.offline = offline?.outcome
        facts.originsWord = hasOriginsWord ? .askedBefore : nil
        return Decision(facts: facts)
    }

    /// What decisions are made from beside the stored response.
    var circumstances: Asked {
        Asked(
            fields: request.fields, now: exchange.loop.wallNow, steadyNow: exchange.loop.now,
            isShared: core.isShared)
    }

    /// Answers from the store if that may be, else asks the flights.
    func start() { decide(newDecision()) }

    /// Makes the plan, with what it depends on looked up, and carries it out; perhaps later.
    func decide(_ given: Decision) {
        var decision = given
        while true {
            let plan = decision.facts.plan
            guard case .learn(let fact) = plan else { return carryOut(plan, decision) }
            guard learn(fact, for: &decision) else { return }
        }
    }

    private func carryOut(_ plan: RequestPlan, _ decision: Decision) {
        switch plan {
        case .learn: break
        case .serve(let disposition, let ttl):
            serve(decision, .init(disposition: disposition, ttl: ttl, status: decision.status))
        case .serveLater: serveLater(decision)
        case .revalidate(let reason): revalidate(decision, reason)
        case .fetch(let reason, let part): fetchMissing(part, reason, decision)
        case .fetchOwnCopy: startForSession(decision)
        case .awaitReload: awaitReload()
        case .followSuccessor: if let url = decision.successor { move(to: url) }
        case .findSuccessor: findSuccessor(decision)
        case .fetchRest: fetchRest(decision)
        case .refuse(let refusal): refuse(refusal, decision.failure)
        }
    }

    private func serve(_ decision: Decision, _ how: Serving) {
        guard let object = decision.object, let stored = decision.stored else { return }
        if how.disposition == .staleWhileRevalidate { renewBehind(object) }
        if how.disposition == .staleOnError, decision.facts.origin > .up { noteMissing() }
        serve(object, stored, playlist: decision.playlist, as: how)
    }

    /// Starts over under a key of the session's own.
    ///
    /// What others were given may serve when the origin is gone, if there are no others.
    private func startForSession(_ decision: Decision) {
        if !core.isShared { fallback = decision.object }
        resource = resource.kept(for: resource.session)
        start()
    }

    func refuse(_ refusal: Refusal, _ known: ProxyFailure? = nil) {
        let mark = refusal.fault == .origin ? core.health.mark(of: resource.url.origin) : nil
        if refusal == .partOfSilentOrigin { noteMissing() }
        fail(refusal.failure(of: resource.url, mark, known: known, now: exchange.loop.now))
    }

    /// Somebody wants something of an origin that does not answer: it is asked for longer.
    func noteMissing() { core.health.want(resource.url.origin, now: exchange.loop.now) }
}

extension OriginExchange {
    /// A text that was made for an exchange, and what it was made of.
    struct Prepared {
        let generation: UInt64
        let resource: Resource
        let cut: OfflineText?
        let playlist: PreparedPlaylist
    }
}
