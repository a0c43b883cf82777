package import CachePolicy
package import HTTP
import Posix
package import Store
import Synchronization
import URISyntax

/// The key table's view of fetched responses: those that forbid a merge, and those to learn from.
extension KeyTable {
    /// Checks the head of a response to a merged URL before it is stored.
    ///
    /// Vetoes the merge if the response must not be stored, or if it is a different representation
    /// than another URL delivered under the same key, as the object that is stored there.
    package func watch(
        _ resource: Resource, _ head: StoredHead, total: Int64?, former: StoredObject?
    ) {
        let scope: KeyVetoes.Scope = head.isPlaylist ? .playlists : resource.role.keyScope
        if CacheControl(head.fields).noStore { return veto(.noStore, resource.url, scope) }
        let source = KeyEvidence.hash(resource.url.normalisedForKey)
        let stored =
            head.isPlaylist
            ? nil
            : former.flatMap { ObjectFacts.of($0)?.head }.flatMap { $0.isPlaylist ? nil : $0 }
        let difference = stored.flatMap {
            Self.difference(of: head, total: total, from: $0, former?.total)
        }
        let before = state.withLock { state in
            let before = state.sources[resource.key]
            var sources: KeySources? = KeySources()
            if let stored, difference == nil {
                sources = before ?? Self.sources(of: stored, for: resource.url)
            }
            sources?.add(source)
            state.sources[resource.key] = sources
            return before
        }
        guard let stored, let difference else { return }
        // A URL that has brought the stored version brings a later one now. Of an object from an
        // earlier run, only the URL that answered is known; a redirect hides the URL that was
        // requested.
        guard before.map({ !$0.contains(source) }) ?? Self.isOther(stored, than: resource.url)
        else { return }
        veto(difference, resource.url, scope)
    }

    /// Returns the source of a version that an earlier run has stored.
    ///
    /// - Parameters:
    ///   - stored: its head.
    ///   - url: a URL that delivers the same version.
    /// - Returns: nil if a redirect hides which URL was requested.
    private static func sources(of stored: StoredHead, for url: AbsoluteURL) -> KeySources? {
        guard let from = try? AbsoluteURL(stored.finalURL), from.path == url.path else {
            return nil
        }
        var sources = KeySources()
        sources.add(KeyEvidence.hash(from.normalisedForKey))
        return sources
    }

    /// Returns how a response differs from the stored version; nil if its head does not show that
    /// it does.
    private static func difference(
        of head: StoredHead, total: Int64?, from stored: StoredHead, _ known: Int64?
    ) -> KeyVetoes.Reason? {
        if let known, let total, known != total { return .length }
        if let known = stored.strongValidator, let now = head.strongValidator, known != now,
            known.hasPrefix("\"") == now.hasPrefix("\"")
        {
            return .validator
        }
        return nil
    }

    /// Whether URLs that differ in more than spelling may share a resource's key.
    ///
    /// - Parameters:
    ///   - resource: the resource.
    ///   - mayStandIn: whether its URL may have replaced the one that its key was made of.
    /// - Returns: false also for the rest of a body at the URL that replaced an expired one, if the
    ///   rules give that another key: they have not merged the two, and what differs between them
    ///   is no fault of theirs.
    package func isMerged(_ resource: Resource, mayStandIn: Bool) -> Bool {
        guard resource.mayStore, resource.live.playQuery == nil else { return false }
        let place = KeyPlace(isMounted: resource.isMounted, scope: resource.role.keyScope)
        let rules = inForce(for: resource.url, in: place).rules
        guard KeyMaker.isMerged(resource.url, rules: rules) else { return false }
        guard mayStandIn else { return true }
        let url = resource.live.directives == nil ? resource.url : resource.url.withoutDirectives
        return KeyMaker.text(of: url, rules: rules) == resource.cacheKey.url
    }

    /// True if the URL that answered differs from a requested one in more than spelling; false
    /// where a redirect to another path hides which URL was requested.
    static func isOther(_ stored: StoredHead, than url: AbsoluteURL) -> Bool {
        guard let from = try? AbsoluteURL(stored.finalURL) else { return false }
        return from.path == url.path && from.normalisedForKey != url.normalisedForKey
    }

    /// Notes why a response is not stored, for `why`.
    package func note(
        _ reason: Storability.NoStoreReason, _ status: HTTPStatus, _ resource: Resource
    ) {
        let refusal = Refusal(reason: reason, status: status, at: .now())
        state.withLock { $0.refusals[resource.key] = refusal }
    }

    /// Returns why the last response for a key was not stored; nil if none was refused recently.
    package func refusal(_ key: ObjectKey) -> Refusal? {
        state.withLock { $0.refusals[key] }
    }

    /// Learns from a complete object that has just been fetched.
    ///
    /// Reads back its first and last block, which are in the page cache or, for a short body that
    /// arrived in one piece, in memory.
    package func learn(_ resource: Resource, _ object: StoredObject, isMerged: Bool) {
        guard resource.mayStore, resource.live.playQuery == nil, object.isComplete,
            let total = object.total, total > 0,
            let head = ObjectFacts.of(object)?.head, !head.isPlaylist, head.status == .ok
        else { return }
        guard isMerged || resource.url.queryRange != nil,
            let content = Self.content(of: object, total)
        else { return }
        if isMerged { compare(content, resource, resource.role.keyScope) }
        guard resource.url.queryRange != nil, let validator = head.strongValidator else { return }
        learn(
            resource.url,
            KeyFingerprint(
                validator: KeyEvidence.hash(validator), length: total, content: content))
    }

    /// Vetoes the merge if only other URLs delivered different bytes under the same key.
    private func compare(_ content: UInt64, _ resource: Resource, _ scope: KeyVetoes.Scope) {
        let source = KeyEvidence.hash(resource.url.normalisedForKey)
        let before = state.withLock { state in
            let before = state.contents[resource.key]
            var sources = KeySources()
            if let before, before.content == content { sources = before.sources }
            sources.add(source)
            state.contents[resource.key] = (sources, content)
            return before
        }
        guard let before, before.content != content, !before.sources.contains(source) else {
            return
        }
        veto(.content, resource.url, scope)
    }

    private static func content(of object: StoredObject, _ total: Int64) -> UInt64? {
        let count = min(4_096, total)
        guard let first = block(of: object, from: 0, count: Int(count)) else { return nil }
        let digest = KeyEvidence.digest(first.span)
        guard total > count else { return digest }
        guard let last = block(of: object, from: total - count, count: Int(count)) else {
            return nil
        }
        return digest ^ (KeyEvidence.digest(last.span) &* 3)
    }

    private static func block(of object: StoredObject, from start: Int64, count: Int) -> [UInt8]? {
        if let known = object.bytesInMemory(start..<start + Int64(count)) { return known }
        let bytes = try? object.readBody(from: start, count: count)
        return bytes?.count == count ? bytes : nil
    }
}
