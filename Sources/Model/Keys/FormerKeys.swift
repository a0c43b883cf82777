// Keys that URLs had before their rules changed. A veto, a finding or the configuration changes the
// keys of an origin at any moment; what recordings, downloads and time shift windows hold of the
// origin stays stored under the former keys, and the origin may have removed it.
package import CachePolicy
package import HLS
import Routing
package import Store
import Synchronization
package import URISyntax

/// The rules that an origin's URLs had, or may have had, besides those in force.
struct FormerRules: Sendable {
    /// A set of rules that may have made a key.
    struct Way: Sendable {
        let rules: [KeyRuleInForce]
        /// True if responses of URLs that share a key by these rules were found to differ, or if
        /// the mode no longer has one of the rules.
        let isDisproved: Bool
        /// True if the configuration no longer has one of the rules.
        ///
        /// URLs that still share a key by the rules in force are not affected: an extended rule
        /// merges more than the rule it replaced.
        let isReplaced: Bool
        /// True if URLs that differ in more than spelling may share a key.
        let merges: Bool

        init(_ rules: [KeyRuleInForce], isDisproved: Bool, isReplaced: Bool = false) {
            self.rules = rules
            self.isDisproved = isDisproved
            self.isReplaced = isReplaced
            merges = rules.contains { $0.rule.merges }
        }
    }

    /// The sets of rules, the most likely to have made a key first.
    fileprivate(set) var ways: [Way] = []
    fileprivate let inForce: [KeyRuleInForce]
}

extension KeyTable.State {
    /// The most former settings that are remembered.
    private static let mostFormer = 4

    /// Remembers the settings of origins before they are replaced.
    mutating func noteFormer(before next: KeySettings) {
        guard next.origins != settings.origins else { return }
        let others = formerOrigins.filter { $0 != settings.origins && $0 != next.origins }
        formerOrigins = [settings.origins] + others.prefix(Self.mostFormer - 1)
    }

    /// Makes the former rules of a place: those that a change of mode, a veto or a finding leaves
    /// out or adds, combined with the settings of its origin now, with the former ones, and with
    /// none.
    fileprivate func formerRules(_ question: KeyTable.Question) -> FormerRules {
        let name = question.origin.description
        var configured: [[KeyRule]] = []
        for origins in [settings.origins] + formerOrigins + [KeyOrigins()] {
            let rules = origins.settings(of: question.origin).rules
            if !configured.contains(rules) { configured.append(rules) }
        }
        let findings = evidence.findings(of: name)
        let proposed = evidence.proposed(for: name)
        let refused = findings.filter { $0.finding.isVetoed }.map { $0.name }
        let veto = vetoes[.init(origin: name, scope: question.place.scope)]
        // `no-store` bars merging too, but does not tell two responses apart.
        let haveDiffered = veto.map { $0 != .noStore } ?? false
        let answer = KeyTable.answer(question, self)
        let mode = answer.mode
        let present = settings.origins.settings(of: question.origin).rules
        var ways: [FormerRules.Way] = []
        for learned in Set([proposed, [], proposed + refused]).sorted(by: { $0.count < $1.count }) {
            let isUnlearned =
                learned.count > proposed.count || (!learned.isEmpty && mode != .auto)
            for rules in configured {
                let isRemoved = rules.contains { $0.merges && !present.contains($0) }
                for isShipped in [true, false] {
                    ways.append(
                        .init(
                            KeyTable.rules(rules, learned: learned, isShipped: isShipped),
                            isDisproved: haveDiffered || isUnlearned
                                || (isShipped && mode == .off),
                            isReplaced: isRemoved))
                }
            }
        }
        var former = FormerRules(inForce: answer.rules)
        // A key that several sets of rules make is tried only once: by the set that still holds, if
        // there is one.
        let undisproved = ways.filter { !$0.isDisproved }
        former.ways =
            undisproved.filter { !$0.isReplaced } + undisproved.filter(\.isReplaced)
            + ways.filter(\.isDisproved)
        let unmerged = KeyTable.rules([], learned: [], isShipped: true).filter { !$0.rule.merges }
        former.ways.append(.init(unmerged, isDisproved: false))
        former.ways.append(.init([], isDisproved: false))
        return former
    }
}

extension KeyTable {
    private func formerRules(of url: AbsoluteURL, _ scope: KeyVetoes.Scope) -> FormerRules {
        let question = Question(origin: url.origin, place: KeyPlace(scope: scope))
        return state.withLock { state in
            if let known = state.formerAnswers[question] { return known }
            let made = state.formerRules(question)
            if state.formerAnswers.count >= 512 { state.formerAnswers = [:] }
            state.formerAnswers[question] = made
            return made
        }
    }

    /// Finds what is stored of a playback URL under a key that it had before its rules changed.
    ///
    /// Called where nothing is stored under its key: makes four keys for an origin without settings
    /// and findings, some dozens at most, and looks for files under those that differ.
    ///
    /// - Parameters:
    ///   - key: the key of the URL by the rules in force.
    ///   - url: the URL.
    ///   - session: the session that asks for it.
    ///   - role: its role.
    ///   - store: the store.
    ///   - live: the live lists, if the key is meant in the current epoch of its name, which only
    ///     the former name may have; nil if it is meant in its own epoch.
    ///   - isUsable: whether an object has what is wanted.
    /// - Returns: the former key, and the object; nil if there is none.
    package func former(
        _ key: CacheKey, of url: AbsoluteURL, _ session: Session, role: ResourceRole?,
        in store: ObjectStore, live: LiveMemory? = nil, where isUsable: (StoredObject) -> Bool
    ) -> (key: CacheKey, object: StoredObject)? {
        var tried: Set<String> = [key.url]
        let rules = formerRules(of: url, role.keyScope)
        for way in rules.ways {
            let text = KeyMaker.text(of: url, rules: way.rules)
            guard tried.insert(text).inserted else { continue }
            var former = key.at(text)
            if let live {
                former.epoch = max(former.epoch, live.epoch(of: ObjectKey(former.name)))
            }
            if let object = store.peek(ObjectKey(former)), !object.isDiscarded, isUsable(object),
                Self.isOf(url, object, under: text, by: way, rules.inForce, session, store)
            {
                return (former, object)
            }
        }
        return nil
    }

    /// True if an object under a former key is what a URL stands for.
    ///
    /// The object may have been fetched from another URL that shared the key, even one with another
    /// path, and a redirect hides which URL was requested. If the last hop has this URL, the object
    /// counts. Otherwise it counts if it belongs to the session's title, or is pinned while that
    /// title is pinned, and if such responses were not found to differ. Where they were, an object
    /// of the session's own recording still counts, since it cannot be fetched again, unless the
    /// last hop shows that another URL was requested.
    private static func isOf(
        _ url: AbsoluteURL, _ object: StoredObject, under text: String, by way: FormerRules.Way,
        _ inForce: [KeyRuleInForce], _ session: Session, _ store: ObjectStore
    ) -> Bool {
        guard way.merges else { return true }
        guard let head = ObjectFacts.of(object)?.head,
            let from = try? AbsoluteURL(head.finalURL)
        else { return false }
        guard from.normalisedForKey != url.normalisedForKey else { return true }
        let title = session.id.number
        let differs = {
            KeyMaker.text(of: from, rules: inForce) != KeyMaker.text(of: url, rules: inForce)
        }
        guard !way.isDisproved, !way.isReplaced || !differs() else {
            // A last hop that has the key may itself be the URL that was requested for it.
            return session.shift.recording != nil && object.title == title
                && KeyMaker.text(of: from, rules: way.rules) != text
        }
        return object.title == title || (store.pin(of: title) != nil && store.isPinned(object))
    }
}

extension Resource {
    /// Returns the resource under a key that its URL had before its rules changed, if a response
    /// that is stored under that key is to be served.
    ///
    /// While the origin answers, this concerns only pinned titles and the segments of time shift
    /// windows, which the origin may have removed; everything else is fetched again, and so is a
    /// name that the origin's list has given a new meaning. Live lists with a time shift window
    /// continue under the key that their followers use; those of pinned titles stay under their
    /// former key, and are revalidated there.
    package func underFormerKey(
        _ keys: KeyTable, _ live: LiveMemory?, _ store: ObjectStore, isOriginUp: Bool,
        where isUsable: (StoredObject) -> Bool
    ) -> Resource? {
        guard mayUseFormerKey(isOriginUp: isOriginUp, store) else { return nil }
        let ways = mayHaveOwnCopy ? [self, ownCopy] : [self]
        for known in ways {
            let former = keys.former(
                known.cacheKey, of: url, session, role: role, in: store
            ) { object in
                isUsable(object) && !(isOriginUp && live?.isReplaced(object, self) == true)
            }
            if let former { return changing { $0.cacheKey = former.key } }
        }
        return nil
    }

    private func mayUseFormerKey(isOriginUp: Bool, _ store: ObjectStore) -> Bool {
        guard !followsHTTP, !isMounted, live.directives == nil else { return false }
        if policy == .offline || !isOriginUp { return true }
        guard policy == .media else { return false }
        guard session.isShifted else { return store.pin(of: session.id.number) != nil }
        return !role.isOpen && role != .playlist && role != .json
    }
}
