// The seam between the store, which deletes, and the policies, which say what goes next.

/// Decides which object goes next when room is needed.
///
/// A policy is owned by one thread and never blocks. It is told of every object that is kept and of
/// every use, and knows nothing of files. Each call but ``nextVictim(now:isBarred:)`` costs the same
/// however many objects there are.
package protocol RetentionPolicy: AnyObject {
    /// What may be kept, in bytes; parts of it are what queues are measured by. May change.
    var capacity: Int64 { get set }
    /// Objects known.
    var count: Int { get }
    /// The sum of what the known objects take, in bytes.
    var bytes: Int64 { get }
    /// What the policy itself takes in memory, in bytes.
    var memoryBytes: Int { get }

    /// Tells of an object that is kept from now on; of one that is known, its new facts.
    ///
    /// A new size, title or kind of a known object is no use of it and does not move it.
    func insert(_ name: UInt128, _ facts: Retained)

    /// Tells of an object that was kept by an earlier process.
    ///
    /// Called with the object used last first, so that each goes behind all that are known, and
    /// before the first victim is asked for. One that is known already stays as it is.
    func restore(_ name: UInt128, _ facts: Retained)

    /// Tells that a player read `bytesRead` bytes of an object at `now`, seconds since 1970.
    ///
    /// Unknown names are passed over: the object went while the news of its use was on the way.
    ///
    /// - Returns: when it was last used before that; nil for an unknown name.
    @discardableResult
    func touch(_ name: UInt128, now: UInt32, bytesRead: Int64) -> UInt32?

    /// Forgets an object that was deleted for another reason than room.
    func remove(_ name: UInt128)

    /// Names the object to delete next and forgets it; nil when every one is barred.
    ///
    /// Who cannot delete it after all tells so with ``insert(_:_:)``. Looks at no object more than
    /// a few times. One that is barred, because it is pinned or somebody reads it, counts as used
    /// now, so that the next call does not find it in its way again.
    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128?
}
