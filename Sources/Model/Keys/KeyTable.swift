// The key rules in force, the findings that they were learnt from, and the vetoes against merging;
// findings and vetoes survive restarts.
package import CachePolicy
package import DurableState
package import HLS
package import HTTP
package import Lookahead
package import Posix
import Store
package import Synchronization
package import URISyntax

/// The kind of place a URL is requested in, which selects the key rules.
package struct KeyPlace: Hashable, Sendable {
    /// True for a resource of a mount: mounts keep their URLs unchanged unless the configuration
    /// says otherwise.
    package var isMounted = false
    package var scope = KeyVetoes.Scope.media

    package init(isMounted: Bool = false, scope: KeyVetoes.Scope = .media) {
        self.isMounted = isMounted
        self.scope = scope
    }
}

/// The settings of keys and policies; replaced as a whole when the configuration is reloaded.
package struct KeySettings: Hashable, Sendable {
    /// The mode of playback URLs whose origin has no setting of its own.
    package var mode = KeyMode.standard
    package var origins = KeyOrigins()
    /// The policy of playback URLs.
    package var policy = Policy.media

    package init() {}
}

/// The rules of all origins.
///
/// Any thread may use it; nothing here blocks on the disk.
package final class KeyTable: Sendable {
    /// The settings and rules in force for one origin in one kind of place.
    package struct InForce: Sendable {
        package let rules: [KeyRuleInForce]
        package let mode: KeyMode
        package let policy: Policy
        /// The pattern that gave the policy; nil for the default.
        package let policyPattern: String?
        /// Why merging rules are left out; nil if they are not.
        package let veto: KeyVetoes.Reason?
    }

    package struct Question: Hashable {
        package let origin: Origin
        package let place: KeyPlace
    }

    package struct State: Sendable {
        package var settings: KeySettings
        var evidence = KeyEvidence()
        var vetoes = KeyVetoes()
        /// The URLs that delivered the version of a key's object.
        var sources = RecentMap<ObjectKey, KeySources>(capacity: 8_192)
        /// Which URLs delivered which bytes under a merged key; the bytes as a digest.
        var contents = RecentMap<ObjectKey, (sources: KeySources, content: UInt64)>(
            capacity: 8_192)
        /// Why the last response for a key was not stored.
        var refusals = RecentMap<ObjectKey, Refusal>(capacity: 1_024)
        /// The settings of origins that later ones of this run have replaced, the latest first.
        var formerOrigins: [KeyOrigins] = []
        /// The former rules of the places that were asked for.
        var formerAnswers: [Question: FormerRules] = [:]
        fileprivate var answers: [Question: InForce] = [:]
        /// The last answer for each place.
        fileprivate var latest: [Latest] = []
    }

    /// The last answer for a place, with the URL that it was given for.
    ///
    /// Players request URLs of one origin again and again, and comparing two URLs costs less than
    /// making an `Origin` of one.
    fileprivate struct Latest {
        let place: KeyPlace
        let url: AbsoluteURL
        let answer: InForce
    }

    /// A response that was not stored.
    package struct Refusal: Sendable {
        package let reason: Storability.NoStoreReason
        package let status: HTTPStatus
        package let at: WallTime
    }

    package let state: Mutex<State>
    /// The user information and header fields of mounts, of which keys contain a digest.
    package let mountUsers = MountUsers()
    private let changes = Atomic<UInt64>(0)
    private let settingsChanges = Atomic<UInt64>(0)
    private let database: StateDatabase
    private let counters: Counters

    /// Restores the findings and vetoes of earlier runs; blocks on the disk.
    package init(settings: KeySettings, database: StateDatabase, counters: Counters) {
        self.database = database
        self.counters = counters
        var made = State(settings: settings)
        for record in database.records(KeyVetoRecord.self) {
            guard let reason = KeyVetoes.Reason(rawValue: record.reason),
                let scope = KeyVetoes.Scope(rawValue: record.scope)
            else { continue }
            _ = made.vetoes.add(reason, .init(origin: record.origin, scope: scope))
        }
        for record in database.records(KeyFindingRecord.self) {
            var finding = KeyEvidence.Finding()
            finding.pairs = record.pairs
            finding.paths = record.paths
            finding.isVetoed = record.isVetoed
            made.evidence.restore(finding, of: record.name, origin: record.origin)
        }
        state = Mutex(made)
    }

    /// Grows with every change after which a URL may have a different key.
    package var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Grows with every change of the settings, before `version` does: the settings decide which
    /// links of a rewritten text are marked as not to be stored.
    package var settingsVersion: UInt64 { settingsChanges.load(ordering: .acquiring) }

    /// Replaces the settings.
    package func replace(_ settings: KeySettings) {
        change { state in
            // Rewritten texts stay in memory if a reload changed certificates only.
            guard state.settings != settings else { return }
            state.noteFormer(before: settings)
            state.settings = settings
            settingsChanges.add(1, ordering: .releasing)
        }
    }

    private func change<Result: Sendable>(_ body: (inout sending State) -> sending Result) -> Result
    {
        let result = state.withLock { state in
            let result = body(&state)
            state.answers = [:]
            state.latest = []
            state.formerAnswers = [:]
            return result
        }
        changes.add(1, ordering: .releasing)
        return result
    }

    // MARK: Lookup

    /// Returns the policy of a URL.
    package func policy(of url: AbsoluteURL, in place: KeyPlace) -> Policy {
        inForce(for: url, in: place).policy
    }

    /// Returns the look-ahead settings of an origin; nil leaves a value to the general settings.
    package func ahead(of origin: Origin) -> (lookAhead: LookaheadMode?, keepHead: Int?) {
        let origins = state.withLock { $0.settings.origins }
        guard !origins.isEmpty else { return (nil, nil) }
        let found = origins.ahead(of: origin)
        return (found.lookAhead.flatMap { LookaheadMode($0) }, found.keepHead)
    }

    /// Returns the settings and rules in force for a URL.
    package func inForce(for url: AbsoluteURL, in place: KeyPlace) -> InForce {
        let latest = state.withLock { state -> InForce? in
            let index = state.latest.indices.first {
                state.latest[$0].place == place && state.latest[$0].url.sharesAuthority(with: url)
            }
            return index.map { state.latest[$0].answer }
        }
        if let latest { return latest }
        let question = Question(origin: url.origin, place: place)
        return state.withLock { state in
            let answer = state.answers[question] ?? Self.answer(question, state)
            if state.answers.count >= 512 { state.answers = [:] }
            state.answers[question] = answer
            state.latest.removeAll { $0.place == place }
            state.latest.append(Latest(place: place, url: url, answer: answer))
            return answer
        }
    }

    /// Returns the key of a URL, with the rules that produced it.
    package func key(of url: AbsoluteURL, in place: KeyPlace) -> KeyedURL {
        KeyMaker.key(of: url, rules: inForce(for: url, in: place).rules)
    }

    /// Returns the cache key of a resource's name.
    ///
    /// It is shared by all sessions, except for playlists (or resources of unknown role) whose
    /// credentials may make them specific to a viewer. A digest of the user information in a URL
    /// enters the keys of such playlists and, under a mount, every key: what the user information
    /// gave access to must not reach clients of another mount.
    package func cacheKey(
        of url: AbsoluteURL, session: Session, role: ResourceRole?, isMounted: Bool = false
    ) -> CacheKey {
        let hasUser = isMounted || role == nil || role == .playlist
        return cacheKey(
            of: url, session: session, role: role, isMounted: isMounted,
            as: hasUser ? mountUsers.user(of: url) : nil)
    }

    /// Returns the cache key of a resource's name whose mount user is already known; `inForce` is
    /// what is in force for its place, if that is known too.
    package func cacheKey(
        of url: AbsoluteURL, session: Session, role: ResourceRole?, isMounted: Bool = false,
        as mountUser: MountUser?, by inForce: InForce? = nil
    ) -> CacheKey {
        let place = KeyPlace(isMounted: isMounted, scope: role.keyScope)
        let rules = (inForce ?? self.inForce(for: url, in: place)).rules
        var key = CacheKey(url: KeyMaker.text(of: url, rules: rules))
        if isMounted {
            key.user = user(of: url, as: mountUser)
        } else if role == nil || role == .playlist,
            let viewer = session.viewer(user(of: url, as: mountUser))
        {
            key.audience = .credentials(viewer)
        }
        return key
    }

    /// Returns every key text that a URL's responses may be stored under, in any kind of place.
    package func texts(of url: AbsoluteURL) -> Set<String> {
        var texts: Set<String> = [url.normalisedForKey]
        for scope in KeyVetoes.Scope.allCases {
            for isMounted in [false, true] {
                texts.insert(key(of: url, in: KeyPlace(isMounted: isMounted, scope: scope)).text)
            }
        }
        return texts
    }

    static func answer(_ question: Question, _ state: State) -> InForce {
        let settings = state.settings.origins.settings(of: question.origin)
        var policy = settings.policy?.0 ?? state.settings.policy
        if question.place.isMounted, settings.policy == nil, policy == .media { policy = .rfc }
        let isPlayback = !question.place.isMounted && policy != .rfc
        let mode = settings.keys ?? (isPlayback ? state.settings.mode : .off)
        let name = question.origin.description
        let veto = state.vetoes[.init(origin: name, scope: question.place.scope)]
        var rules = Self.rules(
            settings.rules, learned: mode == .auto ? state.evidence.proposed(for: name) : [],
            isShipped: mode != .off)
        if veto != nil { rules.removeAll { $0.rule.merges } }
        return InForce(
            rules: rules, mode: mode, policy: policy, policyPattern: settings.policy?.pattern,
            veto: veto)
    }

    /// Returns the rules of an origin in their order: those of its settings, one for the parameters
    /// that are left out by evidence, and the built-in ones if these apply.
    static func rules(
        _ configured: [KeyRule], learned: [String], isShipped: Bool
    ) -> [KeyRuleInForce] {
        var rules: [KeyRuleInForce] = []
        if isShipped { rules.append(KeyRuleInForce(.signatures, .shipped)) }
        rules += configured.map { KeyRuleInForce($0, .configured) }
        if !learned.isEmpty {
            rules.append(KeyRuleInForce(.drop(learned.map { KeyGlob($0) }), .learned))
        }
        if isShipped {
            rules += [KeyRuleInForce(.sort, .shipped), KeyRuleInForce(.unique, .shipped)]
        }
        return rules
    }

    // MARK: Vetoes

    // Rows are queued under the lock, which does not wait for the disk: several threads change the
    // table, and the last row queued is what the next run has.

    /// Bars the merging of an origin's URLs permanently.
    package func veto(_ reason: KeyVetoes.Reason, _ url: AbsoluteURL, _ scope: KeyVetoes.Scope) {
        let place = KeyVetoes.Place(origin: url.origin.description, scope: scope)
        let isNew: Bool = change { state in
            guard state.vetoes.add(reason, place) else { return false }
            database.put(
                KeyVetoRecord(
                    origin: place.origin, scope: scope.rawValue, reason: reason.rawValue))
            return true
        }
        if isNew { counters.add(.keyVetoes) }
    }

    /// Deletes the vetoes and findings of an origin (`scheme://host[:port]`).
    package func forget(_ origin: String) {
        change { state in
            for scope in KeyVetoes.Scope.allCases {
                database.remove(KeyVetoRecord.self, key: [.text(origin), .text(scope.rawValue)])
            }
            for (name, _) in state.evidence.findings(of: origin) {
                database.remove(KeyFindingRecord.self, key: [.text(origin), .text(name)])
            }
            state.vetoes.forget(origin)
            state.evidence.forget(origin)
        }
    }

    /// Vetoes a parameter permanently, as a counter-example would.
    ///
    /// - Returns: false if nothing was learned about such a parameter of the origin.
    package func refuse(_ name: String, of origin: String) -> Bool {
        let isKnown: Bool = change { state in
            guard let finding = state.evidence.refuse(name, of: origin) else { return false }
            save(finding, of: name, origin)
            return true
        }
        return isKnown
    }

    /// Adds a finding to the evidence; keys change from now on where it changes what is proposed.
    package func learn(_ url: AbsoluteURL, _ fingerprint: KeyFingerprint) {
        let isNews = state.withLock { state -> Bool in
            guard let origin = state.evidence.learn(url, fingerprint) else { return false }
            for (name, finding) in state.evidence.findings(of: origin) {
                save(finding, of: name, origin)
            }
            return true
        }
        if isNews { change { _ in } }
    }

    private func save(_ finding: KeyEvidence.Finding, of name: String, _ origin: String) {
        database.put(
            KeyFindingRecord(
                origin: origin, name: name, pairs: finding.pairs, paths: finding.paths,
                isVetoed: finding.isVetoed))
    }
}

extension ResourceRole? {
    /// The scope of vetoes that covers resources of this role.
    package var keyScope: KeyVetoes.Scope {
        self == .playlist || self == .json ? .playlists : .media
    }
}
