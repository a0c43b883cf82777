// Which parent a resource is asked of.
import Model
import Posix
import Reactor
import Upstream

extension FlightTable {
    /// Whether any parent answers.
    var hasParent: Bool { services.origins.parents.isUp }

    /// The parent that a resource is asked of; nil for the origin itself.
    func parent(for resource: Resource) -> Parent? {
        guard !services.settings.parents.isEmpty else { return nil }
        let choice = services.origins.parents
        for parent in services.settings.parents.all
        where choice.health.mark(of: parent.origin) != nil {
            choice.health.want(parent.origin, now: loop.now)
        }
        cookies.takePending(of: resource.session)
        return choice.parent(for: resource)
    }

    func isPrivate(_ resource: Resource) -> Bool {
        cookies.takePending(of: resource.session)
        return services.origins.parents.isPrivate(resource)
    }
}
