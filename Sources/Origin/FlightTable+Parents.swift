// Which parent a resource is asked of.
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Reactor
import Upstream
import URISyntax

extension FlightTable {
    /// Whether any parent answers.
    var hasParent: Bool {
        !settings.parents.isEmpty && settings.parents.all.contains { answers($0) }
    }

    private func answers(_ parent: Parent) -> Bool {
        parentProbes.health.state(of: parent.origin) == .up
    }

    /// The parent that a resource is asked of; nil for the origin itself.
    ///
    /// What would show a session's headers or cookies goes to a trusted one or to none.
    func parent(for resource: Resource) -> Parent? {
        // A range of a file that grows is no part of a whole that a cache by HTTP's rules could keep.
        guard !settings.parents.isEmpty, resource.live.growth == nil else { return nil }
        let order = settings.parents.order(for: resource.keyText)
        for parent in order where parentProbes.health.mark(of: parent.origin) != nil {
            parentProbes.health.want(parent.origin, now: loop.now)
        }
        guard let parent = order.first(where: { answers($0) }) else { return nil }
        guard isPrivate(resource) else { return parent }
        return order.first { $0.isTrusted && answers($0) }
    }

    func isPrivate(_ resource: Resource) -> Bool {
        let forwarded = resource.forwardedFields
        return !resource.session.fields.isEmpty || resource.url.userinfo != nil
            || forwarded.contains(.authorization) || forwarded.contains(.cookie)
            || (resource.kind == nil
                && cookieField(for: resource.url, session: resource.session) != nil)
    }
}
