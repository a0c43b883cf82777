// Requests that go to a parent first, and to the origin where that does not work.
import CachePolicy
import HLS
import HTTP
import Logging
import Model
import Posix
import Reactor
import Upstream
import URISyntax

extension Flight {
    /// Time for a parent to begin an answer: players wait for eight to ten seconds, and the origin
    /// is still to be asked then.
    private static let firstByte = Interval.seconds(4 as Int64)
    /// The time for a connection to a parent.
    static let parentConnect = Interval.seconds(1 as Int64)

    /// The parent that the next request is sent to; nil for the origin itself.
    var nextParent: Parent? {
        machine.omitted.contains(.parents) ? nil : table.parent(for: resource)
    }

    /// Has a request sent to a parent, which may hold it for as long as `hold`; nil if there is no
    /// reason to.
    func prepare(_ request: inout TransferRequest, for parent: Parent, hold: Interval?) {
        let role = resource.role ?? .media
        request.parent = ParentWay(parent, role: role.letter)
        request.timeouts.connect = min(Self.parentConnect, request.timeouts.connect)
        if let hold {
            request.timeouts.firstByte = max(hold, Self.firstByte)
        } else {
            request.timeouts.firstByte = min(Self.firstByte, request.timeouts.firstByte)
        }
        askPastStored(&request.fields)
        if !resource.followsHTTP, let mark = ownMark {
            request.fields.append(.via, "1.1 \(mark)")
        }
        services.counters.add(.parentRequests)
    }

    /// Adds a Cache-Control that keeps a parent from answering with a stored former version: it
    /// does not know what was purged here, nor what live lists say about names.
    private func askPastStored(_ fields: inout Fields) {
        guard resource.policy != .refresh, !terms.refreshes else {
            return fields.set(.cacheControl, "no-cache")
        }
        let now = table.loop.now
        let controls = [
            hasNewMeaning ? pastFormerMeaning(now: now) : nil, controlOfList,
            services.origins.parents.purges.control(for: resource, now: now),
        ].compactMap(\.self)
        guard !controls.isEmpty else { return }
        // A client's own directives stay: of two times the shorter counts.
        let own = fields.combined(.cacheControl).map { [$0] } ?? []
        fields.set(.cacheControl, (own + controls).joined(separator: ", "))
    }

    /// True if the name is known to have had another meaning: it belongs to a later epoch, or what
    /// was stored before it got its present meaning is revalidated.
    private var hasNewMeaning: Bool {
        if resource.epoch != .first { return true }
        guard machine.isConditional, let object, let facts = ObjectFacts.of(object) else {
            return false
        }
        return services.live.isOfFormerEpoch(facts, resource)
    }

    /// Returns the Cache-Control that rules out what the parent received before the name got its
    /// present meaning, and would serve while it is fresh.
    ///
    /// What the parent has received since then, for another child, may answer.
    private func pastFormerMeaning(now: Monotonic) -> String {
        let since = services.live.since(resource.nameKey)?.steady
        return since.map { ParentPurges.control(before: $0, now: now) } ?? "no-cache"
    }

    /// The Cache-Control for a list that changes, which a parent would keep for as long as its
    /// lifetime in HTTP; nil for other resources.
    ///
    /// What answers a blocking reload is settled by the directives.
    private var controlOfList: String? {
        guard !resource.followsHTTP, resource.live.directives == nil,
            let reuse = services.live.reuse(of: resource, wasLive: knownHead?.wasLive ?? false)
        else { return nil }
        let seconds = reuse.nanoseconds / 1_000_000_000
        return seconds > 0 ? "max-age=\(seconds)" : "no-cache"
    }

    /// The mark of this daemon in CDN-Loop, by which it recognizes its requests when they come
    /// back.
    private var ownMark: String? {
        resource.forwardedFields.combined(.cdnLoop)?.split(separator: ",").last.map {
            String($0.filter { $0 != " " })
        }
    }

    /// Whether the response comes from a parent.
    var isOfParent: Bool { transfer?.parent != nil }

    /// True if a parent has its request or gets the next one, so that the state of its origin does
    /// not matter.
    var asksParent: Bool {
        if let transfer { return transfer.parent != nil }
        return nextParent != nil
    }

    /// The time until its next request may be sent; nil for now, which takes the turn at the
    /// origin.
    var pauseBeforeRequest: Interval? {
        asksParent ? nil : table.probes.pause(before: resource.url.origin)
    }

    /// Notes an answer of the origin or of the parent.
    func noteAnswer(of origin: Origin, _ transfer: Transfer) {
        guard let parent = transfer.parent else {
            if !transfer.request.isHeld, machine.showsSlowness {
                let now = table.loop.now
                table.lateOrigins.note(
                    resource.url.origin, after: now - transfer.sentAt,
                    limit: machine.job.limits.firstTry, now: now)
            }
            return table.probes.answered(origin)
        }
        table.parentProbes.answered(parent.origin)
    }

    // MARK: What failed

    /// Asks the origin itself where the answer is a failure of the parent or of its way to the
    /// origin.
    ///
    /// - Returns: false where it is the origin's answer.
    func asksWithoutParent(after head: TransferHead, _ transfer: Transfer) -> Bool {
        guard let parent = transfer.parent, !machine.omitted.contains(.parents) else {
            return false
        }
        if head.status == .loopDetected {
            refuse(
                ProxyFailure(
                    .us, .loopDetected,
                    "the parent \(parent) says that requests come back to it; correct --parent there or here"
                ))
            return true
        }
        guard let failure = ParentFailure(head, isSluice: parent.isSluice) else { return false }
        if failure == .itself {
            let error = ParentFailure.error(head.status, of: parent)
            _ = table.parentProbes.failed(error, at: parent.root, silentSince: requestedAt)
        }
        return askOrigin(insteadOf: parent, "it answered \(head.status.rawValue)")
    }

    /// Asks the origin itself where a parent gave no answer.
    ///
    /// - Returns: false if the failure is not the parent's, or if part of a body has arrived, which
    ///   is resumed as after any broken transfer.
    func asksWithoutParent(after error: UpstreamError, _ transfer: Transfer) -> Bool {
        guard let parent = transfer.parent, !machine.omitted.contains(.parents) else {
            return false
        }
        switch error.kind {
        case .cancelled, .preempted, .queueFull, .slotTimeout, .shortage, .addressRefused,
            .originNotNamed, .forbiddenScheme, .tooManyRedirects:
            return false
        default: break
        }
        _ = table.parentProbes.failed(
            error, at: parent.root, silentSince: transfer.silentSince)
        guard phase == .asking else {
            machine.omit(.parents)
            services.counters.add(.parentFailures)
            return false
        }
        return askOrigin(insteadOf: parent, error.message)
    }

    /// Starts over at the origin where a cache that is no sluice has sent an HTML page in place of
    /// the resource: it may be a page of that cache, or of what is before it.
    ///
    /// - Returns: false if no such parent has sent it.
    func startsPastPageOfParent() -> Bool {
        guard let parent = answeringParent, !parent.isSluice, !fillsFromShared,
            let actions = machine.startsPastParents()
        else { return false }
        noteFailure(of: parent, "it sent an HTML page")
        perform(actions)
        return true
    }

    private func askOrigin(insteadOf parent: Parent, _ reason: String) -> Bool {
        let refusal = table.probes.refusal(afterWaiting: resource.url)
        guard
            let actions = machine.again(without: .parents, refusal: refusal, now: table.loop.now)
        else { return false }
        noteFailure(of: parent, reason)
        perform(actions)
        return true
    }

    private func noteFailure(of parent: Parent, _ reason: String) {
        services.counters.add(.parentFailures)
        services.log.info(
            "a parent failed; the origin is asked",
            metadata: ["parent": "\(parent)", "reason": "\(reason)"])
    }
}
