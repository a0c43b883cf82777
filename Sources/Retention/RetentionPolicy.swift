// The interface between the store, which deletes objects, and the policies, which select them.

/// A policy that selects the object to evict next when room is needed.
///
/// A policy is owned by one thread and never blocks. It is informed of every stored object and
/// every use, and knows nothing of files. The cost of each call except
/// ``nextVictim(now:isBarred:)`` does not depend on the number of objects.
package protocol RetentionPolicy: AnyObject {
    /// The capacity in bytes, which the limits of queues are derived from; may change.
    var capacity: Int64 { get set }
    /// The number of known objects.
    var count: Int { get }
    /// The bytes that the known objects take.
    var bytes: Int64 { get }
    /// The bytes of memory that the policy itself takes.
    var memoryBytes: Int { get }

    /// Returns the bytes that an object takes; nil for an unknown name.
    func bytes(of name: UInt128) -> Int64?

    /// Adds a stored object, or updates the facts of a known one.
    ///
    /// A new size of a known object is not a use and does not move it; a new title or kind adds it
    /// anew.
    func insert(_ name: UInt128, _ facts: Retained)

    /// Adds an object that an earlier process stored.
    ///
    /// Called with the most recently used object first, so that each is placed behind all known
    /// ones, and before the first call of ``nextVictim(now:isBarred:)``. A known object stays as it
    /// is.
    func restore(_ name: UInt128, _ facts: Retained)

    /// Records that a player read of an object at `now`, seconds since 1970.
    ///
    /// Ignores unknown names: the object was evicted before its use was reported.
    ///
    /// - Returns: the time of the previous use; nil for an unknown name.
    @discardableResult
    func touch(_ name: UInt128, now: UInt32) -> UInt32?

    /// Removes an object that was deleted for another reason than lack of room.
    func remove(_ name: UInt128)

    /// Returns the object to delete next and removes it; nil if every object is barred.
    ///
    /// A caller that does not delete it after all adds it again with ``insert(_:_:)``. Barred objects
    /// are those that are pinned or being read; a policy may treat them as used now. Looks at a
    /// bounded number of objects first, and at all of them only if every one of these is barred.
    func nextVictim(now: UInt32, isBarred: (UInt128) -> Bool) -> UInt128?
}
