// Public and private hosts behind one URL: a redirect may lead from the former to the latter.
//
// The head of an object says where its bytes come from, and by it pages of other sites are kept from
// what private hosts serve (decision 18). So no object holds bytes of both.
import CachePolicy
import Model
import Store
import URISyntax

extension FlightTable {
    /// True if an object and a response may have the same body: both come from hosts that may be
    /// private, or neither does.
    func isOfOneNetwork(_ object: StoredObject, _ head: StoredHead) -> Bool {
        guard !services.settings.privateHosts.isEmpty, !services.settings.allowsPrivate,
            let known = ObjectFacts.of(object)?.head, known.finalURL != head.finalURL
        else { return true }
        return services.settings.mayBePrivate(finalURL: known.finalURL)
            == services.settings.mayBePrivate(finalURL: head.finalURL)
    }

    /// True if a redirect led from a public URL to a private host: the shared store names the host
    /// of playlists only, so other nodes would give the body to anybody.
    func isFromInside(_ object: StoredObject, _ resource: Resource) -> Bool {
        guard !services.settings.privateHosts.isEmpty,
            !services.settings.mayBePrivate(resource.url.asciiHost),
            let head = ObjectFacts.of(object)?.head
        else { return false }
        return services.settings.mayBePrivate(finalURL: head.finalURL)
    }
}

extension Flight {
    /// True if a request for a page of another site, or another one, may join by that.
    ///
    /// What is refused to a page of another site is not refused to a player, and a page waits for no
    /// bytes that may come from a private host: until its head has come, a flight may be led there.
    func isJoinedBy(isForPage: Bool) -> Bool {
        if isForPage == terms.isForPage { return true }
        guard isForPage, response != nil, let object, let facts = ObjectFacts.of(object)
        else { return false }
        return !services.settings.mayBePrivate(finalURL: facts.head.finalURL)
    }
}
