import CachePolicy
import HLS
package import Posix
package import Store

extension LiveMemory {
    /// True if a stored object may belong to an earlier epoch of its name.
    package func isOfFormerEpoch(_ facts: ObjectFacts, _ resource: Resource) -> Bool {
        guard !resource.followsHTTP, resource.policy != .offline, resource.role != .playlist,
            let since = since(resource.nameKey)
        else { return false }
        // A player with an old list, or with a time shift window, requests the former bytes on
        // purpose.
        guard resource.epoch == epoch(of: resource.nameKey),
            since.isAfter(facts.times, responseTime: facts.head.responseTime)
        else { return false }
        // A longer window lists what the name meant while the list showed it, and the origin may
        // have removed that: a list that lagged once must not have it asked.
        return !resource.session.isShifted || resource.role == .key
            || sinceInWindow(resource.nameKey) != nil
    }

    /// True if a stored object that `isOfFormerEpoch` doubts is what its name still means; asked
    /// once the origin has answered that it has nothing under the name.
    ///
    /// After a restart it is not known since when the names of the stored list have had their
    /// meaning. The object is served if it arrived after the list had begun to show the name in its
    /// place: an object that a ring of names, or a former stream, had under the name is older. A
    /// name that was seen with another meaning in this run does not keep its former meaning.
    package func keepsMeaning(_ facts: ObjectFacts, _ resource: Resource) -> Bool {
        guard !resource.followsHTTP, resource.holdsWhileKept, resource.role != .playlist,
            resource.epoch == epoch(of: resource.nameKey),
            let start = storedStart(of: resource.nameKey)
        else { return false }
        return facts.head.responseTime >= start
    }

    /// True if a stored key of a live stream is the one that its segments need; asked once the
    /// origin has answered that it has nothing under the name.
    ///
    /// Origins drop a key with the last segment of their window that needs it, while a time shift
    /// window or a recording still has such segments. As long as a list shows the name, the origin
    /// may have changed the key without a new line: its answer counts then.
    ///
    /// - Parameters:
    ///   - facts: the facts of the stored key.
    ///   - resource: the key as it was requested.
    ///   - name: the cache key of its name in lists, which differs from that of a copy for one
    ///     session.
    ///   - now: the time of the origin's answer.
    /// - Returns: false for anything but a key that playlist semantics apply to.
    package func keepsKey(
        _ facts: ObjectFacts, _ resource: Resource, named name: ObjectKey, at now: Monotonic
    ) -> Bool {
        guard case .media = resource.policy, !resource.followsHTTP, resource.role == .key else {
            return false
        }
        // An object of a former epoch is stored under that epoch; the cache key of a copy for one
        // session has no epoch.
        if resource.epoch < epoch(of: name) { return !resource.isKept(for: resource.session) }
        guard !isShown(name, at: now) else { return false }
        // A name that is not known left its window before a restart, or long ago. A list that was
        // not read since, or was dropped for many others, may still show it, but the key does not
        // tell which list that is; the key is used, since the window cannot be played without it.
        guard let since = since(name) else { return true }
        return !since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }

    /// True if an object under a former key of a resource may belong to an earlier epoch of its
    /// name, and the origin has what the name means now.
    ///
    /// The former name proves nothing, since its list is now read with other keys. All names are
    /// new to the first reading with these keys, so names that have left the window since are not
    /// doubted.
    func isReplaced(_ object: StoredObject, _ resource: Resource) -> Bool {
        guard !resource.followsHTTP, resource.policy != .offline, resource.role != .playlist,
            let facts = ObjectFacts.of(object), let since = sinceInWindow(resource.nameKey),
            resource.epoch == epoch(of: resource.nameKey)
        else { return false }
        return since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }
}
