// Public and private hosts behind one URL: a redirect may lead from the former to the latter.
//
// The head of an object names the host of its bytes, which decides whether pages of other sites may
// have them (decision 18). So no object holds bytes of both kinds of hosts.
import CachePolicy
import Model
import Store
import URISyntax

extension FlightTable {
    /// True if an object and a response may have the same body: both come from hosts that may be
    /// private, or neither does.
    func isOfOneNetwork(_ object: StoredObject, _ head: StoredHead) -> Bool {
        guard services.settings.reachesPrivate, !services.settings.allowsPrivate,
            let known = ObjectFacts.of(object)?.head, known.finalURL != head.finalURL
        else { return true }
        return services.settings.mayBePrivate(finalURL: known.finalURL)
            == services.settings.mayBePrivate(finalURL: head.finalURL)
    }

    /// True if a redirect led from a public URL to a private host: the shared store names the host
    /// of playlists only, so other nodes would give the body to anybody.
    func isFromInside(_ object: StoredObject, _ resource: Resource) -> Bool {
        guard services.settings.reachesPrivate,
            !services.settings.mayBePrivate(resource.url.asciiHost),
            let head = ObjectFacts.of(object)?.head
        else { return false }
        return services.settings.mayBePrivate(finalURL: head.finalURL)
    }
}

extension Flight {
    /// True if a request may join this flight, as far as pages of other sites are concerned.
    ///
    /// A player must not share the refusal of a page, and a page must not wait for bytes that may
    /// come from a private host: until its head has arrived, a flight may be redirected there.
    func isJoinedBy(isForPage: Bool) -> Bool {
        if isForPage == terms.isForPage { return true }
        guard isForPage, response != nil, let object, let facts = ObjectFacts.of(object)
        else { return false }
        return !services.settings.mayBePrivate(finalURL: facts.head.finalURL)
    }
}
