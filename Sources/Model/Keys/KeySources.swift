/// The URLs that have delivered one version of a key's object, as digests.
///
/// Once one of them delivers another version, the resource has changed. If a URL does that which is
/// not among them, the URLs may name different resources.
struct KeySources: Sendable {
    /// The most URLs; a further one takes the place of the one that delivered longest ago.
    static let most = 8

    /// The latest one last.
    private var digests: [UInt64] = []

    func contains(_ source: UInt64) -> Bool { digests.contains(source) }

    mutating func add(_ source: UInt64) {
        digests.removeAll { $0 == source }
        if digests.count == Self.most { digests.removeFirst() }
        digests.append(source)
    }
}
