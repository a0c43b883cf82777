// Which parent a resource is asked of.
import Model
import Posix
import Reactor
import Upstream

extension FlightTable {
    /// Whether any parent answers.
    var hasParent: Bool { parents.isUp }

    /// The parent that a resource is asked of; nil for the origin itself.
    func parent(for resource: Resource) -> Parent? {
        guard !settings.parents.isEmpty else { return nil }
        for parent in settings.parents.all where parents.health.mark(of: parent.origin) != nil {
            parents.health.want(parent.origin, now: loop.now)
        }
        cookies.takePending(of: resource.session)
        return parents.parent(for: resource)
    }

    func isPrivate(_ resource: Resource) -> Bool {
        cookies.takePending(of: resource.session)
        return parents.isPrivate(resource)
    }
}
