import CachePolicy
package import Posix

extension LiveMemory {
    /// Returns how long a playlist is reused before its origin is asked, as far as its last reading
    /// tells.
    ///
    /// - Parameters:
    ///   - resource: the playlist.
    ///   - wasLive: whether its stored head says that it is or was live, or that it names such a
    ///     list.
    /// - Returns: nil for a playlist that is not known to change, and for other resources.
    package func reuse(of resource: Resource, wasLive: Bool) -> Interval? {
        var facts = PlaylistFacts(isLive: false)
        if let list = list(resource.listKey) {
            let target = list.targetDuration
            facts.targetDuration = target <= PlaylistFacts.longestTarget ? target : nil
            facts.isLive = list.ended == nil
            facts.hasEnded = list.ended != nil
        } else {
            facts.namesLive = wasLive || parents.contains(resource.listKey)
        }
        return facts.longestReuse(by: resource.policy)
    }
}
