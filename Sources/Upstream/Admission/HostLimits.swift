package import URISyntax

/// The limits of transfers to single hosts (`--origin-limit`).
///
/// They hold for an origin, while transfers are counted for its host, on any port.
package struct HostLimits: Sendable {
    private let find: (@Sendable (Origin) -> Int?)?

    /// Makes limits of no host.
    package init() { find = nil }

    /// - Parameter find: returns the limit of an origin, 1 or more, or nil for none; must return
    ///   the same for the same origin each time.
    package init(_ find: @escaping @Sendable (Origin) -> Int?) { self.find = find }

    /// True if no host has a limit.
    package var isEmpty: Bool { find == nil }

    /// Looks up how many transfers the host of an origin may have.
    ///
    /// - Parameter origin: not computed if no host has a limit.
    /// - Returns: the limit, 1 or more; 0 without one.
    package func limit(of origin: @autoclosure () -> Origin) -> Int {
        guard let find else { return 0 }
        return find(origin()) ?? 0
    }
}
