// The origins that the daemon may fetch from, where the operator limits them to those named.
import Synchronization
package import URISyntax

/// Decides on the origin of a URL, before its name is looked up and before any request.
package struct OnlyOrigins: Sendable {
    private let isNamed: (@Sendable (Origin) -> Bool)?

    /// Permits all origins.
    package init() { isNamed = nil }

    /// Permits the origins for which `isNamed` returns true.
    package init(_ isNamed: @escaping @Sendable (Origin) -> Bool) { self.isNamed = isNamed }

    /// Returns why nothing may be fetched from an origin; nil if it is permitted.
    ///
    /// - Parameters:
    ///   - origin: that of the requested URL, also where a parent or a proxy is asked for it; not
    ///     computed if all are permitted.
    ///   - isRedirect: true if a redirect leads there.
    /// - Returns: an error that names the option.
    package func refusal(
        of origin: @autoclosure () -> Origin, isRedirect: Bool = false
    ) -> UpstreamError? {
        guard let isNamed else { return nil }
        let origin = origin()
        guard !isNamed(origin) else { return nil }
        return UpstreamError(.originNotNamed(isRedirect: isRedirect), host: origin.host)
    }
}

/// The limit in force, which a reload replaces.
package final class OnlyOriginsInForce: Sendable {
    private let limit: Mutex<OnlyOrigins>

    package init(_ limit: OnlyOrigins = OnlyOrigins()) { self.limit = Mutex(limit) }

    package var current: OnlyOrigins { limit.withLock { $0 } }

    /// Replaces the limit; transfers that have begun are not affected until a redirect.
    package func replace(with limit: OnlyOrigins) { self.limit.withLock { $0 = limit } }
}
