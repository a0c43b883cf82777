import CachePolicy
import HLS
import HTTP
import HTTPServer
import Model
import Origin
import Playlists
import Posix
import Reactor
import Store
import URISyntax

/// Answers while an origin does not answer, or nobody may be asked: lists in their offline form, and
/// what is not stored at once.
extension OriginExchange {
    /// Whether the origin is known not to answer.
    var isOriginDown: Bool { core.health.state(of: resource.url.origin) == .down }

    /// Whether a stored playlist is to be cut to what can be played.
    ///
    /// A window that is extended by what was recorded tells its own gaps.
    func takesOfflineForm(_ facts: ObjectFacts) -> Bool {
        guard facts.head.isPlaylist, resource.role != .json, !resource.session.isShifted,
            offline == nil
        else { return false }
        // What a list names may lie elsewhere than the list.
        return resource.policy == .offline || core.health.hasDown
    }

    /// Serves a stored playlist as it is without the network.
    ///
    /// A live list stays as it is for as long as a stale one may: players go on asking, and the
    /// origin may be back in a moment. After that it ends with what is kept.
    func startOffline(_ object: StoredObject, _ facts: ObjectFacts) {
        guard resource.policy != .offline else { return askForOfflineForm(object, facts) }
        prepare(object, facts) { [self] outcome in
            guard case .success(let list) = outcome, list.facts.isLive else {
                return askForOfflineForm(object, facts)
            }
            guard isOriginDown else { return goOn(object, facts) }
            noteMissing()
            guard Freshness.mayServeStale(question(facts, list)) else {
                return askForOfflineForm(object, facts)
            }
            serve(
                object, facts, playlist: list, as: .init(disposition: .staleOnError, ttl: -1))
        }
    }

    /// Serves the form that the list has without the network, once it is made.
    private func askForOfflineForm(_ object: StoredObject, _ facts: ObjectFacts) {
        let question = question(about: object)
        if let known = core.offline.known(question, now: exchange.loop.now) {
            return serveOffline(known, object, facts)
        }
        let bound = LoopBound((self, facts), to: exchange.loop)
        core.offline.ask(question) { form in
            bound.enqueue { pair, _ in
                guard pair.0.exchange.isAlive else { return }
                pair.0.serveOffline(form ?? .whole, object, pair.1)
            }
        }
    }

    private func question(about object: StoredObject) -> OfflineWorker.Question {
        OfflineWorker.Question(
            resource: resource, object: object,
            variables: core.playlistMemory.variables(of: resource.session.id))
    }

    /// The list may stay as it is.
    private func goOn(_ object: StoredObject, _ facts: ObjectFacts) {
        offline = .whole
        startText(object, facts)
    }

    private func serveOffline(_ form: OfflineForm, _ object: StoredObject, _ facts: ObjectFacts) {
        offline = form
        switch form {
        case .nothing: failNothingKept()
        case .whole: goOn(object, facts)
        case .cut:
            prepare(object, facts) { [self] outcome in
                switch outcome {
                case .success(let playlist):
                    serve(object, facts, playlist: playlist, as: .init(disposition: .offline))
                case .failure(let failure): fail(failure)
                }
            }
        }
    }

    private func failNothingKept() {
        let subject = resource.url.redacted
        guard resource.policy != .offline else {
            return fail(
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "nothing that \(subject) names is stored, and the policy offline forbids to "
                        + "fetch it"))
        }
        guard let mark = core.health.mark(of: resource.url.origin) else {
            return fail(
                ProxyFailure(
                    .origin, .gatewayTimeout,
                    "nothing that \(subject) names is stored, and where it lies nobody answers"))
        }
        fail(mark.refusal(of: resource.url, isList: true, now: exchange.loop.now))
    }

    /// Fails what is stored only in part, where the rest cannot be had.
    ///
    /// - Returns: true where the answer has been given.
    func failPartOfMissing() -> Bool {
        if resource.policy == .offline {
            fail(
                ProxyFailure(
                    .us, .gatewayTimeout,
                    "\(resource.url.redacted) is stored only in part, and the policy is offline"))
            return true
        }
        guard let mark = core.health.mark(of: resource.url.origin), mark.state == .down else {
            return false
        }
        noteMissing()
        fail(mark.refusal(of: resource.url, now: exchange.loop.now))
        return true
    }

    /// Somebody wants something of an origin that does not answer: it is asked for longer.
    private func noteMissing() {
        core.health.want(resource.url.origin, now: exchange.loop.now)
    }
}

// MARK: Lists of which something is missing

extension OriginExchange {
    /// Whether a stored list may name what is not stored, while nobody has looked whether its origin
    /// answers: a player that is given the whole list of a title cannot be given a shorter one later.
    ///
    /// A live list was asked for a moment ago.
    func needsOriginsWord(_ facts: ObjectFacts, _ playlist: PreparedPlaylist) -> Bool {
        !hasOriginsWord && !playlist.facts.isLive && resource.policy != .offline
            && facts.head.isPlaylist && resource.role != .json && !resource.session.isShifted
            && !facts.isKeptWhole(losses: core.store.losses)
            && !facts.haveOriginsAnswered(now: exchange.loop.now, losses: core.store.losses)
    }

    /// Serves what is stored without an answer of its origin.
    func serveUnasked(
        _ object: StoredObject, _ facts: ObjectFacts, _ playlist: PreparedPlaylist?, _ how: Serving
    ) {
        if let playlist, needsOriginsWord(facts, playlist) {
            return serveWithOriginsWord(object, facts, playlist, how)
        }
        serve(object, facts, playlist: playlist, as: how)
    }

    /// Serves a stored list, or its offline form, once it is known whether the origins of what it
    /// lacks answer; at once where it lacks nothing.
    private func serveWithOriginsWord(
        _ object: StoredObject, _ facts: ObjectFacts, _ playlist: PreparedPlaylist, _ how: Serving
    ) {
        let losses = core.store.losses
        let bound = LoopBound((self, facts, playlist, how), to: exchange.loop)
        core.offline.lacking(question(about: object)) { [core] lacking in
            if lacking?.isEmpty == true { facts.noteKeptWhole(losses: losses) }
            let goOn: @Sendable () -> Void = {
                bound.enqueue { known, _ in
                    let (this, facts, playlist, how) = known
                    guard this.exchange.isAlive else { return }
                    this.hasOriginsWord = true
                    this.offline = nil
                    if lacking?.isEmpty != true, this.takesOfflineForm(facts) {
                        this.startOffline(object, facts)
                    } else {
                        this.noteAnswers(of: lacking ?? [], facts, losses: losses)
                        this.serve(object, facts, playlist: playlist, as: how)
                    }
                }
            }
            guard let lacking, !lacking.isEmpty else { return goOn() }
            core.flights.inquire(of: lacking, reply: goOn)
        }
    }

    /// Remembers for a moment that all origins of what a list lacks answer, if they do.
    private func noteAnswers(of urls: [AbsoluteURL], _ facts: ObjectFacts, losses: Int) {
        let now = Monotonic.now()
        let haveAnswered = urls.allSatisfy { url in
            core.health.lastAnswer(of: url.origin).map { now - $0 < .seconds(1 as Int64) } ?? false
        }
        if haveAnswered, !urls.isEmpty { facts.noteOriginsAnswered(now: now, losses: losses) }
    }
}

extension OriginExchange {
    /// Whether what is stale is served without asking an origin that did not answer a moment ago.
    func mayServeUnasked(_ facts: ObjectFacts, _ playlist: PreparedPlaylist?) -> Bool {
        guard core.health.state(of: resource.url.origin) > .up,
            Freshness.mayServeStale(question(facts, playlist))
        else { return false }
        noteMissing()
        return true
    }
}
