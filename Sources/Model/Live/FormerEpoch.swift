import CachePolicy
import HLS

extension LiveMemory {
    /// Whether a stored object may be what its name stood for before.
    package func isOfFormerEpoch(_ facts: ObjectFacts, _ resource: Resource) -> Bool {
        guard resource.kind == nil, resource.policy != .offline, resource.role != .playlist,
            let since = since(resource.nameKey)
        else { return false }
        // A player with an old list, or a window that reaches back, wants the former bytes.
        guard resource.epoch == epoch(of: resource.nameKey) else { return false }
        return since.isAfter(facts.times, responseTime: facts.head.responseTime)
    }
}
