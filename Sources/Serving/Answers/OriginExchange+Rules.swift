import CachePolicy
import HTTP
import HTTPServer
import Model
import Reactor
import Store
import URISyntax

/// Requests where HTTP's rules lead, under a mount: selection among variants, the client's
/// directives and conditions, what may be shared (RFC 9111 sections 4 and 5.2.1).
extension OriginExchange {
    /// Answers from the store if that may be, else asks the origin.
    func startUnderRules() {
        let directives = RequestDirectives(request.fields)
        switch core.store.select(resource) {
        case .object(let object, let facts, let selected):
            resource = selected
            // The operator's word that nobody is to be asked goes before the client's.
            if resource.policy == .offline { return startSelected(object, facts, directives) }
            if directives.noStore { return askOrigin(directives, .requestNoStore) }
            if needsOrigin { return askOrigin(directives, .requestNoCache) }
            startSelected(object, facts, directives)
        case .otherVariants(let index, let selected):
            resource = selected
            staleReason = .vary
            askOrigin(directives, .vary, about: directives.noStore ? nil : index)
        case .nothing:
            askOrigin(directives, nil)
        }
    }

    private func startSelected(
        _ object: StoredObject, _ facts: ObjectFacts, _ directives: RequestDirectives
    ) {
        // Parts without a strong validator can be used only as far as they go.
        if !object.isComplete, facts.head.strongValidator == nil, !holdsAsked(object) {
            return askOrigin(directives, nil)
        }
        if directives.onlyIfCached,
            case .stale = Freshness.decide(freshnessQuestion(facts, nil)), !facts.head.isPlaylist
        {
            return failOnlyIfCached()
        }
        if facts.head.isPlaylist { return startText(object, facts) }
        decide(object, facts, playlist: nil)
    }

    /// Conditions that only an origin can judge (RFC 9111 section 4.3.2).
    private var needsOrigin: Bool {
        request.fields.contains(.ifMatch) || request.fields.contains(.ifUnmodifiedSince)
    }

    /// Whether what is asked for is there, or on its way in the answer that brought the rest.
    private func holdsAsked(_ object: StoredObject) -> Bool {
        if object.isFilling(from: 0) || request.method == .head { return true }
        guard case .ranges(let specs) = range, let total = object.total else { return false }
        return specs.allSatisfy { spec in
            spec.resolve(total: total).map { object.spans.contains($0.range) } ?? true
        }
    }

    private func failOnlyIfCached() {
        fail(
            ProxyFailure(
                .client, .gatewayTimeout,
                "\(resource.url.redacted) is not stored, and the request forbids to fetch it"))
    }

    // MARK: Asking

    private func askOrigin(
        _ directives: RequestDirectives, _ reason: Freshness.StaleReason?,
        about index: VariantIndex? = nil
    ) {
        if directives.onlyIfCached { return failOnlyIfCached() }
        if let reason { staleReason = reason }
        fetchMissing(isAlone: directives.noStore, about: index)
    }

    /// Asks the origin for what is not stored, with the client's conditions for it to judge.
    ///
    /// - Parameters:
    ///   - isAlone: true where another request's answer is not to be used.
    ///   - index: stored variants that the origin may point to.
    func fetchMissing(isAlone: Bool, about index: VariantIndex? = nil) {
        guard resource.policy != .offline else { return failOffline() }
        var missing = missingRequest
        if request.method == .head { missing.terms.method = .head }
        missing.terms.conditions = ownConditions
        let isConditional = !missing.terms.conditions.isEmpty
        missing.terms.isAlone = isAlone || isConditional || request.method == .head
        if let index, !isConditional, request.method == .get {
            missing.terms.tags = index.variants.filter { !$0.tag.isEmpty }
            // A part cannot be asked for on a condition that speaks of the whole.
            if !missing.terms.tags.isEmpty {
                missing = FetchRequest(
                    resource: missing.resource, wanted: .whole, revalidates: true,
                    delivery: missing.delivery, lane: missing.lane, terms: missing.terms)
            }
        }
        fetch(missing)
    }

    /// The client's conditions, byte for byte.
    private var ownConditions: Fields {
        var conditions = Fields()
        for name: FieldName in [.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince] {
            guard let value = request.fields.combinedBytes(name) else { continue }
            conditions.append(nameBytes: name.spelling.utf8, valueBytes: value)
        }
        return conditions
    }

    // MARK: Hearing

    /// Whether what another request brought may answer this one: kept, selected by it and fresh for
    /// it (RFC 9111 section 4).
    func mayShare(_ object: StoredObject, _ facts: ObjectFacts, _ outcome: FetchOutcome) -> Bool {
        guard outcome.notStored == nil, resource.selects(facts.head, in: object) else {
            return false
        }
        if case .fresh = Freshness.decide(freshnessQuestion(facts, nil)) { return true }
        return facts.head.isPlaylist
    }

    /// Passes on an answer without content.
    func answer(_ head: StoredHead, length: String?) {
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        core.counters.add(.bypassed)
        var fields = builder.passedOn(head, staleReason)
        if let length, request.method == .head { fields.append(.contentLength, length) }
        exchange.respond(ResponseHead(status: head.status, fields: fields), body: .none)
    }
}
