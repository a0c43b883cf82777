/// The kind of a resource, derived from the place in the playlist that names it.
///
/// The role determines the lane of a fetch, the freshness lifetime of a response and the file
/// extension of the proxied URL. Its letter is the first path segment of that URL.
package enum ResourceRole: UInt8, CaseIterable, Hashable, Sendable {
    /// A multivariant or media playlist.
    case playlist = 0x70
    /// A media segment.
    case segment = 0x73
    /// A media initialization section.
    case initialization = 0x69
    /// A decryption key.
    case key = 0x6B
    /// A partial segment.
    case part = 0x6C
    /// A segment of WebVTT.
    case subtitle = 0x76
    /// A steering manifest, an asset list or session data.
    case json = 0x6A
    /// An image of a thumbnail track.
    case image = 0x67
    /// Anything else: a whole media file, session data that is not JSON.
    case media = 0x66

    /// Creates the role of a letter in a proxied URL.
    package init?(letter: UInt8) { self.init(rawValue: letter) }

    /// The letter of the role: p, s, i, k, l, v, j, g or f.
    package var letter: UInt8 { rawValue }

    /// True if playback stalls until this small resource has arrived.
    package var isExpress: Bool {
        switch self {
        case .playlist, .initialization, .key, .json: true
        case .segment, .part, .subtitle, .image, .media: false
        }
    }

    /// True if a playlist names such a resource as media or as what decodes it, so that it is never
    /// a page.
    package var isMediaOfPlaylist: Bool {
        switch self {
        case .segment, .initialization, .key, .part, .subtitle, .image: true
        case .playlist, .json, .media: false
        }
    }
}
