import CachePolicy
import HTTP
import HTTPServer
import Model
import Posix
import Store
import URISyntax
import Upstream

/// Requests under HTTP's rules, for mounts: variant selection, the client's directives and
/// conditions, and sharing (RFC 9111 sections 4 and 5.2.1).
extension OriginExchange {
    /// True if the requested bytes are stored, or arriving in the response that delivered the rest.
    func holdsAsked(_ object: StoredObject) -> Bool {
        if object.isFilling(from: 0) || request.method == .head { return true }
        guard case .ranges(let specs) = range, let total = object.total else { return false }
        return specs.allSatisfy { spec in
            spec.resolve(total: total).map { object.spans.contains($0.range) } ?? true
        }
    }

    // MARK: Fetches

    /// Adds the terms of HTTP's rules to a fetch of what is not stored.
    ///
    /// - Parameters:
    ///   - missing: the fetch.
    ///   - reason: why it is made.
    ///   - index: stored variants that the origin may select.
    func addTerms(
        to missing: inout FetchRequest, _ reason: RequestPlan.FetchReason, _ index: VariantIndex?
    ) {
        let mustBeFresh = RequestDirectives(request.fields).noStore
        if request.method == .head { missing.terms.method = .head }
        missing.terms.conditions = ownConditions
        let isConditional = !missing.terms.conditions.isEmpty
        missing.terms.isAlone =
            mustBeFresh || reason == .notShared || isConditional || request.method == .head
        guard let index, !mustBeFresh, !isConditional, request.method == .get else { return }
        missing.terms.tags = index.named
        // A part cannot be requested with a condition that applies to the whole.
        guard !missing.terms.tags.isEmpty else { return }
        missing = FetchRequest(
            resource: missing.resource, wanted: .whole, for: .revalidation(of: nil),
            repliesAt: missing.repliesAt, lane: missing.lane, terms: missing.terms)
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

    // MARK: Replies

    /// True if the response to another request may serve this one: stored, selected by it and fresh
    /// for it (RFC 9111 section 4).
    ///
    /// A playlist of a mount may serve all clients unless it was made for one; it is shared also
    /// where it cannot be stored for want of room.
    func mayShare(_ object: StoredObject, _ facts: ObjectFacts, _ outcome: FetchOutcome) -> Bool {
        guard resource.followsHTTP else { return outcome.notStored?.isOfOneClient != true }
        guard outcome.notStored == nil, resource.selects(facts.head, in: object) else {
            return false
        }
        let freshness = resource.freshness(
            facts, nil, circumstances, isOfFormerEpoch: false, isNameGivenAway: false,
            isLiveSession: core.isOfLiveStream(resource), isPinned: false)
        if case .fresh = freshness { return true }
        return facts.head.isPlaylist || answersReload(facts)
    }

    /// True if a blocking reload of another cache began to be answered after this request for the
    /// same had arrived: the origin would have held and answered both alike.
    private func answersReload(_ facts: ObjectFacts) -> Bool {
        guard resource.isVerbatim, let times = facts.times,
            resource.url.hasQueryItem(startingWith: Self.held)
        else { return false }
        return times.received >= exchange.receivedAt
    }

    private static let held = Array("_HLS_msn=".utf8)

    /// True if the stored response to another request is a variant that this request does not
    /// select.
    func isOtherVariant(
        _ object: StoredObject, _ facts: ObjectFacts, _ outcome: FetchOutcome
    ) -> Bool {
        resource.followsHTTP && outcome.notStored == nil
            && !resource.selects(facts.head, in: object)
    }

    /// Fetches what HEAD has shown to be a playlist: its rewritten form has other fields and
    /// another length.
    func fetchText() {
        var wanted = FetchRequest(
            resource: resource, wanted: .whole, repliesAt: .head, lane: .express)
        wanted.terms.isAlone = true
        fetch(wanted)
    }

    /// Passes on a response without content.
    func answer(_ head: StoredHead, length: String?) {
        if hides(head) { return responder.fail(.hiddenFromPages) }
        responder.notePassed()
        var fields = responder.heads.passedOn(head, progress.staleReason)
        if head.status == .noContent {
            // RFC 9110 section 8.6.
            fields.remove(.contentLength)
        } else if let length, request.method == .head {
            fields.append(.contentLength, length)
        }
        exchange.respond(ResponseHead(status: head.status, fields: fields), body: .none)
    }
}
