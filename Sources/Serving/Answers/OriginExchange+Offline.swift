import CachePolicy
import HTTPServer
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import URISyntax

/// Playlists while an origin does not answer, or while the policy forbids requests.
extension OriginExchange {
    /// Looks up the offline form of a list, or has it made.
    func learnOfflineForm(_ object: StoredObject, for decision: inout Decision) -> Bool {
        if decision.facts.origin == .down, decision.facts.playlist?.isLive ?? false {
            noteMissing()
        }
        let question = core.question(about: object, resource)
        if let known = core.offline.known(question, now: exchange.loop.now) {
            take(known, for: &decision)
            return true
        }
        let goOn = resuming(decision) { [self] (decision: inout Decision, form: OfflineForm?) in
            take(form ?? .whole, for: &decision)
        }
        core.offline.ask(question, reply: goOn)
        return false
    }

    /// Returns a callback for any thread: it has a decision changed on the loop of the request, and
    /// continues with it, if the client is still connected.
    private func resuming<Value: Sendable>(
        _ decision: Decision, _ change: @escaping (inout Decision, Value) -> Void
    ) -> @Sendable (Value) -> Void {
        let bound = LoopBound((self, decision, change), to: exchange.loop)
        return { value in
            bound.enqueue { held, _ in
                var (this, decision, change) = held
                guard this.exchange.isAlive else { return }
                change(&decision, value)
                this.decide(decision)
            }
        }
    }

    private func take(_ form: OfflineForm, for decision: inout Decision) {
        progress.offline = form
        var next = newDecision()
        next.facts.resource = decision.facts.resource
        next.facts.stored = decision.facts.stored
        next.facts.entry = decision.facts.entry
        next.facts.belongsToAnotherViewer = decision.facts.belongsToAnotherViewer
        next.object = decision.object
        // A list that may stay unchanged is planned again: after a failure it is served stale, or
        // revalidated again if it may not be.
        if case .whole = form {
            next.playlist = decision.playlist
            next.facts.text = decision.facts.text
            next.facts.mayLack = decision.facts.mayLack
        }
        decision = next
    }

    // MARK: Incomplete lists

    /// Checks whether the origins of what a stored list lacks answer, then continues; if it lacks
    /// nothing, no origin is contacted.
    ///
    /// No private host is contacted for a page of another site, which would also learn from the
    /// list that it is served whether the host answers.
    func learnOriginConfirmation(
        _ object: StoredObject, _ stored: ObjectFacts, _ decision: Decision
    ) {
        let (losses, isForPage) = (core.store.losses, isForPage)
        let goOn = resuming(decision) {
            [self] (decision: inout Decision, lacking: [AbsoluteURL]?) in
            progress.hasCheckedOrigins = true
            progress.offline = nil
            decision.facts.offline = nil
            decision.facts.hasDown = mustReduce
            decision.facts.originConfirmation = lacking?.isEmpty == true ? .lacksNothing : .asked
            if !decision.facts.hasDown { noteAnswers(of: lacking ?? [], stored, losses: losses) }
        }
        core.offline.lacking(core.question(about: object, resource)) { [core, resource] lacking in
            if lacking?.isEmpty == true { stored.noteKeptWhole(losses: losses) }
            core.inquire(of: lacking ?? [], for: resource, isForPage: isForPage) { goOn(lacking) }
        }
    }

    /// Checks whether the origins of a live list and of what it lacks are down, then continues: if
    /// its own is, the list ends, whatever it lacks.
    func learnOriginStates(_ object: StoredObject, _ decision: Decision) {
        let isForPage = isForPage
        let goOn = resuming(decision) { [self] (decision: inout Decision, _: Void) in
            progress.hasCheckedOrigins = true
            decision.facts.origin = originState
            decision.facts.hasDown = mustReduce
            decision.facts.originConfirmation = .asked
        }
        core.offline.lacking(core.question(about: object, resource)) { [core, resource] lacking in
            let own = resource.url
            let others = (lacking ?? []).filter { $0.origin != own.origin }
            core.inquire(of: [own] + others, for: resource, isForPage: isForPage) { goOn(()) }
        }
    }

    /// Records, for half a second, that all origins of what a list lacks answer, if they do, or a
    /// parent that is asked in their place.
    private func noteAnswers(of urls: [AbsoluteURL], _ facts: ObjectFacts, losses: Int) {
        guard !urls.isEmpty else { return }
        let (now, lately) = (Monotonic.now(), Interval.seconds(1 as Int64))
        let haveAnswered =
            core.origins.parents.hasTaker(ofTitle: resource, heardWithin: lately, now: now)
            || urls.allSatisfy { url in
                core.origins.health.lastAnswer(of: url.origin).map { now - $0 < lately } ?? false
            }
        if haveAnswered { facts.noteOriginsAnswered(now: now, losses: losses) }
    }
}

extension ProxyCore {
    /// Returns the question for the offline form of a stored playlist, and for what it lacks.
    func question(
        about object: StoredObject, _ resource: Resource
    ) -> OfflineWorker.Question {
        OfflineWorker.Question(
            resource: resource, object: object,
            variables: playlistMemory.variables(of: resource.session.id, in: resource.url))
    }

    /// Checks whether the origins of what a playlist names answer, or the parents that are asked in
    /// their place, but for a page of another site no private origins; `reply` is called once, on
    /// any thread.
    fileprivate func inquire(
        of urls: [AbsoluteURL], for playlist: Resource, isForPage: Bool,
        reply: @escaping @Sendable () -> Void
    ) {
        let asked = urls.filter { !isForPage || !settings.mayBePrivate($0.asciiHost) }
        guard !asked.isEmpty else { return reply() }
        flights.inquire(of: asked, behind: origins.parents.takers(ofTitle: playlist), reply: reply)
    }
}
