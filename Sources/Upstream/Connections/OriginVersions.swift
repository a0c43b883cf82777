import URISyntax

/// Which origins speak HTTP/2, as far as their connections have shown: pure.
struct OriginVersions {
    /// Whether the last response or handshake of an origin was of HTTP/2.
    private var known: [Origin: Bool] = [:]

    /// The most origins that are remembered; when exceeded, all are learnt anew.
    private static let most = 1024

    func isKnown(_ origin: Origin) -> Bool { known[origin] != nil }

    func isMultiplexing(_ origin: Origin) -> Bool { known[origin] ?? false }

    /// Records whether an origin uses HTTP/2.
    mutating func note(_ origin: Origin, isMultiplexing: Bool) {
        if known.count >= Self.most { known.removeAll() }
        known[origin] = isMultiplexing
    }
}
