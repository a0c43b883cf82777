// The origins that answer, and the parents and the store that stand in for the others.
package import Model
import Posix
import URISyntax
import Upstream

/// The origins that do not answer at present, the parents that are asked in their place, and the
/// store that nodes share.
///
/// Any thread may use it.
package struct OriginStates: Sendable {
    /// The origins that currently do not answer.
    package let health = OriginHealth()
    /// The parents that answer, and what is asked of them.
    let parents: ParentChoice
    /// What is known of the second level; nil without one.
    let sharedStore: SharedStoreReport?

    init(_ parents: Parents, sharedStore: SharedStoreReport?) {
        self.parents = ParentChoice(parents)
        self.sharedStore = sharedStore
    }

    /// True if an origin is down, and the second level does not answer, which may have the rest.
    var hasDown: Bool { health.hasDown && sharedStore?.isUp != true }

    /// True if a playlist is reduced to what is stored, since an origin is down.
    ///
    /// It is not if a parent is asked for everything that it names: whether that has the rest does not
    /// depend on who answers here.
    func mustReduce(_ playlist: Resource) -> Bool { hasDown && !parents.takesTitle(of: playlist) }

    /// The state of a resource's origin; up if a parent is asked in its place.
    func state(of resource: Resource) -> OriginHealth.State {
        let state = health.state(of: resource.url.origin)
        return state == .up || parents.parent(for: resource) == nil ? state : .up
    }

    /// True if the return of an origin is waited for, and no parent is asked in its place.
    ///
    /// - Parameters:
    ///   - resource: the resource that is fetched.
    ///   - origin: the origin that a redirect led to; nil for that of the resource.
    ///   - now: the time.
    /// - Returns: whether it is.
    func isAwaited(_ resource: Resource, at origin: Origin? = nil, now: Monotonic) -> Bool {
        health.mark(of: origin ?? resource.url.origin)?.isAwaited(now: now) == true
            && parents.parent(for: resource) == nil
    }
}
