import CachePolicy
import HLS

extension LiveMemory {
    /// True if a stored object may belong to an earlier epoch of its name.
    package func isOfFormerEpoch(_ facts: ObjectFacts, _ resource: Resource) -> Bool {
        guard resource.kind == nil, resource.policy != .offline, resource.role != .playlist,
            let since = since(resource.nameKey)
        else { return false }
        // A player with an old list, or a window that reaches back, requests the former bytes on
        // purpose.
        guard resource.epoch == epoch(of: resource.nameKey) else { return false }
        return since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }
}
