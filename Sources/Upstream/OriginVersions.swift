import URISyntax

/// Which origins speak HTTP/2, as far as their connections have shown: pure.
struct OriginVersions {
    /// Origins whose HTTP version is known.
    private var known: Set<Origin> = []
    /// Those of them whose last response or handshake was of HTTP/2.
    private var multiplexing: Set<Origin> = []

    /// The most origins that are remembered; when exceeded, all are learnt anew.
    private static let most = 1024

    func isKnown(_ origin: Origin) -> Bool { known.contains(origin) }

    func isMultiplexing(_ origin: Origin) -> Bool { multiplexing.contains(origin) }

    /// Records whether an origin uses HTTP/2.
    mutating func note(_ origin: Origin, isMultiplexing: Bool) {
        if known.count >= Self.most {
            known.removeAll()
            multiplexing.removeAll()
        }
        known.insert(origin)
        if isMultiplexing {
            multiplexing.insert(origin)
        } else {
            multiplexing.remove(origin)
        }
    }
}
