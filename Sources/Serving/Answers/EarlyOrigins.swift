import Model
import URISyntax

/// The origins that a playlist names first, to connect to while the playlist is on its way.
struct EarlyOrigins {
    private(set) var origins: [Origin] = []
    private let settings: ProxySettings
    /// Whether the playlist itself comes from an origin that may have a private address.
    private let isPrivate: Bool
    private var isFull: Bool

    /// The most of one playlist.
    private static let most = 2

    /// - Parameters:
    ///   - settings: whether any are wanted, and which hosts may be private.
    ///   - list: the playlist's URL.
    init(_ settings: ProxySettings, list: AbsoluteURL) {
        self.settings = settings
        isPrivate = settings.mayBePrivate(list.asciiHost)
        isFull = !settings.connectsEarly
    }

    /// Takes the origin of a URL that the playlist names.
    ///
    /// A page of another site may have opened the playlist, as its own origin is public: then its names
    /// must not lead into a private network.
    mutating func add(_ url: AbsoluteURL) {
        guard !isFull, isPrivate || !settings.mayBePrivate(url.asciiHost) else { return }
        let origin = url.origin
        guard !origins.contains(origin) else { return }
        origins.append(origin)
        isFull = origins.count >= Self.most
    }
}
