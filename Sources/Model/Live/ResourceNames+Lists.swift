package import CachePolicy
package import HLS
package import Store
package import URISyntax

extension ResourceNames {
    /// Passes the names in a playlist that was read from the store to the memory of live lists.
    ///
    /// - Throws: the errors that rewriting it would throw.
    package func noteNames(
        in list: (text: [UInt8], base: AbsoluteURL), of resource: Resource,
        _ object: StoredObject, options: PlaylistReading
    ) throws(PlaylistError) {
        guard resource.role != .json, let facts = ObjectFacts.of(object) else { return }
        let head = facts.head
        let place = LiveMemory.Place(
            list: resource.listKey, generation: object.generation,
            times: EpochTable.Times(
                requested: head.requestTime, received: head.responseTime, steady: facts.times),
            keyVersion: keys.version)
        guard !live.knows(place),
            let reading = try LiveReading(
                list.text, base: list.base, wasLive: live.list(resource.listKey) != nil,
                options: options)
        else { return }
        live.take(reading, at: place) { url, role in
            ObjectKey(keys.cacheKey(of: url, session: resource.session, role: role))
        }
        learnLengths(reading, resource.session)
    }

    /// Returns the facts of a stored playlist that its freshness depends on.
    ///
    /// The stored head says that the list was live for as long as it is stored, the memory of live
    /// lists says so for heads that earlier versions stored, and for a multivariant playlist until
    /// its next revalidation.
    package func facts(
        _ summary: PlaylistSummary, of resource: Resource, _ stored: ObjectFacts
    ) -> PlaylistFacts {
        PlaylistFacts(
            summary, wasLive: stored.head.wasLive || live.wasLive(resource.listKey),
            mayBeCut: stored.head.mayBeCut)
    }

    /// Sets the length of stored resources that are listed as whole: their parts are listed only a
    /// little longer.
    private func learnLengths(_ reading: LiveReading, _ session: Session) {
        for (url, container) in reading.containers
        where container.stage == .whole && container.end > 0 {
            let key = currentKey(url, session: session, role: .segment, as: nil).key
            guard let object = store.peek(ObjectKey(key)), object.total == nil else {
                continue
            }
            _ = object.learnTotal(container.end)
        }
    }
}
