import CachePolicy
import HLS
import Store

extension LiveMemory {
    /// True if a stored object may belong to an earlier epoch of its name.
    package func isOfFormerEpoch(_ facts: ObjectFacts, _ resource: Resource) -> Bool {
        guard !resource.followsHTTP, resource.policy != .offline, resource.role != .playlist,
            let since = since(resource.nameKey)
        else { return false }
        // A player with an old list, or a window that reaches back, requests the former bytes on
        // purpose.
        guard resource.epoch == epoch(of: resource.nameKey) else { return false }
        return since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }

    /// True if an object under a former key of a resource may belong to an earlier epoch of its
    /// name, and the origin has what the name means now.
    ///
    /// The former name tells nothing: its list is read with other keys now. To the first reading
    /// with these all names are new, so that what has left the window since is not doubted.
    func isReplaced(_ object: StoredObject, _ resource: Resource) -> Bool {
        guard !resource.followsHTTP, resource.policy != .offline, resource.role != .playlist,
            let facts = ObjectFacts.of(object), let since = sinceInWindow(resource.nameKey),
            resource.epoch == epoch(of: resource.nameKey)
        else { return false }
        return since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }
}
