import Model
import URISyntax

/// The first origins that a playlist names, to connect to while the playlist is being sent.
struct EarlyOrigins {
    private(set) var origins: [Origin] = []
    private let settings: ProxySettings
    /// True if the playlist itself comes from an origin that may have a private address.
    private let isPrivate: Bool
    private var isFull: Bool

    /// The most origins of one playlist.
    private static let most = 2

    /// - Parameters:
    ///   - settings: whether early connections are enabled, and which hosts may be private.
    ///   - list: the playlist's URL.
    init(_ settings: ProxySettings, list: AbsoluteURL) {
        self.settings = settings
        isPrivate = settings.mayBePrivate(list.asciiHost)
        isFull = !settings.connectsEarly
    }

    /// Adds the origin of a URL in the playlist.
    ///
    /// A page of another site may have opened a playlist of a public origin: its URLs must not
    /// cause connections into a private network.
    mutating func add(_ url: AbsoluteURL) {
        guard !isFull, isPrivate || !settings.mayBePrivate(url.asciiHost) else { return }
        let origin = url.origin
        guard !origins.contains(origin) else { return }
        origins.append(origin)
        isFull = origins.count >= Self.most
    }
}
