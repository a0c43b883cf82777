// Which parent a resource is asked of: the upstream loop sends requests by it, and responses are
// planned by it while an origin is down.
import HTTP
package import Posix
package import Upstream
import URISyntax

/// The parents: which of them answer, and which a resource is asked of.
///
/// Any thread may use it; only the upstream loop changes what it depends on.
package final class ParentChoice: Sendable {
    private let parents: Parents
    /// The parents that do not answer: none of these is an origin whose lists would be cut while it
    /// is down.
    package let health = OriginHealth(countsTLS: true)
    /// What parents may have stored of what was purged here.
    package let purges = ParentPurges()
    /// The cookies that origins set; requests with any go to a trusted parent or to none.
    package let jars = CookieJars()

    package init(_ parents: Parents) {
        self.parents = parents
    }

    /// Makes requests to parents bypass what these have stored of a URL, normalised as in cache
    /// keys, that an unsafe request may have changed.
    package func noteWritten(_ text: String, now: Monotonic) {
        guard !parents.isEmpty else { return }
        purges.add(.written(text), now: now)
    }

    /// True if any parent answers.
    package var isUp: Bool { parents.all.contains { answers($0) } }

    private func answers(_ parent: Parent) -> Bool { health.state(of: parent.origin) == .up }

    /// Returns the parent that a resource is asked of; nil for the origin itself.
    ///
    /// A request that would show a session's headers or cookies goes to a trusted parent or to
    /// none. One with header fields of a mount goes to none: a parent does not know that these must
    /// not open what it stores to others.
    package func parent(for resource: Resource) -> Parent? {
        // A range of a growing file is not part of a complete response, so a cache that follows
        // HTTP could not keep it.
        guard !parents.isEmpty, resource.live.growth == nil,
            resource.mountUser?.hasFields != true
        else { return nil }
        let order = parents.order(for: resource.keyText)
        guard let parent = order.first(where: { answers($0) }) else { return nil }
        guard isPrivate(resource) else { return parent }
        return order.first { $0.isTrusted && answers($0) }
    }

    /// True if a request for a resource would show headers or cookies of its session.
    package func isPrivate(_ resource: Resource) -> Bool {
        let forwarded = resource.forwardedFields
        return !resource.session.fields.isEmpty || resource.url.userinfo != nil
            || forwarded.contains(.authorization) || forwarded.contains(.cookie)
            || (!resource.followsHTTP
                && jars.field(for: resource.url, of: resource.session.id, now: .now()) != nil)
    }

    /// True if a parent is asked for a playlist and for everything that it names: its session has
    /// nothing that a parent must not see, whatever the URL.
    package func takesTitle(of playlist: Resource) -> Bool {
        !takers(ofTitle: playlist).isEmpty
    }

    /// Returns the parents that are asked for a playlist and for everything that it names while
    /// they answer; none if origins are asked for some of it.
    package func takers(ofTitle playlist: Resource) -> [Parent] {
        guard parent(for: playlist) != nil else { return [] }
        let isPublic = !isPrivate(playlist) && jars.isEmpty(of: playlist.session.id)
        return parents.all.filter { answers($0) && (isPublic || $0.isTrusted) }
    }

    /// True if one of the parents that are asked for a playlist and for everything that it names
    /// answered lately.
    package func hasTaker(
        ofTitle playlist: Resource, heardWithin limit: Interval, now: Monotonic
    ) -> Bool {
        takers(ofTitle: playlist).contains { parent in
            health.lastAnswer(of: parent.origin).map { now - $0 < limit } ?? false
        }
    }
}
